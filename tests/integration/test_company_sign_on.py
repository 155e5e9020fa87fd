"""Company sign-on (XAA): one visit to the identity provider serves every server."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey

from dragoman import Host, paths
from dragoman.auth.entry import OAuthSettings
from dragoman.auth.http import NetworkAccess
from dragoman.auth.oauth import OAuthCredentials
from dragoman.auth.registration import ConfiguredClient
from dragoman.auth.sign_in import sign_in
from dragoman.auth.stores.base import Vault
from dragoman.auth.xaa import IdentityProvider
from dragoman.errors import SignInFailed
from tests.integration.waiting import until
from tests.servers.web import Ask, Site
from tests.servers.web.auth_world import AuthWorld, Browser

pytestmark = pytest.mark.requirement("AUT-8")

ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


class Provider(Site):
    """An identity provider with rotating refresh tokens; ID tokens last as long as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.key = ECKey.generate_key("P-256")
        self.lasts = 3600.0
        self.forms: list[dict[str, str]] = []
        self._nonce: str | None = None

    async def answer(self, ask: Ask) -> web.StreamResponse:
        match ask.path.partition("?")[0]:
            case "/.well-known/openid-configuration":
                at = self.origin
                return web.json_response(
                    {
                        "issuer": at,
                        "authorization_endpoint": f"{at}/authorize",
                        "token_endpoint": f"{at}/token",
                        "jwks_uri": f"{at}/keys",
                        "token_endpoint_auth_methods_supported": ["client_secret_post"],
                    }
                )
            case "/keys":
                return web.json_response({"keys": [self.key.as_dict(private=False)]})
            case "/authorize":
                asked = {name: value for name, (value,) in parse_qs(urlsplit(ask.path).query).items()}
                self._nonce = asked["nonce"]
                target = f"{asked['redirect_uri']}?code=c&state={asked['state']}"
                return web.Response(status=302, headers={"Location": target})
            case "/token":
                return self._token(dict(parse_qsl(ask.body.decode())))
            case _:
                return web.Response(status=404)

    def _token(self, form: dict[str, str]) -> web.Response:
        self.forms.append(form)
        if form["grant_type"].endswith("token-exchange"):
            return web.json_response(
                {"access_token": f"jag for {form['audience']}", "issued_token_type": ID_JAG}
            )
        now = int(time.time())
        claims: dict[str, Any] = {"iss": self.origin, "aud": "company", "sub": "p", "iat": now}
        claims |= {"exp": int(now + self.lasts)} | ({"nonce": self._nonce} if self._nonce else {})
        token = jwt.encode({"alg": "ES256"}, claims, self.key)
        refresh = f"refresh-{len(self.forms)}"
        return web.json_response({"access_token": "a", "id_token": token, "refresh_token": refresh})

    def grants(self) -> list[str]:
        return [form["grant_type"].rpartition(":")[2] for form in self.forms]


def gives_tokens(world: AuthWorld) -> None:
    async def gives(ask: Ask) -> web.StreamResponse:
        form = dict(parse_qsl(ask.body.decode()))
        world.token_requests.append(form)
        return web.json_response(world.issue())

    world.on["/token"] = gives


def credentials_at(world: AuthWorld, provider: Provider, name: str = "x") -> OAuthCredentials:
    gives_tokens(world)
    entry = OAuthSettings(
        server=name,
        url=world.mcp.url,
        client=ConfiguredClient("me", "secret-at-the-server"),
        grant="xaa",
        issuer=world.auth.origin,
        identity_provider=IdentityProvider(
            issuer=provider.origin,
            client_id="company",
            access=NetworkAccess(),
            client_secret="secret-at-the-provider",
        ),
    )
    return OAuthCredentials(entry, Vault(), NetworkAccess)


async def test_one_sign_in_serves_two_servers_each_with_its_own_assertion():
    async with Provider() as provider, AuthWorld() as first, AuthWorld() as second:
        browsers = [Browser(), Browser()]
        for world, browser in zip((first, second), browsers, strict=True):
            account = await sign_in(credentials_at(world, provider), browser)
            assert account.issuer == world.auth.origin
            (form,) = world.token_requests
            assert form["assertion"] == f"jag for {world.auth.origin}"
            assert "secret-at-the-provider" not in str([ask.body for ask in world.auth.asks])
        assert [len(browser.pages) for browser in browsers] == [1, 0]
        assert provider.grants() == ["authorization_code", "token-exchange", "token-exchange"]
        assert "secret-at-the-server" not in str(provider.forms)
        assert {form["client_secret"] for form in provider.forms} == {"secret-at-the-provider"}


async def test_with_the_memory_store_one_sign_in_serves_all_servers_of_a_host(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "memory")
    browser = Browser()
    async with (
        Provider() as provider,
        AuthWorld() as first,
        AuthWorld() as second,
        company_host(provider, first=first, second=second) as host,
    ):
        for name in ("first", "second"):
            assert (await host.sign_in(name, browser)).status == "connected"
        assert len(browser.pages) == 1


async def test_a_changed_identity_provider_applies_at_once():
    async with (
        Provider() as before,
        Provider() as after,
        AuthWorld() as world,
        company_host(before, x=world) as host,
    ):
        assert (await host.sign_in("x", Browser())).status == "connected"
        write_settings(after, x=world)
        world.expire_tokens()
        await host.reload()
        await until(lambda: host.servers["x"].status == "needs-auth")
        assert (await host.sign_in("x", Browser())).status == "connected"
        assert after.grants() == ["authorization_code", "token-exchange"]


def write_settings(provider: Provider, **worlds: AuthWorld) -> None:
    servers = {}
    for name, world in worlds.items():
        gives_tokens(world)
        oauth = {"xaa": True, "clientId": "me", "issuer": world.auth.origin}
        servers[name] = {"type": "http", "url": world.mcp.url, "oauth": oauth}
    idp = {"issuer": provider.origin, "clientId": "company", "clientSecret": "s" * 12, "enabled": True}
    folder = paths.config_dir()
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"xaaIdp": idp, "mcpServers": servers}))


@asynccontextmanager
async def company_host(provider: Provider, **worlds: AuthWorld) -> AsyncIterator[Host]:
    write_settings(provider, **worlds)
    async with Host.configured() as host:
        await host.ready(timeout=20)
        yield host


async def test_an_expired_id_token_is_refreshed_once_for_all_servers():
    async with Provider() as provider, AuthWorld() as world:
        provider.lasts = 30  # within the leeway: too short to be used again
        everyone = [credentials_at(world, provider, name) for name in ("x", "y", "z")]
        await sign_in(everyone[0], Browser())
        provider.lasts = 3600
        provider.forms.clear()
        provider._nonce = None
        await asyncio.gather(*(sign_in(each, Browser()) for each in everyone))
        assert provider.grants().count("refresh_token") == 1
        assert provider.grants().count("token-exchange") == 3


async def test_an_id_token_with_another_nonce_is_refused():
    class Replaying(Provider):
        async def answer(self, ask: Ask) -> web.StreamResponse:
            found = await super().answer(ask)
            self._nonce = "of another sign-in"
            return found

    async with Replaying() as provider, AuthWorld() as world:
        with pytest.raises(SignInFailed) as caught:
            await sign_in(credentials_at(world, provider), Browser())
        assert caught.value.cause == (
            "the ID token of the company's identity provider belongs to another sign-in"
        )
        assert world.token_requests == []

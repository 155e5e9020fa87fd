"""T77: A request without a valid token is refused, whatever is wrong with it, and reaches no server."""

import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey

from dragoman.gateway.access import KnownCaller, with_token
from dragoman.gateway.jwt import JwtVerifier
from dragoman.gateway.settings import OAuthEntry, Rights
from tests.gateway import ADA, Client, Json, gateway_of
from tests.servers.office import Office
from tests.servers.web import Ask, Site

pytestmark = pytest.mark.requirement("GWY-3")
AUDIENCE = "https://tools.example.com/mcp"
KEY, OTHER = ECKey.generate_key("P-256", {"kid": "one"}), ECKey.generate_key("P-256", {"kid": "one"})

HEADERS = {
    "no header": [],
    "empty": [""],
    "another scheme": ["Basic YWRhOnNlY3JldA=="],
    "no token": ["Bearer"],
    "garbage": ["Bearer garbage"],
    "part of a token": [f"Bearer {ADA[:-1]}"],
    "more than a token": [f"Bearer {ADA}x"],
    "another case": [f"Bearer {ADA.upper()}"],
    "two headers": [f"Bearer {ADA}", f"Bearer {ADA}"],
    "two tokens": [f"Bearer {ADA}, Bearer {ADA}"],
    "not ascii": ["Bearer t\u00f6ken"],
}
CALL: Json = {"name": "office__ledger", "arguments": {}}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS.keys())
@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages", "/ws", "/metrics"])
async def test_t77_a_request_without_a_valid_token_is_refused(path: str, headers: list[str]):
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url, None) as client:
        given = [("Accept", "*/*"), *(("Authorization", each) for each in headers)]
        url = f"http://127.0.0.1:{running.port}{path}"
        method = "POST" if path in ("/mcp", "/messages") else "GET"
        async with client.http.request(method, url, headers=given, json=CALL) as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"] == "Bearer"
    assert office.ledger == []


async def test_t77_a_token_check_that_raises_refuses_the_request():
    async def fails(token: str) -> KnownCaller | None:
        raise RuntimeError("the store of tokens is down")

    office = Office()
    served = gateway_of({"office": office}, identify=with_token(fails))
    async with served as running, Client(running.url) as client:
        reply = await client.modern("tools/call", CALL)
    assert (reply.status, reply.last) == (503, {"error": "tokens cannot be checked now"})


class Issuer(Site):
    """An authorization server that publishes its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[Any] = [KEY]
        self.is_down = False

    async def answer(self, ask: Ask) -> web.StreamResponse:
        if self.is_down:
            return web.Response(status=500)
        if ask.path == "/jwks":
            return web.json_response({"keys": [key.as_dict(private=False) for key in self.keys]})
        if ask.path == "/.well-known/oauth-authorization-server":
            urls = {"token_endpoint": f"{self.origin}/token", "jwks_uri": f"{self.origin}/jwks"}
            return web.json_response({"issuer": self.origin, **urls})
        return web.Response(status=404)

    def token(self, key: Any = KEY, algorithm: str = "ES256", **claims: Any) -> str:
        """A valid token, except for the given claims; None removes a claim."""
        whole = {"iss": self.origin, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 600, **claims}
        given = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode({"alg": algorithm, "kid": "one"}, given, key, algorithms=[algorithm])


def unsigned(issuer: Issuer) -> str:
    _, payload, _ = issuer.token().split(".")
    return f"eyJhbGciOiJub25lIn0.{payload}."


def signed_with_public_key(issuer: Issuer) -> str:
    head = urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').rstrip(b"=")
    signed = head + b"." + issuer.token().split(".")[1].encode()
    signature = hmac.new(KEY.as_pem(private=False), signed, "sha256").digest()
    return (signed + b"." + urlsafe_b64encode(signature).rstrip(b"=")).decode()


TOKENS: dict[str, Callable[[Issuer], str]] = {
    "expired": lambda issuer: issuer.token(exp=int(time.time()) - 600),
    "no expiry": lambda issuer: issuer.token(exp=None),
    "wrong audience": lambda issuer: issuer.token(aud="https://other.example.com/mcp"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "wrong issuer": lambda issuer: issuer.token(iss="https://login.example.com"),
    "no subject": lambda issuer: issuer.token(sub=None),
    "not yet valid": lambda issuer: issuer.token(nbf=int(time.time()) + 600),
    "another key": lambda issuer: issuer.token(OTHER),
    "not signed": unsigned,
    "signed with the public key": signed_with_public_key,
    "cut": lambda issuer: issuer.token()[:-4],
    "three dots": lambda issuer: "a.b.c",
}


def entry_of(issuer: Issuer, **more: Any) -> OAuthEntry:
    return OAuthEntry(issuer=issuer.origin, audience=AUDIENCE, **more)


@pytest.mark.parametrize("made", TOKENS.values(), ids=TOKENS.keys())
async def test_t77_an_invalid_access_token_is_refused(made: Callable[[Issuer], str]):
    office = Office()
    async with Issuer() as issuer:
        identify = with_token(JwtVerifier(entry_of(issuer), time.monotonic))
        async with gateway_of({"office": office}, identify=identify) as running:
            async with Client(running.url, issuer.token()) as client:
                assert "result" in (await client.modern("tools/call", CALL)).last
            async with Client(running.url, made(issuer)) as client:
                reply = await client.modern("tools/call", {"name": "office__hold"})
    assert (reply.status, reply.last) == (401, {"error": "the bearer token is not valid"})
    assert office.ledger == []


async def test_t77_an_unavailable_issuer_refuses_the_request():
    async with Issuer() as issuer:
        issuer.is_down, now = True, 1000.0
        identify = with_token(JwtVerifier(entry_of(issuer), lambda: now))
        served = gateway_of({"office": Office()}, identify=identify)
        async with served as running, Client(running.url, issuer.token()) as client:
            reply = await client.modern("tools/call", CALL)
            issuer.is_down = False
            asks = len(issuer.asks)
            soon = await client.modern("tools/call", CALL)
            assert (soon.status, len(issuer.asks)) == (503, asks)  # the issuer is not asked for each request
            now += 11
            later = await client.modern("tools/call", CALL)
    assert reply.status == 503
    assert "result" in later.last


async def test_t77_scopes_limit_what_a_token_may_use():
    async with Issuer() as issuer:
        entry = entry_of(issuer, scopes={"count": Rights(tools=("office__count",))})
        identify = with_token(JwtVerifier(entry, time.monotonic))
        async with gateway_of({"office": Office()}, identify=identify) as running:
            found: list[list[str]] = []
            for scope in ("count other", "other", None):
                async with Client(running.url, issuer.token(scope=scope)) as client:
                    listed = await client.modern("tools/list")
                    found.append([tool["name"] for tool in listed.last["result"]["tools"]])
                    refused = await client.modern("tools/call", CALL)
                    assert refused.last["error"]["message"] == "Unknown tool: office__ledger"
    assert found == [["office__count"], [], []]


async def test_t77_a_new_key_of_the_issuer_is_fetched():
    now = 1000.0
    new = ECKey.generate_key("P-256", {"kid": "two"})
    async with Issuer() as issuer:
        verify = JwtVerifier(entry_of(issuer), lambda: now)
        assert await verify(issuer.token()) is not None
        issuer.keys = [new]
        token = jwt.encode(
            {"alg": "ES256", "kid": "two"},
            {"iss": issuer.origin, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 600},
            new,
        )
        assert await verify(token) is None  # the issuer is not asked for each unknown token
        now += 11
        assert await verify(token) is not None
        assert await verify(issuer.token()) is None

"""Sign-in at a real authorization server, from the first 401 to the sign-out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import HttpError
from dragoman.paths import config_dir
from tests.interop.oauth.parts import AuthorizationServer, Person, Protected

pytestmark = pytest.mark.needs("oidc-provider")
SECONDS = 30.0


def host_of(**entries: dict[str, Any]) -> Host:
    return Host(entries, permission_mode="bypassPermissions")


async def echo(host: Host, server: str = "s") -> str:
    return (await host.call(f"mcp__{server}__echo", {"text": "hello"})).raise_for_error().text


async def signed_in(authorization: AuthorizationServer, server: Protected, person: Person) -> None:
    """A host signs in, makes one call, and is closed."""
    async with host_of(s=server.entry) as host:
        assert (await host.ready(timeout=SECONDS))["s"].status == "needs-auth"
        view = await host.sign_in("s", person, timeout=SECONDS)
        assert (view.status, view.reason) == ("connected", None), (await authorization.counts())["refusals"]
        assert await echo(host) == "hello"


async def refresh_token_of(host: Host) -> tuple[str, str]:
    """The stored refresh token, and the client id it belongs to."""
    credentials = host._servers.named("s").checked_credentials()  # pyright: ignore[reportPrivateUsage]
    assert credentials is not None
    account = await credentials.load()
    assert account is not None
    assert account.tokens is not None
    assert account.tokens.refresh_token is not None
    return account.tokens.refresh_token, account.client.client_id


@pytest.mark.requirement("AUT-1", "AUT-2", "AUT-6", "AUT-11")
async def test_a_sign_in_from_the_first_401_to_a_call(
    authorization: AuthorizationServer, person: Person, home: Path
) -> None:
    async with Protected(authorization) as server:
        await signed_in(authorization, server, person)
        assert server.faults == []
        counts = await authorization.counts()
        assert (counts["registrations"], counts["grants"]) == (1, {"authorization_code": 1})
        assert counts["refusals"] == []
        assert "You are signed in" in await person.pages[0]
        assert len(person.visits) == 1
        for word in ("code_challenge_method=S256", "state=", "resource=", "scope=read+write"):
            assert word in person.visits[0]
        (token,) = server.tokens
        found = await authorization.introspect(token)
        assert (found["active"], found["aud"], found["scope"]) == (True, server.url, "read write")
    for file in config_dir().rglob("*"):
        if file.is_file():
            assert file.stat().st_mode & 0o077 == 0, file
            assert token.encode() not in file.read_bytes(), "tokens are not in plain text"


@pytest.mark.requirement("AUT-1", "AUT-2")
async def test_a_restarted_host_uses_the_stored_token(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server:
        await signed_in(authorization, server, person)
        refused = server.refused
        async with host_of(s=server.entry) as host:
            assert (await host.ready(timeout=SECONDS))["s"].status == "connected"
            assert await echo(host) == "hello"
        assert server.refused == refused
        assert len(server.tokens) == 1
        assert (await authorization.grants()) == {"authorization_code": 1}


@pytest.mark.requirement("AUT-3")
async def test_tokens_are_refreshed_after_a_restart_and_rotate(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server:
        await signed_in(authorization, server, person)
        for turn in range(1, 4):
            await authorization.expire()
            async with host_of(s=server.entry) as host:
                assert (await host.ready(timeout=SECONDS))["s"].status == "connected"
                assert await echo(host) == "hello"
            assert await authorization.grants() == {"authorization_code": 1, "refresh_token": turn}
        counts = await authorization.counts()
        assert (counts["reuses"], counts["refusals"]) == (0, [])
        assert len(person.visits) == 1


@pytest.mark.requirement("AUT-3", "CAL-5")
async def test_tokens_that_end_sooner_than_stated_are_refreshed_each_time(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server, host_of(s=server.entry) as host:
        await host.ready(timeout=SECONDS)
        await host.sign_in("s", person, timeout=SECONDS)
        for turn in range(1, 4):
            await authorization.expire()
            assert await echo(host) == "hello"
            assert (await authorization.grants())["refresh_token"] == turn


@pytest.mark.requirement("AUT-3")
async def test_a_token_that_expires_soon_is_refreshed_before_it_is_refused(part: Any, person: Person) -> None:
    async with (
        AuthorizationServer(part, tokenSeconds=290) as authorization,
        Protected(authorization) as server,
    ):
        await signed_in(authorization, server, person)
        # The token lasts for less than the five minutes within which it is refreshed: each use refreshes it.
        refused, before = server.refused, (await authorization.grants()).get("refresh_token", 0)
        assert before >= 1
        async with host_of(s=server.entry) as host:
            assert (await host.ready(timeout=SECONDS))["s"].status == "connected"
        assert (await authorization.grants())["refresh_token"] > before
        assert server.refused == refused
        assert (await authorization.counts())["reuses"] == 0


@pytest.mark.requirement("AUT-3")
async def test_a_revoked_refresh_token_needs_a_new_sign_in(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server:
        await signed_in(authorization, server, person)
        async with host_of(s=server.entry) as other:
            await other.ready(timeout=SECONDS)
            stolen, client_id = await refresh_token_of(other)
            await authorization.expire()
            assert await echo(other) == "hello"
            # A thief uses the token from before the rotation: the server revokes everything.
            form = {"grant_type": "refresh_token", "refresh_token": stolen, "client_id": client_id}
            assert (await authorization.post("/token", form))["error"] == "invalid_grant"
        assert (await authorization.counts())["reuses"] == 1
        async with host_of(s=server.entry) as host:
            view = (await host.ready(timeout=SECONDS))["s"]
            assert view.status == "needs-auth"
            assert (await host.sign_in_state("s")).status == "signed-out"
            assert (await host.sign_in("s", person, timeout=SECONDS)).status == "connected"
        assert (await authorization.counts())["registrations"] == 1, "the registration is used again"


@pytest.mark.requirement("AUT-5")
async def test_sign_out_revokes_and_deletes_tokens(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server:
        await signed_in(authorization, server, person)
        (token,) = server.tokens
        async with host_of(s=server.entry) as host:
            await host.ready(timeout=SECONDS)
            refresh, _ = await refresh_token_of(host)
            assert (await authorization.introspect(refresh))["active"] is True
            assert await host.sign_out("s") is None
            assert host.servers["s"].status == "needs-auth"
            assert (await host.sign_in_state("s")).status == "signed-out"
        for each in (token, refresh):
            assert await authorization.introspect(each) == {"active": False}


@pytest.mark.requirement("AUT-4", "CAL-5")
async def test_step_up_requests_the_union_of_scopes(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server:
        async with host_of(s=server.entry) as host:
            await host.ready(timeout=SECONDS)
            await host.sign_in("s", person, timeout=SECONDS)
            server.call_scopes = ("admin",)
            with pytest.raises(HttpError) as refused:
                await echo(host)
            words = "It asks for the scopes read write admin. To grant them, sign in again"
            assert refused.value.hint == f"{words}: `dragoman mcp login s`."
        async with host_of(s=server.entry) as host:  # a command in another process
            assert (await host.ready(timeout=SECONDS))["s"].status == "connected"
            assert (await host.sign_in("s", person, timeout=SECONDS)).status == "connected"
            assert await echo(host) == "hello"
            state = await host.sign_in_state("s")
            assert set(state.scopes) >= {"read", "write", "admin"}
        assert "scope=read+write+admin" in person.visits[1].replace("offline_access+", "")
        assert (await authorization.introspect(server.tokens[-1]))["scope"] == "read write admin"


@pytest.mark.requirement("AUT-10")
async def test_a_sign_in_on_another_device(authorization: AuthorizationServer, person: Person) -> None:
    async with Protected(authorization) as server, host_of(s=server.entry) as host:
        await host.ready(timeout=SECONDS)
        view = await host.sign_in("s", person, timeout=SECONDS, on_device=True)
        assert view.status == "connected"
        assert await echo(host) == "hello"
        grants = await authorization.grants()
        assert grants == {"urn:ietf:params:oauth:grant-type:device_code": 1}


@pytest.mark.requirement("AUT-10")
async def test_client_credentials_need_no_person(authorization: AuthorizationServer) -> None:
    async with Protected(authorization) as server:
        oauth = {
            "grant": "client_credentials",
            "clientId": "robot",
            "clientSecret": "the robot secret",
            "issuer": authorization.issuer,
        }
        async with host_of(s={**server.entry, "oauth": oauth}) as host:
            assert (await host.ready(timeout=SECONDS))["s"].status == "connected"
            assert await echo(host) == "hello"
            await authorization.expire()
            assert await echo(host) == "hello"
        assert (await authorization.counts())["refusals"] == []


@pytest.mark.requirement("AUT-8")
async def test_company_sign_on_serves_two_servers_with_one_sign_in(
    authorization: AuthorizationServer, person: Person, home: Path
) -> None:
    settings = home / ".dragoman" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    async with Protected(authorization) as first, Protected(authorization) as second:
        oauth = {"xaa": True, "clientId": "host-here", "clientSecret": "the host secret"}
        oauth["issuer"] = authorization.issuer
        provider = {
            "issuer": authorization.issuer,
            "clientId": "host-at-company",
            "clientSecret": "the company secret",
            "enabled": True,
        }
        servers = {"a": {**first.entry, "oauth": oauth}, "b": {**second.entry, "oauth": oauth}}
        settings.write_text(json.dumps({"mcpServers": servers, "xaaIdp": provider}))
        async with Host.configured(permission_mode="bypassPermissions") as host:
            views = await host.ready(timeout=SECONDS)
            assert {view.status for view in views.values()} == {"needs-auth"}
            assert (await host.sign_in("a", person, timeout=SECONDS)).status == "connected"
            assert (await host.reconnect("b")).status == "connected"
            assert [await echo(host, "a"), await echo(host, "b")] == ["hello", "hello"]
        assert len(person.visits) == 1
        async with Host.configured(permission_mode="bypassPermissions") as host:
            views = await host.ready(timeout=SECONDS)
            assert {view.status for view in views.values()} == {"connected"}
        counts = await authorization.counts()
        assert (counts["refusals"], counts["authorizations"]) == ([], 1)


@pytest.mark.requirement("AUT-6", "AUT-7")
async def test_the_authenticate_tool_signs_in_to_a_server_remembered_as_needs_auth(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server:
        async with host_of(s=server.entry) as host:
            await host.ready(timeout=SECONDS)
        asked = server.refused
        async with host_of(s=server.entry) as host:
            assert (await host.ready(timeout=SECONDS))["s"].status == "needs-auth"
            assert server.refused == asked, "it is remembered, and not contacted"
            (name,) = host.sign_in_tools()
            assert name == "mcp__s__authenticate"
            said = (await host.toolbox().call(name, {})).text
            page = next(line for line in said.splitlines() if line.startswith("http"))
            assert "scope=read+write" in page
            await person.show_url(page, lambda url: False)
            async with asyncio.timeout(SECONDS):
                while host.servers["s"].status != "connected":
                    await asyncio.sleep(0.02)
            assert await echo(host) == "hello"
            assert dict(host.sign_in_tools()) == {}

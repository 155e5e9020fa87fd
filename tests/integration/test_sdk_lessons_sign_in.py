"""What the official Python client gets wrong about signing in (`mcp` 2.3.0), and what Dragoman does instead.

The first finding, that OAuth makes calls wait for each other, is measured in torture test T69; that refreshes
are shared by processes, in T35.
"""

import asyncio
from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from dragoman.auth import device
from dragoman.auth.stores.base import StoreFailed, Vault
from dragoman.credentials import Challenge
from dragoman.errors import SignInFailed, Unreachable
from tests.servers.web import Ask
from tests.servers.web.auth_world import AuthWorld, Browser, answering, refusal
from tests.torture.signed_in import credentials_of, host_of, sign_in_before


@pytest.mark.requirement("AUT-3")
async def test_finding_1_calls_that_wait_for_a_token_do_not_delay_others():
    """One call gets no answer; the next one does not wait for it."""
    async with AuthWorld() as world:
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            held = asyncio.create_task(host.call("mcp__x__hold", {}))
            await world.mcp.ledger.wait_for("hold")
            assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"
            assert not held.done()
            held.cancel()
            await asyncio.wait([held])


@pytest.mark.requirement("AUT-3")
async def test_findings_2_and_3_an_expired_token_is_refreshed_after_a_restart_without_browser_and_discovery():
    async with AuthWorld() as world:
        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.expires_in = 5  # too short to be sent again
            browser = Browser()
            await host.sign_in("x", browser)
        world.expires_in = 3600
        world.expire_tokens()
        world.auth.asks.clear()
        world.mcp.asks.clear()
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected", host.servers["x"].reason
        assert [ask.path for ask in world.auth.asks] == ["/token"], "the endpoint is known from the sign-in"
        assert all("Authorization" in ask.headers for ask in world.mcp.asks), "the old token is not tried"
        assert len(browser.pages) == 1
        form = world.token_requests[-1]
        assert (form["grant_type"], form["resource"]) == ("refresh_token", world.mcp.url)


@pytest.mark.requirement("AUT-3")
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_finding_4_a_temporary_failure_of_the_authorization_server_needs_no_new_sign_in(status: int):
    async with AuthWorld() as world:
        sign_in_before(world)
        credentials = credentials_of(world)
        sent = await credentials.headers()
        world.on["/token"] = answering({"error": "temporarily_unavailable"}, status)
        with pytest.raises(Unreachable):
            await credentials.renew(Challenge(401, sent=sent))
        del world.on["/token"]
        assert await credentials.renew(Challenge(401, sent=sent)) is True
        assert world.refreshes == 1


@pytest.mark.requirement("AUT-3")
async def test_finding_5_tokens_are_refreshed_before_they_expire():
    async with AuthWorld() as world:
        sign_in_before(world, expires_in=299)
        old = next(iter(world.accepted))
        async with host_of(world) as host:
            await host.ready(timeout=20)
        assert world.refreshes == 1
        assert f"Bearer {old}" not in {ask.headers.get("Authorization") for ask in world.mcp.asks}


@pytest.mark.requirement("AUT-5")
async def test_finding_6_a_sign_out_revokes_and_deletes_both_tokens():
    async with AuthWorld() as world:
        account = sign_in_before(world)
        assert account.tokens is not None
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert await host.sign_out("x") is None
            assert host.servers["x"].status == "needs-auth"
            assert (await host.sign_in_state("x")).status == "signed-out"
        assert world.revoked == [account.tokens.refresh_token, account.tokens.access_token]
        stored = await credentials_of(world).load()
        assert stored is not None
        assert (stored.tokens, stored.requested_scopes, stored.client) == (None, (), account.client)


@pytest.mark.requirement("AUT-5")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            answering({}, 503),
            "the refresh token could not be revoked: HTTP 503; "
            "the access token could not be revoked: HTTP 503",
        ),
        (None, "its authorization server cannot revoke tokens; they stay valid until they expire"),
    ],
)
async def test_finding_6_tokens_are_deleted_even_if_they_cannot_be_revoked(answer, reason: str):
    async with AuthWorld() as world:
        if answer is None:
            del world.server_document["revocation_endpoint"]
        else:
            world.on["/revoke"] = answer
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert await host.sign_out("x") == reason
            assert (await host.sign_in_state("x")).status == "signed-out"


@pytest.mark.requirement("AUT-5")
async def test_finding_6_a_sign_out_that_the_store_refuses_is_reported(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise StoreFailed("the folder cannot be written: Read-only file system")

    async with AuthWorld() as world:
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            monkeypatch.setattr(Vault, "put", fail)
            monkeypatch.setattr(Vault, "delete", fail)
            with pytest.raises(SignInFailed) as caught:
                await host.sign_out("x")
            assert caught.value.cause == "the folder cannot be written: Read-only file system"


@pytest.mark.requirement("AUT-10")
async def test_finding_6_a_sign_in_on_another_device(monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(device, "asyncio", SimpleNamespace(sleep=sleep))
    async with AuthWorld() as world:
        page = f"{world.auth.origin}/enter"
        world.on["/device"] = answering(
            {"device_code": "cAnary-device", "user_code": "ABCD", "verification_uri": page, "interval": 1}
        )
        replies = iter(["authorization_pending", "slow_down", "authorization_pending"])

        async def token(ask: Ask) -> web.StreamResponse:
            world.token_requests.append(dict(parse_qsl(ask.body.decode())))
            error = next(replies, None)
            return refusal(error) if error is not None else web.json_response(world.issue())

        world.on["/token"] = token
        browser = Browser()
        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.on["/token"] = token
            view = await host.sign_in("x", browser, on_device=True)
            assert view.status == "connected"
        assert browser.codes == [(page, "ABCD", None)]
        assert browser.pages == []
        assert pauses == [1.0, 1.0, 6.0, 6.0]
        assert world.token_requests[-1]["device_code"] == "cAnary-device"
        assert world.registrations[0]["redirect_uris"] == []


@pytest.mark.requirement("AUT-10")
async def test_finding_6_client_credentials_need_no_person():
    async with AuthWorld() as world:
        oauth = {"clientId": "me", "clientSecret": "s", "grant": "client_credentials"}
        async with host_of(world, **oauth, issuer=world.auth.origin) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected", host.servers["x"].reason
            world.expire_tokens()
            assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"
        assert [form["grant_type"] for form in world.token_requests] == ["client_credentials"] * 2


@pytest.mark.requirement("AUT-6")
async def test_a_server_that_asked_for_a_sign_in_is_not_contacted_again_for_a_while():
    async with AuthWorld() as world:
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "needs-auth"
        asked = len(world.mcp.asks)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "needs-auth"
            assert len(world.mcp.asks) == asked
            assert (await host.sign_in("x", Browser())).status == "connected"
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected"

"""T69: Sign-in and token refresh do not block calls."""

import asyncio
import logging
import threading
import time

import pytest
from aiohttp import web

from dragoman import Host
from dragoman.auth import oauth
from dragoman.auth.stores.base import Vault
from tests.servers.web import Ask, answers, streamable
from tests.servers.web.auth_world import AuthWorld, Onlooker
from tests.torture.signed_in import QUIET, account_of, credentials_of, host_of, sign_in_before

pytestmark = pytest.mark.requirement("AUT-3")


async def seconds_of_eight_calls(host: Host) -> float:
    await host.call("mcp__x__echo", {"text": "warm"})
    started = time.monotonic()
    outcomes = await asyncio.gather(*(host.call("mcp__x__slow", {"seconds": 0.3}) for _ in range(8)))
    assert [outcome.text for outcome in outcomes] == ["at last"] * 8
    return time.monotonic() - started


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("replies", ["json", "sse"])
async def test_t69_calls_with_oauth_run_concurrently(revision: str, replies):
    async with streamable(revisions=(revision,), replies=replies) as open_server:
        entry = {"type": "http", "url": open_server.url}
        async with Host({"x": entry}, permission_mode="bypassPermissions", settings=QUIET) as host:
            await host.ready(timeout=20)
            without = await seconds_of_eight_calls(host)
    async with AuthWorld(revisions=(revision,)) as world:
        world.mcp.replies = replies
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            under_oauth = await seconds_of_eight_calls(host)
    assert under_oauth < 2 * without, "one after the other they would take eight times as long"


async def held_token_endpoint(world: AuthWorld) -> asyncio.Event:
    """The token endpoint does not answer before the event is set."""
    held = asyncio.Event()

    async def hold(_: Ask) -> None:
        await held.wait()

    world.on["/token"] = hold
    return held


async def test_t69_a_refresh_that_hangs_does_not_block_calls_with_a_valid_token(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(oauth, "REFRESH_WAIT_SECONDS", 0.05)
    async with AuthWorld() as world:
        held = await held_token_endpoint(world)
        sign_in_before(world, expires_in=200)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected"
            for _ in range(20):
                assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"
            assert len(world.asked_at(world.auth, "/token")) == 1, "one refresh, which goes on"
            held.set()


async def test_t69_a_refresh_that_fails_after_all_calls_stopped_waiting_logs_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(oauth, "REFRESH_WAIT_SECONDS", 0.05)
    async with AuthWorld() as world:
        held = asyncio.Event()

        async def fail(_: Ask) -> web.StreamResponse:
            await held.wait()
            return web.Response(status=503)

        world.on["/token"] = fail
        sign_in_before(world, expires_in=200)
        credentials = credentials_of(world)
        await credentials.headers()
        held.set()
        task = credentials._renewing
        assert task is not None
        await asyncio.wait([task])
        credentials._renewing = None
        del task
        import gc

        gc.collect()
        assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []


async def test_t69_a_cancelled_call_does_not_cancel_the_refresh_that_others_wait_for():
    async with AuthWorld() as world:
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            held = await held_token_endpoint(world)
            world.expire_tokens()
            calls = [asyncio.create_task(host.call("mcp__x__echo", {"text": f"{n}"})) for n in range(5)]
            while not world.asked_at(world.auth, "/token"):
                await asyncio.sleep(0)
            calls[0].cancel()
            calls[3].cancel()
            await asyncio.wait([calls[0], calls[3]])
            held.set()
            assert [(await calls[n]).text for n in (1, 2, 4)] == ["1", "2", "4"]
        assert world.refreshes == 1


async def test_t69_cancelling_the_call_that_started_the_refresh_does_not_cancel_the_refresh():
    """The token has expired: every call waits for the refresh that the first call started."""
    async with AuthWorld() as world:
        held = await held_token_endpoint(world)
        sign_in_before(world, expires_in=-5)
        credentials = credentials_of(world)
        first = asyncio.create_task(credentials.headers())
        while not world.asked_at(world.auth, "/token"):
            await asyncio.sleep(0)
        second = asyncio.create_task(credentials.headers())
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        held.set()
        assert (await second)["Authorization"].startswith("Bearer cAnary-access-")
        assert world.refreshes == 1


class SlowVault(Vault):
    """Reads are slow: their result is the state at the start of the read."""

    def __init__(self) -> None:
        super().__init__()
        self.has_read, self.may_return = threading.Event(), threading.Event()

    def get(self, key: str) -> bytes | None:
        found = super().get(key)
        self.has_read.set()
        assert self.may_return.wait(20)
        return found


async def test_t69_a_slow_read_of_the_secret_store_does_not_restore_an_old_token():
    """A refused request reads the store while the refresh of another request is being written."""
    async with AuthWorld() as world:
        sign_in_before(world)
        vault = SlowVault()
        credentials = credentials_of(world, vault=vault)
        newer = account_of(world)
        looking = asyncio.create_task(credentials.load(fresh=True))
        await asyncio.to_thread(vault.has_read.wait, 20)
        await credentials.save(newer)
        vault.may_return.set()
        assert await looking == newer
        assert await credentials.load() == newer


async def test_t69_a_sign_in_that_waits_for_its_person_delays_no_other_call():
    async with AuthWorld() as world, streamable() as other:
        entry = {"type": "http", "url": other.url}
        async with host_of(world, more={"y": entry}) as host:
            await host.ready(timeout=20)
            screen = Onlooker()
            signing = asyncio.create_task(host.sign_in("x", screen))
            await screen.shown.wait()
            assert (host.servers["x"].status, host.servers["y"].status) == ("needs-auth", "connected")
            for _ in range(20):
                assert (await host.call("mcp__y__echo", {"text": "x"})).text == "x"
            assert not signing.done()
            signing.cancel()
            await asyncio.wait([signing])


async def test_t69_an_unavailable_authorization_server_does_not_block_valid_tokens():
    async with AuthWorld() as world:
        world.on["/token"] = answers.status(503)
        sign_in_before(world, expires_in=200)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            for _ in range(5):
                assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"
        assert len(world.asked_at(world.auth, "/token")) == 1, "asked again after a pause only"

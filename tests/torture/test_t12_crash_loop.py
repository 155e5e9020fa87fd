"""T12: A server that exits right after each start is started a few times and then not again."""

import itertools
import time

import pytest

from dragoman.errors import ConnectionLost, NotConnected, StartFailed
from dragoman.events import ServerFailed, ServerStateChanged
from tests.servers import stdio_server
from tests.servers.web import answers, http_sse, streamable, websocket
from tests.torture.bystander_host import at_once, until

ATTEMPTS = 5
QUICK = {
    "DRAGOMAN_RECONNECT_ATTEMPTS": ATTEMPTS,
    "DRAGOMAN_RECONNECT_WAIT_MS": 10,
    "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 100,
    "DRAGOMAN_PROBE_TIMEOUT_MS": 500,
}


def starts(diary):
    return len(diary.read_text().split())


async def stays_failed(a, count):
    """Nothing is started automatically any more: after this many calls of the bystander, the count is
    the same."""
    before = count()
    await a.bystander.call_often(50)
    assert (count(), a.view.status) == (before, "failed")


@pytest.mark.requirement("LIF-3")
async def test_t12_a_server_that_exits_before_the_handshake_is_not_restarted_automatically(
    bystander_host, tmp_path
):
    diary = tmp_path / "starts"
    async with bystander_host(stdio_server("exits_soon.py", str(diary), "100", "mute"), settings=QUICK) as a:
        assert isinstance(a.view.error, StartFailed)
        assert (a.view.exit_code, a.view.status) == (9, "failed")
        assert "the database is locked" in a.view.error.stderr_tail
        # Once for the probe, which it may not have understood, and once for the legacy handshake.
        assert starts(diary) == 2
        await stays_failed(a, lambda: starts(diary))
        assert (await a.host.reconnect("hostile")).status == "failed"
        assert starts(diary) <= 4, "a person's word is worth one more attempt"


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
async def test_t12_a_server_that_exits_after_the_handshake_is_restarted_a_few_times_only(
    bystander_host, era, tmp_path
):
    diary = tmp_path / "starts"
    async with bystander_host(
        stdio_server("exits_soon.py", str(diary), "60", protocol=era), settings=QUICK
    ) as a:
        await until(lambda: a.view.status == "failed")
        assert 2 <= starts(diary) <= 1 + ATTEMPTS
        assert "exited with code 9" in (a.view.reason or "")
        assert a.view.error is not None
        assert a.view.error.hint
        attempts = {event.attempt for event in a.happened(ServerStateChanged)}
        assert max(attempts) <= ATTEMPTS
        await until(lambda: a.happened(ServerFailed))
        await stays_failed(a, lambda: starts(diary))
        assert len(a.happened(ServerFailed)) == 1, "told once"
        with pytest.raises(NotConnected):
            async with at_once():
                await a.call("echo", message="anybody?")
        before = starts(diary)
        await a.host.reconnect("hostile")
        await until(lambda: a.view.status == "failed")
        assert before < starts(diary) <= before + 1 + ATTEMPTS, "a person's word refills the budget, once"


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
async def test_t12_calls_made_meanwhile_do_not_cause_more_restarts(bystander_host, tmp_path):
    """Each call waits for the next start; a call does not cause an additional attempt."""
    diary = tmp_path / "starts"
    async with bystander_host(stdio_server("exits_soon.py", str(diary), "100"), settings=QUICK) as a:
        for number in itertools.count():
            if a.view.status == "failed":
                break
            assert number < 100_000
            try:
                await a.call("echo", message="quick", seconds=5)
            except (ConnectionLost, NotConnected):
                continue
        assert starts(diary) <= 1 + ATTEMPTS


async def test_t12_the_delay_between_restarts_grows(bystander_host, tmp_path):
    diary = tmp_path / "starts"
    slower = {**QUICK, "DRAGOMAN_RECONNECT_WAIT_MS": 50, "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 400}
    began = time.monotonic()
    async with bystander_host(stdio_server("exits_soon.py", str(diary), "30"), settings=slower) as a:
        await until(lambda: a.view.status == "failed")
        # 50, 100, 200, 400 and 400 ms, each shortened by at most a fifth.
        assert time.monotonic() - began > 0.8 * 1.15


async def test_t12_a_lazy_server_that_exits_early_is_restarted_a_few_times_only(bystander_host, tmp_path):
    diary = tmp_path / "starts"
    entry = stdio_server("exits_soon.py", str(diary), "50", lazy=True)
    async with bystander_host(entry, settings=QUICK) as a:
        await until(lambda: a.view.status == "failed")
        assert starts(diary) <= 1 + ATTEMPTS
        await stays_failed(a, lambda: starts(diary))


SITES = {
    "http": lambda: streamable(revisions=("2025-11-25",)),
    "sse": http_sse,
    "ws": websocket,
}


@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("kind", SITES)
async def test_t12_a_remote_server_that_closes_every_new_connection_is_retried_a_few_times_only(
    bystander_host, kind
):
    async with SITES[kind]() as server:
        server.on["*"] = answers.hang_up()
        async with bystander_host({"type": kind, "url": server.url}, settings=QUICK) as a:
            # The failure may be caused by the network, so it is retried a few times in the background.
            await until(lambda: len(a.happened(ServerFailed)) == 1 + ATTEMPTS)
            await stays_failed(a, lambda: len(server.asks))
            assert len(server.asks) <= 2 * (1 + ATTEMPTS), "aiohttp asks for a page once more by itself"
            server.on.clear()
            assert (await a.host.reconnect("hostile")).status == "connected"


@pytest.mark.requirement("LIF-5")
async def test_t12_a_websocket_that_closes_after_every_handshake_is_retried_a_few_times_only(bystander_host):
    async with websocket() as server:
        made = 0

        async def serve_briefly(end, whole=server.in_memory.serve):
            nonlocal made
            made += 1
            await whole(end)

        server.in_memory.serve = serve_briefly
        async with bystander_host({"type": "ws", "url": server.url}, settings=QUICK) as a:
            for _ in range(1 + ATTEMPTS):
                await until(lambda: a.view.status != "pending")
                if a.view.status == "failed":
                    break
                await server.close_sockets()
                await until(lambda: a.view.phase == "reconnecting" or a.view.status != "connected")
            await until(lambda: a.view.status == "failed")
            assert 2 <= made <= 1 + ATTEMPTS
            await stays_failed(a, lambda: made)

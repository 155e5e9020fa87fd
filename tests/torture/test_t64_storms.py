"""T64: Very many notifications, calls and servers at once are merged and bounded, and affect no other
server."""

import asyncio
import json
import time

import pytest

from dragoman.testing import InMemoryServer
from tests.servers import stdio_server
from tests.servers.web import Ask, answers, http_sse, streamable, websocket
from tests.servers.web.tools import LIST_CHANGED, notification
from tests.torture.bystander_host import MEGABYTE, at_once, until
from tests.torture.conftest import LEGACY, MODERN

BURST = 10_000
PAUSE_SECONDS = 0.2
"""Delay between two list requests for a list that changes all the time; shorter than the default."""
SITES = {"http": streamable, "sse": http_sse, "ws": websocket}


def lists_asked(server) -> int:
    """How many list requests for tools a server over the network received."""
    said = server.messages if hasattr(server, "messages") else [ask.message for ask in server.asks]
    return sum(1 for message in said if message and message.get("method") == "tools/list")


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.servers.lists.PAUSE_SECONDS", PAUSE_SECONDS)


async def longer_than_any_delay(a) -> None:
    """Longer than any delay."""
    over = time.monotonic() + 2 * PAUSE_SECONDS
    while time.monotonic() < over:
        await a.bystander.call_often(20)


@pytest.mark.requirement("LIF-8")
@pytest.mark.parametrize("seconds", [0, 1])
async def test_t64_ten_thousand_change_notifications_of_a_local_server_cause_a_few_list_requests(
    bystander_host, era, seconds
):
    async with bystander_host(stdio_server("many_list_changes.py", protocol=era)) as a:
        before = int(await a.call("lists"))
        async with at_once(10):
            await a.call("storm", count=BURST, over=seconds)
        await longer_than_any_delay(a)
        read = int(await a.call("lists")) - before
        assert 1 <= read <= 3 + (seconds + 1) / PAUSE_SECONDS
        assert a.pulse.growth_bytes < 32 * MEGABYTE


@pytest.mark.requirement("LIF-8")
@pytest.mark.parametrize(
    ("kind", "revision"), [("http", LEGACY), ("http", MODERN), ("sse", LEGACY), ("ws", MODERN)]
)
async def test_t64_ten_thousand_change_notifications_of_a_remote_server_cause_a_few_list_requests(
    bystander_host, kind, revision
):
    async with (
        SITES[kind](revisions=(revision,)) as server,
        bystander_host({"type": kind, "url": server.url, "protocol": revision}) as a,
    ):
        await until(lambda: (kind, revision) != ("http", LEGACY) or server.asked("GET"))
        before = lists_asked(server)
        server.in_memory.add_tool("late", lambda *_: "here")
        for _ in range(20):
            for _ in range(BURST // 20):
                server.push(LIST_CHANGED)
            await asyncio.sleep(0.01)
        await until(lambda: "late" in {tool.wire_name for tool in a.host.tools()})
        async with at_once(10):
            assert await a.call("late") == "here"
        await longer_than_any_delay(a)
        assert 1 <= lists_asked(server) - before <= 12
        assert a.pulse.growth_bytes < 64 * MEGABYTE


@pytest.mark.requirement("LIF-8")
async def test_t64_a_change_notification_after_a_reconnect_is_not_lost_because_of_earlier_ones(
    bystander_host,
):
    """List requests are delayed during a flood; a delayed request must not use the connection that was
    lost."""
    settings = {"DRAGOMAN_RECONNECT_ATTEMPTS": 5, "DRAGOMAN_RECONNECT_WAIT_MS": 10}
    async with (
        websocket(revisions=(MODERN,)) as server,
        bystander_host({"type": "ws", "url": server.url, "protocol": MODERN}, settings=settings) as a,
    ):
        for _ in range(50):
            server.push(LIST_CHANGED)
            await a.bystander.call_often(1)
        await server.close_sockets()
        await until(lambda: a.view.status != "connected")
        await until(lambda: a.view.status == "connected")
        server.in_memory.add_tool("late", lambda *_: "here")
        server.push(LIST_CHANGED)
        await until(lambda: "late" in {tool.wire_name for tool in a.host.tools()}, 2)
        assert a.view.problems == ()


@pytest.mark.parametrize("kind", SITES)
async def test_t64_updates_of_many_different_resources_do_not_accumulate(bystander_host, kind):
    async with SITES[kind]() as server, bystander_host({"type": kind, "url": server.url}) as a:
        await until(lambda: kind != "http" or a.view.era == "modern" or server.asked("GET"))
        for number in range(BURST):
            server.push(notification("notifications/resources/updated", uri=f"file:///{number}"))
            if number % 500 == 0:
                await asyncio.sleep(0)
        async with at_once(10):
            assert await a.call("echo", text="still there?") == "still there?"
        assert a.pulse.growth_bytes < 64 * MEGABYTE


@pytest.mark.parametrize("kind", SITES)
async def test_t64_a_flood_of_log_messages_over_the_network_neither_accumulates_nor_blocks(
    bystander_host, kind
):
    """A subscriber reads events all the time, and receives a bounded part of them."""
    async with SITES[kind]() as server, bystander_host({"type": kind, "url": server.url}) as a:
        text = "\x1b[31m" + "x" * 200
        if kind == "http":
            log = json.dumps(notification("notifications/message", level="info", data=text)).encode()
            server.on["tools/call"] = answers.events(
                lambda reply: (b"data: " + log + b"\n\n") * BURST + b"data: " + reply + b"\n\n"
            )
        else:
            for _ in range(BURST):
                server.push(notification("notifications/message", level="info", data=text))
        async with at_once(10):
            assert await a.call("echo", text="fine") == "fine"
        assert not any("\x1b" in line for line in a.log())
        assert a.pulse.growth_bytes < 64 * MEGABYTE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "revision"), [("http", LEGACY), ("http", MODERN), ("sse", LEGACY), ("ws", MODERN)]
)
async def test_t64_a_thousand_calls_at_once_each_get_their_own_answer(bystander_host, kind, revision):
    async with (
        SITES[kind](revisions=(revision,)) as server,
        bystander_host({"type": kind, "url": server.url, "protocol": revision}) as a,
    ):
        async with at_once(20):
            texts = await asyncio.gather(*(a.call("echo", text=str(n), seconds=30) for n in range(1000)))
        assert texts == [str(n) for n in range(1000)]
        assert a.view.status == "connected"
        assert server.connections <= 300, "requests under way are bounded"


@pytest.mark.slow
async def test_t64_a_thousand_calls_that_never_end_time_out(bystander_host):
    async with (
        streamable(revisions=(LEGACY,), replies="json") as server,
        bystander_host({"url": server.url, "protocol": LEGACY}) as a,
    ):
        calls = (a.call("hold", seconds=1) for _ in range(1000))
        async with at_once(1 + 5):
            errors = await asyncio.gather(*calls, return_exceptions=True)
        assert {getattr(error, "code", error) for error in errors} == {"timeout"}
        unsent = [error for error in errors if not error.may_have_run]
        assert unsent, "those that waited for room say that they were not sent"
        async with at_once():
            assert await a.call("echo", text="well?") == "well?"


class ConcurrencyCounter:
    """Counts the number of concurrent users."""

    def __init__(self) -> None:
        self.inside = self.most = 0

    async def __call__(self, _: Ask) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(0.02)
        finally:
            self.inside -= 1


@pytest.mark.slow
@pytest.mark.requirement("LIF-2")
async def test_t64_a_hundred_servers_are_connected_a_few_at_a_time(bystander_host):
    door = ConcurrencyCounter()
    async with streamable(revisions=(MODERN,), on={"server/discover": door}) as server:
        others: dict[str, object] = {f"near{n}": small_server(n) for n in range(40)}
        others |= {f"far{n}": {"url": f"{server.origin}/mcp/{n}"} for n in range(55)}
        others |= {f"local{n}": stdio_server("well_behaved.py", str(n)) for n in range(5)}
        async with bystander_host(others=others, wait=False) as a:
            async with at_once(15):
                views = await a.host.ready(timeout=30)
            assert {view.status for view in views.values()} == {"connected"}
            assert 2 <= door.most <= 20
            assert len(server.asked("server/discover")) == 55
            named = {tool.server for tool in a.host.tools()}
            assert len(named) == 1 + 100
            texts = await asyncio.gather(
                *(a.host.call(f"mcp__far{n}__echo", {"text": str(n)}) for n in range(55)),
                *(a.host.call(f"mcp__near{n}__hello", {}) for n in range(40)),
            )
            assert [outcome.text for outcome in texts] == [
                *(str(n) for n in range(55)),
                *(f"hello {n}" for n in range(40)),
            ]


def small_server(number: int) -> InMemoryServer:
    server = InMemoryServer(f"near{number}")
    server.add_tool("hello", lambda *_: f"hello {number}")
    return server


@pytest.mark.requirement("LIF-2")
async def test_t64_sixty_unreachable_addresses_delay_no_reachable_server(bystander_host):
    others = {f"dead{n}": {"url": f"http://127.0.0.1:9/{n}"} for n in range(30)}
    async with streamable(on={"*": answers.never()}) as silent, streamable() as good:
        others |= {f"mute{n}": {"url": f"{silent.origin}/mcp/{n}"} for n in range(30)}
        others["good"] = {"url": good.url}
        async with bystander_host(others=others, wait=False) as a:
            await until(lambda: a.host.servers["good"].status == "connected", 5)
            assert (await a.host.call("mcp__good__echo", {"text": "here"})).text == "here"

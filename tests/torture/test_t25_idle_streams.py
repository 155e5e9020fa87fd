"""T25: Optional streams of a server may be missing or break: tools work, and reconnects are limited."""

import asyncio
import itertools
import time
from contextlib import AsyncExitStack

import pytest

from dragoman.connections import subscription_stream
from dragoman.transports import http
from tests.servers.web import Answer, Streamable, answers
from tests.servers.web.answers import EVENTS
from tests.torture.bystander_host import BystanderHost, until
from tests.torture.network import COMES_BACK, LEGACY, MODERN, Way, end_of

STREAMS = {LEGACY: "GET", MODERN: "subscriptions/listen"}
"""How a stream is opened on which a server sends its own messages."""
WINDOW_SECONDS = 2.0
MAXIMUM_ATTEMPTS = 5
"""More attempts than this within the window are too many."""

FLAPPING: dict[str, Answer] = {
    "not-offered": answers.empty(405),
    "not-found": answers.status(404),
    "page": answers.html(),
    "ends-at-once": answers.body(lambda _: b": hello\n\n", headers=EVENTS),
    "ends-with-an-id": answers.body(lambda _: b"id: 1\nretry: 0\ndata:\n\n", headers=EVENTS),
    "asks-to-come-at-once": answers.body(lambda _: b"retry: 0\n\n", headers=EVENTS),
    "breaks": answers.raw(
        lambda _: (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"
        )
    ),
    "hangs-up": answers.hang_up(),
    "never": answers.never(),
    "broken": answers.status(500),
    "overloaded": answers.status(503, retry_after="0"),
    "too-often": answers.status(429, retry_after="0"),
    "noise": answers.body(lambda _: b"data: no message\n\n" * 100, headers=EVENTS),
}
ONCE = {"not-offered", "not-found", "page", "never"}
"""Answers after which nothing is retried."""


async def call_during_windows(a: BystanderHost, names: list[str]) -> float:
    """Every server's tools are called all the time, and always work.

    Returns the number of windows this took: on a busy machine, the last calls may end late.
    """
    began = time.monotonic()
    deadline = began + WINDOW_SECONDS
    while time.monotonic() < deadline:
        ends = await asyncio.gather(*(end_of(a, "echo", server=name, text=name) for name in names))
        assert ends == names
        await asyncio.sleep(0.02)
    return (time.monotonic() - began) / WINDOW_SECONDS


def requests_of(server: Streamable, what: str) -> int:
    return len(server.asked(what))


@pytest.mark.slow
@pytest.mark.requirement("TRN-2")
async def test_t25_a_stream_that_always_breaks_affects_no_call_and_is_not_reopened_too_often(bystander_host):
    async with AsyncExitStack() as stack:
        entries, asked_for = {}, {}
        for (revision, what), (habit, answer) in itertools.product(STREAMS.items(), FLAPPING.items()):
            way = Way("http", revision, "json")
            server = await stack.enter_async_context(way.server(on={what: answer}))
            name = f"{what.partition('/')[0]}-{habit}"
            entries[name] = way.entry(server)
            asked_for[name] = (server, what)
        limits = {**COMES_BACK, "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE": len(entries)}
        async with bystander_host(others=entries, settings=limits) as a:
            await until(lambda: all(requests_of(server, what) for server, what in asked_for.values()))
            before = {name: requests_of(server, what) for name, (server, what) in asked_for.items()}
            windows = await call_during_windows(a, list(entries))
            counts = {name: requests_of(server, what) for name, (server, what) in asked_for.items()}
            again = {name: requests_of(server, "initialize") for name, (server, _) in asked_for.items()}
    storms = {
        name: count for name, count in counts.items() if count - before[name] > MAXIMUM_ATTEMPTS * windows
    }
    assert storms == {}, windows
    assert {count for name, count in counts.items() if name.partition("-")[2] in ONCE} == {1}, counts
    assert max(again.values()) == 1, "none of it cost the connection"


@pytest.fixture
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams are reopened after a short delay."""
    monkeypatch.setattr(http, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(subscription_stream, "FIRST_PAUSE_SECONDS", 0.2)


@pytest.mark.slow
@pytest.mark.requirement("TRN-2", "LIF-8")
@pytest.mark.parametrize(("revision", "what"), STREAMS.items(), ids=["get", "listen"])
async def test_t25_a_stream_closed_on_a_timer_is_reopened_and_still_reports_changes(
    bystander_host, short_delays, revision: str, what: str
):
    way = Way("http", revision, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        await server.wait_for(what)
        for number in range(1, 3):
            server.end_streams()
            assert await end_of(a, "echo", text="x") == "x", "tools do not need the stream"
            await server.wait_for(what, number + 1, seconds=5)
        assert requests_of(server, what) == 3
        server.in_memory.add_tool("fresh", lambda _, __: "I am new")
        await stream_is_open(server)
        server.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        await until(lambda: "mcp__hostile__fresh" in {tool.name for tool in a.host.tools()})
        assert await end_of(a, "fresh") == "I am new"
        assert server.faults == []


async def stream_is_open(server: Streamable) -> None:
    await until(lambda: server._viewings)


@pytest.mark.slow
@pytest.mark.requirement("LIF-7")
async def test_t25_a_restart_is_noticed_on_the_stream_without_any_call(bystander_host, short_delays):
    way = Way("http", LEGACY, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        await stream_is_open(server)
        server.in_memory.add_tool("fresh", lambda _, __: "I am new")
        await server.lose_sessions()
        server.end_streams()
        await until(lambda: "mcp__hostile__fresh" in {tool.name for tool in a.host.tools()})
        assert len(server.asked("initialize")) == 2


@pytest.mark.requirement("LIF-5")
async def test_t25_idle_connections_closed_by_the_server_affect_no_call(bystander_host, era: str):
    for replies in ("json", "sse"):
        way = Way("http", era, replies)
        async with way.server(get_stream=False) as server, bystander_host(way.entry(server)) as a:
            for _ in range(10):
                assert await end_of(a, "echo", text="x") == "x"
                server.cut_connections()
                await a.bystander.call_often(2)  # time for the notification to arrive
            assert len(server.asked("tools/call")) == 10
            assert len(server.asked("initialize")) <= 1


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
async def test_t25_an_sse_server_that_ends_its_stream_repeatedly_is_usable_in_between(bystander_host):
    way = Way("sse")
    settings = {**COMES_BACK, "DRAGOMAN_RECONNECT_WAIT_MS": 50, "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 100}
    async with (
        way.server(close_every=0.3) as server,
        bystander_host(way.entry(server), settings=settings) as a,
    ):
        good = 0
        deadline = time.monotonic() + WINDOW_SECONDS
        while time.monotonic() < deadline:
            good += await end_of(a, "echo", text="x") == "x"
        assert good > 20
        assert len(server.asked("GET")) < 20


@pytest.mark.slow
async def test_t25_an_idle_connection_sends_no_request(bystander_host, era: str):
    """No polling and no keep-alive on an idle connection."""
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        await server.wait_for(STREAMS[era])
        before = len(server.asks)
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            await a.bystander.call_often(10)
        assert len(server.asks) == before

"""T60: A line without an end is refused at the limit, in linear time and bounded memory."""

import asyncio
import json
import time

import aiohttp
import pytest
from aiohttp import web

from dragoman.errors import CallTimeout, ConnectionLost, MessageTooLarge
from tests.servers import stdio_server
from tests.servers.web import Ask, answers, http_sse, streamable, websocket
from tests.torture.bystander_host import MEGABYTE, at_once, until
from tests.torture.conftest import LEGACY

LIMIT = {"DRAGOMAN_MESSAGE_LIMIT_BYTES": 8 * MEGABYTE}
ALLOWANCE = 64 * MEGABYTE
GIGABYTE = 1000  # in megabytes


@pytest.mark.parametrize("kind", ["id_first", "id_last", "noise"])
async def test_t60_a_gigabyte_without_a_line_end_is_refused_at_the_limit(bystander_host, era, kind):
    async with bystander_host(stdio_server("never_ends_a_line.py", protocol=era), settings=LIMIT) as a:
        with pytest.raises((MessageTooLarge, ConnectionLost), match="hostile"):
            async with at_once(5):
                await a.call("pour", kind=kind, megabytes=GIGABYTE)
        await until(lambda: a.view.status == "failed")
        assert "writes to stdout without a line end" in (a.view.reason or "")
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE


async def test_t60_a_gigabyte_is_refused_at_the_default_limit_too(bystander_host):
    async with bystander_host(stdio_server("never_ends_a_line.py")) as a:
        with pytest.raises(MessageTooLarge, match=r"hostile.*67108864 bytes"):
            async with at_once(10):
                await a.call("pour", kind="id_first", megabytes=GIGABYTE)
        await until(lambda: a.view.status == "failed")
        assert a.pulse.growth_bytes < 64 * MEGABYTE + ALLOWANCE


@pytest.mark.parametrize("kind", ["reply", "id_last"])
async def test_t60_a_reply_over_the_limit_fails_its_call_and_the_session_continues(bystander_host, era, kind):
    async with bystander_host(stdio_server("never_ends_a_line.py", protocol=era), settings=LIMIT) as a:
        for _ in range(3):
            with pytest.raises(MessageTooLarge, match="hostile"):
                async with at_once():
                    await a.call("pour", kind=kind, megabytes=12)
            await a.serves_still()
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE


async def test_t60_time_grows_linearly_with_size(bystander_host):
    async with bystander_host(stdio_server("never_ends_a_line.py")) as a:
        seconds = {}
        for megabytes in (4, 32):
            await a.call("pour", kind="reply", megabytes=megabytes)  # the first one warms up
            started = time.thread_time()
            outcome = await a.outcome("pour", kind="reply", megabytes=megabytes)
            assert outcome.saved[0].size_bytes == megabytes * 1_000_000
            seconds[megabytes] = time.thread_time() - started
        assert seconds[32] < 8 * 3 * seconds[4], (
            "eight times the size, with room for noise; squared: 64 times"
        )


async def test_t60_very_many_tiny_messages_neither_block_nor_accumulate(bystander_host):
    """Allowed by the setting here; by default such a server is disconnected, see T109."""
    settings = {"DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND": 1_000_000}
    async with bystander_host(stdio_server("floods_logs.py"), settings=settings) as a:
        async with at_once(50):
            assert await a.call("chatter", count=400_000, seconds=60) == "said 400000"
        assert a.pulse.growth_bytes < ALLOWANCE // 4
        await a.serves_still()


# The same over the network: events and frames without an end.

ENDLESS = {"line": b"0" * 65536, "lines": (b"\ndata: " + b"0" * 121) * 512, "comment": b": hush " * 8192}


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("piece", ENDLESS.values(), ids=ENDLESS.keys())
async def test_t60_an_event_without_an_end_is_refused_at_the_limit(bystander_host, era, piece):
    async with (
        streamable(revisions=(era,), on={"tools/call": answers.endless_event(piece)}) as server,
        bystander_host({"url": server.url, "protocol": era}, settings=LIMIT) as a,
    ):
        with pytest.raises(MessageTooLarge, match="hostile"):
            async with at_once(10):
                await a.call("echo", text="?")
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE
        server.on.clear()
        async with at_once():
            assert await a.call("echo", text="still there?") == "still there?"


@pytest.mark.parametrize("line", [b": hush", b"mood: good", b"data", b"id: 7\n"])
async def test_t60_endless_lines_without_data_are_not_stored_and_the_deadline_applies(bystander_host, line):
    """A call ends when its time is up, or when the connection is ended because of the flood."""
    async with (
        streamable(on={"tools/call": answers.endless_event((b"\n" + line) * 2000)}) as server,
        bystander_host({"url": server.url}, settings=LIMIT) as a,
    ):
        with pytest.raises((CallTimeout, MessageTooLarge, ConnectionLost), match="hostile"):
            async with at_once(0.4 + 1):
                await a.call("echo", text="?", seconds=0.4)
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE


@pytest.mark.requirement("TRN-9")
async def test_t60_an_event_without_an_end_on_the_get_stream_ends_that_stream_only(bystander_host):
    """The stream on which a legacy server sends its own messages."""
    on = {"GET": answers.first(1, answers.endless_event())}
    async with (
        streamable(revisions=(LEGACY,), on=on) as server,
        bystander_host({"url": server.url, "protocol": LEGACY}, settings=LIMIT) as a,
    ):
        await server.wait_for("GET", 2, seconds=10)
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE
        assert await a.call("echo", text="still there?") == "still there?"
        assert len(server.asked("initialize")) == 1


@pytest.mark.requirement("TRN-9")
async def test_t60_an_event_without_an_end_on_the_only_stream_ends_the_connection(bystander_host):
    async def endless(ask: Ask) -> web.StreamResponse:
        response = web.StreamResponse(headers=answers.EVENTS)
        await response.prepare(ask.http)
        await response.write(b"event: endpoint\ndata: /messages\n\ndata: ")
        while True:
            await response.write(b"0" * 65536)

    async with (
        http_sse(on={"GET": endless, "POST": answers.empty(202)}) as server,
        bystander_host({"type": "sse", "url": server.url}, settings=LIMIT, wait=False) as a,
    ):
        async with at_once(10):
            await a.host.ready(timeout=20)
        await until(lambda: a.view.status == "failed")
        assert "over the limit" in (a.view.reason or "")
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("frames", ["one", "fragments"])
async def test_t60_a_frame_without_an_end_ends_the_connection_at_the_limit(bystander_host, frames):
    async with websocket() as server, bystander_host({"type": "ws", "url": server.url}, settings=LIMIT) as a:
        (socket,) = server.sockets
        writer = socket._writer
        assert writer is not None
        with pytest.raises((MessageTooLarge, ConnectionLost), match="hostile"):
            async with at_once(10):
                await asyncio.gather(_pour(socket, writer, frames), a.call("hold"))
        await until(lambda: a.view.status == "failed")
        assert "larger than the limit of 8388608 bytes" in (a.view.reason or "")
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE


async def _pour(socket: web.WebSocketResponse, writer: aiohttp.http.WebSocketWriter, how: str) -> None:
    """Raw bytes of a message of a gigabyte, for as long as they are read."""
    transport = writer.transport
    block = b"y" * MEGABYTE
    if how == "one":
        transport.write(b"\x81\x7f" + (1000 * MEGABYTE).to_bytes(8, "big"))
    for number in range(1000):
        if transport.is_closing():
            return
        if how == "fragments":
            transport.write((b"\x00" if number else b"\x01") + b"\x7f" + MEGABYTE.to_bytes(8, "big"))
        transport.write(block)
        await asyncio.sleep(0)
        while transport.get_write_buffer_size() > MEGABYTE and not transport.is_closing():
            await asyncio.sleep(0.001)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http", "sse", "ws"])
async def test_t60_many_tiny_messages_over_the_network_neither_block_nor_accumulate(bystander_host, kind):
    """Log messages, on any stream, before the reply."""
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    event = b"data: " + json.dumps(log).encode() + b"\n\n"
    async with (
        {"http": streamable, "sse": http_sse, "ws": websocket}[kind]() as server,
        bystander_host({"type": kind, "url": server.url}) as a,
    ):
        if kind == "http":
            server.on["tools/call"] = answers.events(
                lambda reply: event * 100_000 + b"data: " + reply + b"\n\n"
            )
            async with at_once(20):
                assert await a.call("echo", text="?", seconds=30) == "fine"
        else:
            for _ in range(20):
                for _ in range(500):
                    server.push(log)
                async with at_once(10):
                    assert await a.call("echo", text="?", seconds=30) == "?"
        assert a.pulse.growth_bytes < 2 * ALLOWANCE

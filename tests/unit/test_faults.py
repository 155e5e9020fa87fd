"""The fault proxy does to connections what its verbs say, byte by byte."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults import FaultProxy

WORDS = b"abcdefghij" * 10


@asynccontextmanager
async def echo_server() -> AsyncIterator[int]:
    """Sends back what it gets, and counts nothing."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(4096):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.fixture
async def proxy() -> AsyncIterator[FaultProxy]:
    async with echo_server() as port, FaultProxy(port) as proxy:
        yield proxy


class Client:
    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.loop = asyncio.get_running_loop()

    async def say(self, words: bytes) -> None:
        await self.loop.sock_sendall(self.end, words)

    async def hear(self, size: int = 4096) -> bytes:
        async with asyncio.timeout(5):
            return await self.loop.sock_recv(self.end, size)

    async def hear_out(self) -> tuple[bytes, str]:
        """All that comes, and how it ended."""
        heard = b""
        try:
            while piece := await self.hear():
                heard += piece
        except ConnectionResetError:
            return heard, "reset"
        return heard, "end"


@asynccontextmanager
async def client(proxy: FaultProxy) -> AsyncIterator[Client]:
    with socket.socket() as end:
        end.setblocking(False)
        await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", proxy.port))
        yield Client(end)


async def test_a_healthy_proxy_passes_and_counts_bytes(proxy: FaultProxy) -> None:
    async with client(proxy) as one:
        await one.say(WORDS)
        one.end.shutdown(socket.SHUT_WR)
        assert await one.hear_out() == (WORDS, "end")
    assert (proxy.connections, proxy.up.bytes, proxy.down.bytes) == (1, len(WORDS), len(WORDS))


@pytest.mark.parametrize("count", [0, 1, 7, 99, 100])
@pytest.mark.parametrize(("verb", "ending"), [("reset_at", "reset"), ("close_at", "end")])
async def test_a_cut_happens_after_an_exact_number_of_bytes(
    proxy: FaultProxy, verb: str, ending: str, count: int
) -> None:
    getattr(proxy.down, verb)(count)
    async with client(proxy) as one:
        await one.say(WORDS)
        assert await one.hear_out() == (WORDS[:count], ending)


async def test_a_cut_of_the_client_direction_keeps_the_rest_from_the_server(proxy: FaultProxy) -> None:
    proxy.up.reset_at(7)
    async with client(proxy) as one:
        await one.say(WORDS)
        assert (await one.hear_out())[1] == "reset"
    assert proxy.up.bytes == 7


async def test_a_cut_counts_bytes_from_its_request(proxy: FaultProxy) -> None:
    async with client(proxy) as one:
        await one.say(WORDS)
        assert await one.hear() == WORDS
        proxy.down.reset_at(3)
        await one.say(WORDS)
        assert await one.hear_out() == (WORDS[:3], "reset")


async def test_a_cut_can_apply_to_one_connection_only(proxy: FaultProxy) -> None:
    proxy.down.reset_at(3, times=1)
    for expected in (WORDS[:3], WORDS):
        async with client(proxy) as one:
            await one.say(WORDS)
            assert await one.hear(3) == expected[:3]
            if expected == WORDS:
                assert await one.hear() == WORDS[3:]


async def test_a_refusing_proxy_keeps_its_port_and_open_connections(proxy: FaultProxy) -> None:
    async with client(proxy) as standing:
        await standing.say(b"a")
        assert await standing.hear() == b"a"
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            async with client(proxy):
                pass
        await standing.say(b"still")
        assert await standing.hear() == b"still"
    proxy.accept()
    async with client(proxy) as later:
        await later.say(b"back")
        assert await later.hear() == b"back"


async def test_all_connections_can_be_cut_at_once(proxy: FaultProxy) -> None:
    async with client(proxy) as one, client(proxy) as two:
        for each in (one, two):
            await each.say(b"a")
            assert await each.hear() == b"a"
        proxy.cut_all()
        assert [await one.hear_out(), await two.hear_out()] == [(b"", "reset")] * 2
    assert proxy.open_connections == 0


async def test_bytes_dropped_by_a_black_hole_never_arrive(proxy: FaultProxy) -> None:
    proxy.black_hole()
    async with client(proxy) as swallowed:
        await swallowed.say(WORDS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await swallowed.hear()
        proxy.heal()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await swallowed.hear()
        async with client(proxy) as fresh:
            await fresh.say(WORDS)
            assert await fresh.hear() == WORDS
    assert proxy.up.bytes == len(WORDS)


async def test_only_one_direction_can_be_a_black_hole(proxy: FaultProxy) -> None:
    proxy.down.black_hole()
    async with client(proxy) as one:
        await one.say(WORDS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await one.hear()
    assert (proxy.up.bytes, proxy.down.bytes) == (len(WORDS), 0)


async def test_latency_bandwidth_and_slow_close_delay_bytes(proxy: FaultProxy) -> None:
    async with client(proxy) as one:
        proxy.down.latency(0.1)
        assert await _seconds_for(one) >= 0.1
        proxy.heal()
        proxy.down.bandwidth(len(WORDS) / 0.15)
        assert await _seconds_for(one) >= 0.1
        proxy.heal()
        assert await _seconds_for(one) < 0.1
        proxy.down.slow_close(0.1)
        started = time.monotonic()
        one.end.shutdown(socket.SHUT_WR)
        assert await one.hear_out() == (b"", "end")
        assert time.monotonic() - started >= 0.1


async def test_a_slicer_passes_small_pieces(proxy: FaultProxy) -> None:
    proxy.slicer(1)
    async with client(proxy) as one:
        await one.say(WORDS)
        pieces = [await one.hear()]
        while sum(map(len, pieces)) < len(WORDS):
            pieces.append(await one.hear())
    assert b"".join(pieces) == WORDS
    assert len(pieces) > 5


async def _seconds_for(one: Client) -> float:
    started = time.monotonic()
    await one.say(WORDS)
    heard = b""
    while len(heard) < len(WORDS):
        heard += await one.hear()
    assert heard == WORDS
    return time.monotonic() - started

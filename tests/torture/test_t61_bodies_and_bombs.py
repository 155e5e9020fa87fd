"""T61: Bodies that are too large, also after decompression, are refused at the limit."""

import asyncio
import gzip
import itertools
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from dragoman import DragomanError
from dragoman.errors import MessageTooLarge
from tests.servers.web import Answer, Ask, answers
from tests.servers.web.answers import EVENTS, JSON, reply_to
from tests.torture.bystander_host import MEGABYTE, at_once
from tests.torture.network import COMES_BACK, LEGACY, Way, end_of, serves

LIMIT = 4 * MEGABYTE
SETTINGS = {**COMES_BACK, "DRAGOMAN_MESSAGE_LIMIT_BYTES": LIMIT}
ALLOWANCE = 64 * MEGABYTE
BOMB = 300 * MEGABYTE
PIECE = b"0" * 65536


def _block() -> bytes:
    """A megabyte of zeros, compressed so that any number of these may follow one another."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(b"0" * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)


def streamed(status: int, headers: dict[str, str], body: Callable[[], Any]) -> Answer:
    """A body written in parts, for as long as it is read."""

    async def answer(ask: Ask) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers=headers)
        await response.prepare(ask.http)
        for piece in body():
            await response.write(piece)
            await asyncio.sleep(0)  # the work of the host is measured, not of this server
        await response.write_eof()
        return response

    return answer


def pieces(count: int) -> Callable[[], Any]:
    return lambda: (PIECE for _ in range(count))


GIGABYTE = 1024 * MEGABYTE // len(PIECE)
RAW_DEFLATE = _block() * (BOMB // MEGABYTE)
"""None of the bombs has an end: a client that reaches it has read too much."""
GZIP, DEFLATE = gzip.compress(b"")[:10] + RAW_DEFLATE, b"\x78\x9c" + RAW_DEFLATE
NESTED, MEMBERS = gzip.compress(GZIP), gzip.compress(b"0" * MEGABYTE) * (BOMB // MEGABYTE)
ENCODED = {**JSON, "Content-Encoding": "gzip"}

TOO_LARGE: dict[str, Answer] = {
    "gzip": streamed(200, ENCODED, lambda: [GZIP]),
    "deflate": streamed(200, {**JSON, "Content-Encoding": "deflate"}, lambda: [DEFLATE]),
    "deflate without a header": streamed(200, {**JSON, "Content-Encoding": "deflate"}, lambda: [RAW_DEFLATE]),
    "a bomb byte by byte": streamed(
        200, ENCODED, lambda: (GZIP[n : n + 97] for n in range(0, len(GZIP), 97))
    ),
    "many gzip members": streamed(200, ENCODED, lambda: [MEMBERS]),
    "a gigabyte": streamed(200, JSON, pieces(GIGABYTE)),
    "a gigabyte that says so": streamed(200, {**JSON, "Content-Length": str(2**30)}, pieces(GIGABYTE)),
    "no end": answers.endless(),
    "no end, of tiny pieces": streamed(200, JSON, lambda: itertools.repeat(b"0" * 500)),
    "just over": answers.body(lambda ask: reply_to(ask, "x" * LIMIT)),
    "an event without end": answers.endless_event(),
    "an event of many lines": streamed(
        200, EVENTS, lambda: (b"data: " + PIECE + b"\n" for _ in range(GIGABYTE))
    ),
    "a bomb of an event": streamed(200, {**EVENTS, "Content-Encoding": "gzip"}, lambda: [GZIP]),
    "a comment without end": streamed(200, EVENTS, lambda: (b":" + PIECE for _ in range(GIGABYTE))),
}
"""Bodies that are refused because of their size."""


@pytest.mark.slow
@pytest.mark.requirement("TRN-9")
async def test_t61_a_body_that_is_too_large_before_or_after_decompression_is_refused_at_the_limit(
    bystander_host, era: str, light_heap
):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=SETTINGS) as a:
        for what, answer in TOO_LARGE.items():
            server.on["tools/call"] = answers.first(1, answer)
            async with at_once(5):
                ended = await end_of(a, "echo", text="x", seconds=20)
            assert isinstance(ended, MessageTooLarge), f"{what}: {ended!r}"
            assert a.pulse.growth_bytes < LIMIT + ALLOWANCE, what
            await serves(a)
        assert len(server.asked("initialize")) <= 1, "none of it cost the connection"


UNUSUAL: dict[str, Answer] = {
    "nested gzip": streamed(200, {**JSON, "Content-Encoding": "gzip, gzip"}, lambda: [NESTED]),
    "gzip of a bomb": streamed(200, {**JSON, "Content-Encoding": "gzip, deflate"}, lambda: [GZIP]),
    "br, which nobody asked for": streamed(200, {**JSON, "Content-Encoding": "br"}, lambda: [GZIP]),
    "zstd, which nobody asked for": streamed(200, {**JSON, "Content-Encoding": "zstd"}, lambda: [GZIP]),
    "an error that is a bomb": streamed(500, ENCODED, lambda: [GZIP]),
    "an error without end": streamed(500, {"Content-Type": "text/plain"}, pieces(GIGABYTE)),
    "a page without end": streamed(200, {"Content-Type": "text/html"}, pieces(GIGABYTE)),
    "a lost session without end": streamed(404, JSON, pieces(GIGABYTE)),
    "a redirect without end": streamed(302, {"Location": "http://example.invalid/"}, pieces(GIGABYTE)),
}
"""Bodies that are refused for any reason."""


@pytest.mark.slow
@pytest.mark.requirement("TRN-9")
async def test_t61_no_other_body_is_read_beyond_the_limit(bystander_host, era: str, light_heap):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=SETTINGS) as a:
        for what, answer in UNUSUAL.items():
            server.on["tools/call"] = answers.first(1, answer)
            async with at_once(5):
                ended = await end_of(a, "echo", text="x", seconds=20)
            if what != "a lost session without end":  # with a new session, it is answered
                assert isinstance(ended, DragomanError), f"{what}: {ended!r}"
                assert len(str(ended)) < 2000
            assert a.pulse.growth_bytes < LIMIT + ALLOWANCE, what
            await serves(a)


FLOODS = {
    "bomb": streamed(200, ENCODED, lambda: [GZIP]),
    "events": streamed(200, EVENTS, pieces(GIGABYTE)),
    "endless": answers.endless(),
}


@pytest.mark.slow
@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("flood", FLOODS.values(), ids=list(FLOODS))
async def test_t61_floods_in_bodies_without_expected_content_have_no_effect(
    bystander_host, flood: Answer, light_heap
):
    way = Way("http", LEGACY, "json")
    async with way.server() as server:

        async def after_the_end(ask: Ask) -> Any:
            await server._delete(ask)
            return await flood(ask)

        server.on.update({"GET": flood, "notifications/initialized": flood, "DELETE": after_the_end})
        async with bystander_host(way.entry(server), settings=SETTINGS) as a:
            await serves(a)
            await a.host.reconnect("hostile")
            await serves(a)
        assert len(server.asked("DELETE")) == 2
        assert a.pulse.growth_bytes < LIMIT + ALLOWANCE


@pytest.mark.slow
@pytest.mark.requirement("TRN-9", "LIF-3")
async def test_t61_a_flood_while_connecting_fails_the_connect(bystander_host, era: str, light_heap):
    way = Way("http", era, "json")
    what = "initialize" if era == LEGACY else "server/discover"
    for flood in (TOO_LARGE["gzip"], TOO_LARGE["a gigabyte"], TOO_LARGE["an event without end"]):
        async with way.server(on={what: flood}) as server:
            limits = {**SETTINGS, "DRAGOMAN_RECONNECT_ATTEMPTS": 0}
            async with at_once(8), bystander_host(way.entry(server), settings=limits) as a:
                assert a.view.status == "failed"
                assert a.view.reason
            assert a.pulse.growth_bytes < LIMIT + ALLOWANCE


@pytest.mark.slow
@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("way", [Way("sse"), Way("ws")], ids=str)
async def test_t61_a_message_over_the_limit_on_a_shared_connection_is_refused(
    bystander_host, way: Way, light_heap
):
    async with way.server() as server:
        server.in_memory.add_tool("pour", lambda given, _: "x" * given["size"])
        async with bystander_host(way.entry(server), settings=SETTINGS) as a:
            assert await end_of(a, "pour", size=LIMIT - 4096, raw=True) == "x" * (LIMIT - 4096)
            async with at_once(5):
                ended = await end_of(a, "pour", size=3 * LIMIT)
            assert isinstance(ended, DragomanError)
            assert "limit" in str(ended)
            await serves(a)
        assert a.pulse.growth_bytes < LIMIT + ALLOWANCE


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_t61_a_reply_within_the_limit_is_read_with_any_compression(
    bystander_host, era: str, coding: Any
):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=SETTINGS) as a:
        size = LIMIT - 4096
        server.on["tools/call"] = answers.first(1, answers.bomb(coding, size))
        assert await end_of(a, "echo", raw=True) == "0" * size

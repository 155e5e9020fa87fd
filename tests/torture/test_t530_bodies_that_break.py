"""T530: the body of a response, or a stream, breaks in the middle while its connection stays open: waiting
calls fail at once, and the server is used again."""

import asyncio

import pytest
from aiohttp import web

from tests.servers.web import Ask
from tests.servers.web.answers import EVENTS, JSON
from tests.torture.bystander_host import at_once
from tests.torture.network import COMES_BACK, HTTP_WAYS, Way, end_of, facts, serves

pytestmark = pytest.mark.requirement("TRN-2")
NO_CHUNK = b"zz\r\n"
"""What stands where the size of a chunk should be."""
CONNECTION_LOST = ("connection-lost", True)


async def let_the_client_read() -> None:
    """The client, in this process, reads what was sent so far."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("way", HTTP_WAYS, ids=str)
async def test_t530_a_call_whose_response_breaks_fails_at_once(bystander_host, way: Way):
    async def answer(ask: Ask) -> web.StreamResponse:
        response = web.StreamResponse(headers=EVENTS if way.replies == "sse" else JSON)
        response.enable_chunked_encoding()
        await response.prepare(ask.http)
        await response.write(b'data: {"jsonrpc"'[6 * (way.replies == "json") :])
        await let_the_client_read()
        assert ask.http.transport is not None
        ask.http.transport.write(NO_CHUNK)
        await asyncio.Event().wait()
        return response

    async with way.server(on={"tools/call": answer}) as server, bystander_host(way.entry(server)) as a:
        async with at_once():
            assert facts(await end_of(a, "echo", seconds=20, text="x")) == CONNECTION_LOST
        del server.on["tools/call"]
        await serves(a)


async def test_t530_a_server_whose_only_stream_breaks_is_reconnected(bystander_host):
    way, streams = Way("sse"), list[asyncio.Transport]()

    async def remember(ask: Ask) -> None:
        assert ask.http.transport is not None
        streams.append(ask.http.transport)

    async def answer(ask: Ask) -> web.StreamResponse:
        streams[-1].write(NO_CHUNK)
        return web.Response(status=202)

    on = {"GET": remember, "tools/call": answer}
    async with way.server(on=on) as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        async with at_once():
            assert facts(await end_of(a, "echo", seconds=20, text="x")) == CONNECTION_LOST
        del server.on["tools/call"]
        await serves(a)
        assert len(streams) == 2

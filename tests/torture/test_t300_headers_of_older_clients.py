"""T300: headers that contradict the body, in sessions of the legacy era, in batches and beside `/sse`."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from dragoman.testing import InMemoryServer, ToolContext
from tests.gateway import Client, Json, gateway_of

pytestmark = pytest.mark.requirement("GWY-1")
CALL: Json = {"name": "box__go", "arguments": {"region": "south"}}
REQUEST: Json = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": CALL}
INITIALIZE: Json = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CONTRADICTING: list[dict[str, str]] = [
    {"Mcp-Param-Region": "north"},
    {"Mcp-Method": "tools/list"},
    {"Mcp-Name": "box__other"},
]
RIGHT = {"Mcp-Method": "tools/call", "Mcp-Name": "box__go", "Mcp-Param-Region": "south"}


@contextlib.asynccontextmanager
async def box() -> AsyncIterator[tuple[Client, list[str]]]:
    server, regions = InMemoryServer("box"), list[str]()

    async def go(arguments: Json, context: ToolContext) -> str:
        regions.append(arguments["region"])
        return "done"

    server.add_tool("go", go, properties={"region": {"type": "string", "x-mcp-header": "Region"}})
    async with gateway_of({"box": server}) as running, Client(running.url) as client:
        yield client, regions


@pytest.mark.parametrize("headers", CONTRADICTING, ids=str)
async def test_t300_a_session_refuses_headers_that_contradict_a_call(headers: dict[str, str]):
    async with box() as (client, regions):
        await client.initialize()
        refused = await client.post(REQUEST, **headers)
        assert (refused.status, regions) == (400, [])
        assert (await client.post(REQUEST, **RIGHT)).status == 200
        assert regions == ["south"]


@pytest.mark.parametrize("headers", [*CONTRADICTING, RIGHT], ids=str)
async def test_t300_a_batch_is_refused_with_headers_about_one_message(headers: dict[str, str]):
    async with box() as (client, regions):
        await client.initialize(revision="2025-03-26")
        refused = await client.post([REQUEST], **headers)
        assert (refused.status, regions) == (400, [])


@contextlib.asynccontextmanager
async def stream(client: Client) -> AsyncIterator[tuple[str, asyncio.StreamReader]]:
    """The URL for messages, and the events of a stream at `/sse`."""
    root = client.url.removesuffix("/mcp")
    async with client.http.get(f"{root}/sse", headers=client.headers) as response:
        yield root + (await next_data(response.content)), response.content  # type: ignore[misc]  # same methods


async def next_data(events: asyncio.StreamReader) -> str:
    while not (line := await events.readline()).startswith(b"data: "):
        assert line, "the stream has ended"
    return line.decode().removeprefix("data: ").strip()


@pytest.mark.parametrize("body", [REQUEST, [REQUEST]], ids=["message", "batch"])
@pytest.mark.parametrize("headers", CONTRADICTING, ids=str)
async def test_t300_messages_beside_an_sse_stream_with_contradicting_headers_are_refused(
    headers: dict[str, str], body: Json
):
    async with box() as (client, regions), stream(client) as (url, events):

        async def post(message: object, **more: str) -> int:
            given = {**client.headers, **more}
            async with client.http.post(url, data=json.dumps(message), headers=given) as response:
                return response.status

        await post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        await next_data(events)
        assert await post(body, **headers) == 400
        assert await post(REQUEST, **RIGHT) == 202
        await next_data(events)
        assert regions == ["south"]


async def test_t300_a_message_with_a_replaced_surrogate_is_still_checked_against_its_headers():
    async with box() as (client, regions), stream(client) as (url, _):
        body = json.dumps(REQUEST).replace("south", "\\ud83d")
        given = {**client.headers, "Mcp-Name": "box__other"}
        async with client.http.post(url, data=body, headers=given) as response:
            assert (response.status, regions) == (400, [])

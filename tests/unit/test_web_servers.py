"""The test web servers work with the official client, and show the requested faults."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from mcp import Client
from mcp.client.sse import sse_client

from tests.servers.web import Site, answers, http_sse, site, streamable, websocket
from tests.servers.web.checks import decoded

HEADERS = {"Accept": "application/json, text/event-stream"}
CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(
        headers=HEADERS, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=5)
    ) as client:
        yield client


# --- servers that behave ---


@pytest.mark.parametrize("replies", ["json", "sse"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_the_official_client_works_with_the_streamable_http_test_server(
    revision: str, replies: Any
) -> None:
    seen: list[float] = []
    notices: list[str] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async def noticed(message: Any) -> None:
        notices.append(message.method)

    async with streamable(revisions=(revision,), replies=replies) as server:  # noqa: SIM117
        async with Client(server.url, message_handler=noticed) as client:
            assert client.protocol_version == revision
            assert "echo" in {tool.name for tool in (await client.list_tools()).tools}
            assert text_of(await client.call_tool("add", {"a": 40, "b": 2})) == "42"
            await client.call_tool("count", {"to": 3, "pause": 0.01}, progress_callback=progressed)
            routed = {"region": "Zürich", "shard": 3, "dry": True}
            assert json.loads(text_of(await client.call_tool("route", routed))) == routed
            assert text_of(await client.call_tool("ledger", {"key": "a"})) == "1"
            await client.call_tool("change", {})
            await client.call_tool("fresh", {})
    assert seen == [1, 2, 3]
    assert ("notifications/tools/list_changed" in notices) is (revision != "2026-07-28")
    assert server.faults == []
    assert server.ledger.counts == {"a": 1}
    assert len(server.asked("DELETE")) == (0 if revision == "2026-07-28" else 1)


async def test_a_stream_that_ends_early_can_be_resumed_with_the_last_event_id() -> None:
    async with (
        streamable(
            revisions=("2025-11-25",), resumable=True, priming=True, retry_ms=10, end_streams_after=0
        ) as server,
        Client(server.url) as client,
    ):
        assert text_of(await client.call_tool("add", {"a": 40, "b": 2})) == "42"
    assert any(ask.headers.get("Last-Event-ID") for ask in server.asked("GET"))


async def test_a_modern_request_whose_connection_is_closed_is_cancelled(http: aiohttp.ClientSession) -> None:
    async with streamable() as server:
        call = {**CALL, "params": {"name": "hold", "arguments": {}, "_meta": META}}
        asking = asyncio.create_task(post(http, server.url, call, "hold"))
        await server.ledger.wait_for("hold")
        asking.cancel()
        async with asyncio.timeout(5):
            while server.given_up != [7]:
                await asyncio.sleep(0.005)


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def post(http: aiohttp.ClientSession, url: str, message: Any, name: str, **headers: str) -> Any:
    standard = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": message["method"], "Mcp-Name": name}
    async with http.post(url, json=message, headers={**standard, **headers}) as response:
        return response.status, await response.json()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, None),
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Name": "other"}, -32020),
        ({"Mcp-Name": "=?base64?ZWNobw==?="}, None),
        ({"MCP-Protocol-Version": "2025-11-25"}, -32020),
        ({"Mcp-Param-Region": "surplus"}, None),
    ],
)
async def test_modern_headers_must_match_the_body(
    http: aiohttp.ClientSession, change: dict[str, str], code: int | None
) -> None:
    async with streamable(replies="json") as server:
        call = {**CALL, "params": {**CALL["params"], "_meta": META}}
        status, reply = await post(http, server.url, call, "echo", **change)
    assert (status, reply.get("error", {}).get("code")) == ((200, None) if code is None else (400, code))


async def test_a_modern_listener_is_notified_of_changes(http: aiohttp.ClientSession) -> None:
    async with streamable() as server:
        params = {"notifications": {"toolsListChanged": True}, "_meta": META}
        listen = {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
        async with http.post(server.url, json=listen, headers=headers) as response:
            heard = await until(response, b"acknowledged")
            server.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            heard += await until(response, b"list_changed")
    assert heard.count(b'"io.modelcontextprotocol/subscriptionId":"s"') == 2


async def until(response: aiohttp.ClientResponse, word: bytes) -> bytes:
    heard = b""
    while word not in heard:
        heard += await response.content.readany()
    return heard


async def test_http_sse_serves_the_official_client() -> None:
    async with http_sse() as server, Client(sse_client(server.url), mode="legacy") as client:
        assert client.protocol_version == "2024-11-05"
        assert text_of(await client.call_tool("add", {"a": 40, "b": 2})) == "42"


@pytest.mark.parametrize("frames", ["text", "binary"])
async def test_websocket_uses_the_mcp_subprotocol(http: aiohttp.ClientSession, frames: Any) -> None:
    async with (
        websocket(frames=frames) as server,
        http.ws_connect(server.url, protocols=("mcp",)) as socket,
    ):
        assert socket.protocol == "mcp"
        await socket.send_json(CALL)
        assert json.loads((await socket.receive()).data)["id"] == 7
        await server.close_sockets(1011, "tired")
        closed = await socket.receive()
        assert (closed.data, closed.extra) == (1011, "tired")
    assert server.messages == [CALL]


# --- servers that misbehave ---


@pytest.mark.parametrize("how", ["404", "404 -32001", "400 -32000", "200 -32600"])
async def test_a_session_is_lost_after_a_number_of_requests(http: aiohttp.ClientSession, how: Any) -> None:
    params = {"protocolVersion": "2025-03-26"}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    async with streamable(revisions=("2025-03-26",), replies="json", lost_after=1, lost_as=how) as server:
        async with http.post(server.url, json=opening) as response:
            session = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"]}
        async with http.post(server.url, json=CALL, headers=session) as response:
            assert "result" in await response.json()
        async with http.post(server.url, json=CALL, headers=session) as response:
            status, _, code = how.partition(" ")
            assert response.status == int(status)
            assert code in await response.text()


async def test_faulty_behaviours_can_be_added_and_removed(http: aiohttp.ClientSession) -> None:
    async with streamable(sessions=False, replies="json", revisions=("2025-03-26",)) as server:
        server.on["tools/call"] = answers.first(2, answers.status(503, retry_after="1"))
        statuses = [await status_of(http, server) for _ in range(3)]
        server.on["*"] = answers.after(1, answers.redirect(307, "http://127.0.0.1:1/"))
        statuses += [await status_of(http, server) for _ in range(2)]
        server.on.clear()
        statuses.append(await status_of(http, server))
    assert statuses == [503, 503, 200, 200, 307, 200]


async def status_of(http: aiohttp.ClientSession, server: Site) -> int:
    async with http.post(server.url, json=CALL, allow_redirects=False) as response:
        return response.status


@pytest.mark.parametrize("spelling", answers.ODD_EVENTS)
async def test_unusual_streams_contain_the_right_reply(http: aiohttp.ClientSession, spelling: str) -> None:
    async with (
        site(answers.events(answers.ODD_EVENTS[spelling])) as here,
        http.post(here.url, json=CALL) as response,
    ):
        lines = (await response.read()).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    data = [line.partition(b"data:")[2] for line in lines if b"data:" in line and b"sunny" not in line]
    assert json.loads(b"\n".join(data))["id"] == 7


@pytest.mark.parametrize("coding", ["gzip", "deflate", "gzip, gzip"])
async def test_a_compression_bomb_is_small_before_decompression(
    http: aiohttp.ClientSession, coding: Any
) -> None:
    async with (
        site(answers.bomb(coding, 5_000_000)) as here,
        http.post(here.url, json=CALL) as response,
    ):
        packed = await response.read()
        assert response.headers["Content-Encoding"] == coding
    assert len(packed) < 20_000
    opened = zlib.decompress(packed) if coding == "deflate" else gzip.decompress(packed)
    text = gzip.decompress(opened) if coding == "gzip, gzip" else opened
    assert len(json.loads(text)["result"]["content"][0]["text"]) == 5_000_000


@pytest.mark.parametrize("by", [-3, 50])
async def test_a_wrong_content_length_is_sent(by: int) -> None:
    async with site(answers.wrong_length(by)) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    assert f"Content-Length: {len(body) + by}".encode() in head


@pytest.mark.parametrize("answer", [answers.endless(), answers.endless_event(), answers.drip(0.001)])
async def test_an_endless_answer_continues_until_the_client_disconnects(
    http: aiohttp.ClientSession, answer: Any
) -> None:
    async with site(answer) as here, http.post(here.url, json=CALL) as response:
        for _ in range(5):
            assert await response.content.readany()


@pytest.mark.parametrize("answer", [answers.hang_up(), answers.never()])
async def test_a_missing_answer_sends_nothing(http: aiohttp.ClientSession, answer: Any) -> None:
    async with site(answer) as here:
        with pytest.raises((aiohttp.ServerDisconnectedError, TimeoutError)):
            async with asyncio.timeout(0.1), http.post(here.url, json=CALL):
                pass
        assert here.asked("tools/call")[0].message == CALL


def test_mirrored_values_are_decoded() -> None:
    assert decoded("=?base64?WsO8cmljaA==?=") == "Zürich"
    assert decoded("plain") == "plain"


def text_of(result: Any) -> str:
    return result.content[0].text

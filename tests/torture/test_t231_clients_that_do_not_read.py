"""T231: a client that stops reading is disconnected, its calls are cancelled, its send queue is bounded,
and other clients are not affected. No reply is lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from dragoman.gateway import outbox, streams, websocket
from dragoman.gateway.outbox import Outbox
from dragoman.testing import InMemoryServer
from dragoman.testing.server import ToolContext
from tests.gateway import ADA, BOB, MODERN, Client, Json, Running, gateway_of
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("GWY-1")
MB = 1024 * 1024
WAIT_SECONDS = 30.0
NOT_READING = "it does not read what it is sent"


class Desk(InMemoryServer):
    """`say` returns a given number of megabytes; `hold` never returns; `count` reports progress, and
    returns."""

    def __init__(self) -> None:
        super().__init__("desk")
        self.holding = 0
        self.cancelled = 0
        self.add_tool("say", self._say, properties={"mb": {"type": "number"}})
        self.add_tool("hold", self._hold)
        self.add_tool("count", self._count, properties={"to": {"type": "integer"}})

    def _say(self, arguments: Json, context: ToolContext) -> str:
        return "x" * int(arguments["mb"] * MB)

    async def _hold(self, arguments: Json, context: ToolContext) -> str:
        self.holding += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
        return ""

    async def _count(self, arguments: Json, context: ToolContext) -> str:
        for number in range(arguments["to"]):
            context.progress(number, message="m" * 1000)
            if number % 50 == 0:
                await asyncio.sleep(0)
        return "counted"


class Silent:
    """A client over a bare socket that reads only on request."""

    def __init__(self, port: int, token: str = ADA) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setblocking(False)
        self._port = port
        self._token = token

    async def connect(self) -> None:
        await asyncio.get_running_loop().sock_connect(self._socket, ("127.0.0.1", self._port))

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> None:
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            f"Authorization: Bearer {self._token}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
            f"Content-Length: {len(body)}",
        ]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def read_until(self, text: bytes) -> bytes:
        found = b""
        async with asyncio.timeout(10):
            while text not in found[-100:]:
                found += await asyncio.get_running_loop().sock_recv(self._socket, MB)
        return found

    def close(self) -> None:
        self._socket.close()


def call(request_id: int, tool: str, **arguments: Any) -> bytes:
    params: Json = {"name": f"desk__{tool}", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}).encode()


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-03-26",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
).encode()
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def frame(message: bytes) -> bytes:
    """A masked text frame; the mask is zero."""
    size = len(message)
    length = bytes([0x80 | size]) if size < 126 else bytes([0xFE]) + size.to_bytes(2, "big")
    return b"\x81" + length + b"\0\0\0\0" + message


async def over_websocket(client: Silent) -> Callable[[bytes], Any]:
    await client.connect()
    key = b64encode(os.urandom(16)).decode()
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
    await client.request("GET", "/ws", **upgrade, Sec_WebSocket_Key=key)
    await client.read_until(b"\r\n\r\n")

    async def send(message: bytes) -> None:
        await client.send(frame(message))

    return send


async def over_sse(client: Silent) -> Callable[[bytes], Any]:
    await client.connect()
    await client.request("GET", "/sse")
    found = await client.read_until(b"\n\n\r\n")
    path = found.partition(b"data: ")[2].split(b"\n")[0].decode()

    async def send(message: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", client._port)  # pyright: ignore[reportPrivateUsage]
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{client._port}\r\nAuthorization: Bearer {ADA}\r\n"  # pyright: ignore[reportPrivateUsage]
            f"Content-Type: application/json\r\nContent-Length: {len(message)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + message)
        await reader.read()
        writer.close()

    return send


@contextlib.asynccontextmanager
async def silent(running: Running, token: str = ADA) -> AsyncIterator[Silent]:
    client = Silent(running.port, token)
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize("connect", [over_websocket, over_sse])
async def test_t231_a_client_with_a_full_send_queue_is_disconnected_and_its_calls_are_cancelled(
    connect: Callable[[Silent], Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outbox, "WAITING_BYTES", 8 * MB)
    desk = Desk()
    async with gateway_of({"desk": desk}) as running, silent(running) as client:
        reported: list[str] = []
        running.gateway.report = reported.append
        send = await connect(client)
        await send(INITIALIZE)
        await send(INITIALIZED)
        await send(call(1, "hold"))
        await until(lambda: desk.holding == 1)
        for number in range(2, 12):
            await send(call(number, "say", mb=2))
        await until(lambda: running.gateway.metrics.disconnected.total() == 1, seconds=20)
        assert dict(running.gateway.metrics.disconnected) == {NOT_READING: 1}
        assert reported == [f"a client of ada was disconnected: {NOT_READING}"]
        await until(lambda: desk.cancelled == 1)
        await until(lambda: running.gateway.client_count == 0)


@pytest.mark.parametrize("connect", [over_websocket, over_sse])
async def test_t231_a_client_that_does_not_read_a_message_is_disconnected(
    connect: Callable[[Silent], Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(websocket, "STALL_SECONDS", 0.3)
    desk = Desk()
    async with gateway_of({"desk": desk}) as running, silent(running) as client:
        send = await connect(client)
        for message in (INITIALIZE, INITIALIZED, call(1, "hold"), call(2, "say", mb=10)):
            await send(message)
        await until(lambda: desk.cancelled == 1)
        await until(lambda: running.gateway.client_count == 0)
        assert dict(running.gateway.metrics.disconnected) == {NOT_READING: 1}


@pytest.mark.parametrize("megabytes", [0.5, 30])
async def test_t231_a_modern_response_that_the_client_does_not_read_is_ended(
    megabytes: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(streams, "STALL_SECONDS", 0.3)
    async with gateway_of({"desk": Desk()}) as running, silent(running) as client:
        await client.connect()
        params = {
            "name": "desk__say",
            "arguments": {"mb": megabytes},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = {"MCP_Protocol_Version": MODERN, "Mcp_Method": "tools/call", "Mcp_Name": "desk__say"}
        await client.request("POST", "/mcp", body, Content_Type="application/json", **headers)
        if megabytes > 10:
            await until(lambda: running.gateway.metrics.disconnected.total() == 1)
            assert running.gateway.client_count == 0
        else:  # buffered by the network; the client reads it later
            await until(lambda: running.gateway.client_count == 0)
            assert (await client.read_until(b'"isError":false')).startswith(b"HTTP/1.1 200 ")


async def test_t231_a_slow_client_receives_every_reply_and_no_flood_of_progress(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(outbox, "CROWDED_LIMIT", 100)
    async with gateway_of({"desk": Desk()}) as running, silent(running) as client:
        send = await over_websocket(client)
        await send(INITIALIZE)
        await send(INITIALIZED)
        await send(call(1, "say", mb=10))
        params: Json = {"name": "desk__count", "arguments": {"to": 5000}, "_meta": {"progressToken": 1}}
        await send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode())
        await send(call(3, "count", to=0))
        found, loop = b"", asyncio.get_running_loop()
        async with asyncio.timeout(WAIT_SECONDS):
            while b'"id":2,"result"' not in found or b'"id":3,"result"' not in found:
                found += await loop.sock_recv(client._socket, MB)  # pyright: ignore[reportPrivateUsage]
        assert found.count(b'"id":1,"result"') == 1
        assert 0 < found.count(b"notifications/progress") < 2500
        assert running.gateway.metrics.disconnected.total() == 0


async def test_t231_disconnected_streams_of_a_session_share_one_limit(
    monkeypatch: pytest.MonkeyPatch,
):
    from dragoman.gateway import http, sessions

    monkeypatch.setattr(http, "STREAM_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(sessions, "WAITING_BYTES", 5 * MB)
    made: list[Outbox] = []
    begin = Outbox.__init__

    def begun(self: Outbox, **options: Any) -> None:
        begin(self, **options)
        made.append(self)

    monkeypatch.setattr(Outbox, "__init__", begun)
    gates = [asyncio.Event() for _ in range(4)]
    server = InMemoryServer("desk")

    async def wait(arguments: Json, context: ToolContext) -> str:
        await gates[arguments["number"]].wait()
        return "x" * (2 * MB)

    server.add_tool("wait", wait, properties={"number": {"type": "integer"}})
    async with gateway_of({"desk": server}) as running, Client(running.url) as client:
        await client.initialize()
        ids: list[str] = []
        made.clear()
        for number in range(4):
            message = json.loads(call(number + 10, "wait", number=number))
            async with client.http.post(client.url, headers=client.headers, json=message) as response:
                ids.append((await response.content.readline()).decode().removeprefix("id: ").strip())
        streams_of_calls = list(made)
        assert len(streams_of_calls) == 4
        await until(lambda: all(each.reader is None for each in streams_of_calls))
        for gate, stream in zip(gates, streams_of_calls):
            gate.set()
            await until(lambda stream=stream: stream.is_ended)

        async def status(event_id: str) -> tuple[int, int]:
            headers = {**client.headers, "Last-Event-ID": event_id}
            async with client.http.get(client.url, headers=headers) as response:
                return response.status, len(await response.read()) // MB

        last = await status(ids[3])
        assert last == (200, 2)
        assert [await status(each) for each in ids[:3]] == [(404, 0), (404, 0), (200, 2)]


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


async def test_t231_large_results_for_slow_clients_delay_no_other_client(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "STALL_SECONDS", 3.0)
    monkeypatch.setattr(websocket, "STALL_SECONDS", 3.0)
    size, clients = 60, 4
    async with gateway_of({"desk": Desk()}) as running, Client(running.url, BOB) as other:
        quick: Json = {"name": "desk__count", "arguments": {"to": 0}}
        await other.modern("tools/call", quick)
        async with contextlib.AsyncExitStack() as stack:
            slow = [await stack.enter_async_context(silent(running)) for _ in range(clients)]
            sends = [await (over_websocket if n % 2 else over_sse)(each) for n, each in enumerate(slow)]
            for send in sends:
                await send(INITIALIZE)
                await send(INITIALIZED)
            before, peak = resident_mb(), 0.0
            for send in sends:
                await send(call(1, "say", mb=size))
            waits: list[float] = []
            async with asyncio.timeout(40):
                while running.gateway.metrics.disconnected.total() < clients:
                    began = perf_counter()
                    assert "result" in (await other.modern("tools/call", quick)).last
                    waits.append(perf_counter() - began)
                    peak = max(peak, resident_mb() - before)
            await until(lambda: running.gateway.client_count == 0)
    # Encoding, forwarding and writing a result of this size each take a moment of the one event loop.
    print(f"{len(waits)} calls, median {sorted(waits)[len(waits) // 2] * 1000:.1f} ms, peak {peak:.0f} MB")
    assert sorted(waits)[len(waits) * 9 // 10] < 0.1
    assert peak < clients * size * 4

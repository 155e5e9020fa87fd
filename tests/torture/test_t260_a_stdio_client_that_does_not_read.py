"""T260: a program that starts the gateway over stdio and does not read delays only its own messages."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import sys
import termios
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman.gateway import outbox as outbox_module
from dragoman.gateway.stdio import serve_stdio
from dragoman.testing import InMemoryServer
from dragoman.transports.inprocess import ServerEnd
from tests.gateway import Running, gateway_of
from tests.integration.waiting import until

LARGE = "x" * 1_000_000
pytestmark = pytest.mark.requirement("GWY-2")


class _NoSink:
    def received(self, message: bytes) -> None: ...
    def lost(self, cause: str) -> None: ...


@dataclass
class Over:
    """A gateway over stdio, and the program's ends of both pipes."""

    running: Running
    stream: ServerEnd
    output: int
    serving: asyncio.Task[None]
    calls: list[str]

    def call(self, number: int, name: str) -> None:
        params = {"name": f"s__{name}", "arguments": {}}
        self.say(id=number, method="tools/call", params=params)

    def say(self, **message: Any) -> None:
        self.stream.put(json.dumps({"jsonrpc": "2.0", **message}).encode())


async def _endless(calls: list[str]) -> None:
    calls.append("endless")
    try:
        await asyncio.Event().wait()
    finally:
        calls.append("cancelled")


@contextlib.asynccontextmanager
async def over_stdio() -> AsyncIterator[Over]:
    server, calls = InMemoryServer("s"), list[str]()
    server.add_tool("large", lambda arguments, context: calls.append("large") or LARGE)
    server.add_tool("small", lambda arguments, context: calls.append("small") or "small")
    server.add_tool("endless", lambda arguments, context: _endless(calls))
    read, write = os.pipe()
    async with gateway_of({"s": server}) as running:
        stream = ServerEnd(_NoSink())
        serving = asyncio.create_task(serve_stdio(running.gateway, stream, write))
        over = Over(running, stream, read, serving, calls)
        client = {"name": "t", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        over.say(id=0, method="initialize", params=params)
        over.say(method="notifications/initialized")
        try:
            yield over
        finally:
            with contextlib.suppress(OSError):
                os.close(read)
            stream.shut()
            await asyncio.gather(serving, return_exceptions=True)
            os.close(write)


def waiting_bytes(output: int) -> int:
    return int.from_bytes(fcntl.ioctl(output, termios.FIONREAD, bytes(4)), sys.byteorder)


async def messages(output: int, count: int) -> list[dict[str, Any]]:
    def read() -> bytes:
        data = b""
        while data.count(b"\n") < count:
            data += os.read(output, 65536)
        return data

    async with asyncio.timeout(20):
        return [json.loads(line) for line in (await asyncio.to_thread(read)).splitlines()]


async def test_t260_calls_continue_while_the_client_does_not_read_and_no_reply_is_lost():
    async with over_stdio() as over:
        over.call(1, "large")
        await until(lambda: over.calls == ["large"])
        for number in range(2, 5):
            over.call(number, "small")
        await until(lambda: over.calls == ["large", "small", "small", "small"])
        outcome = await over.running.host.call("mcp__s__small")
        assert outcome.text == "small", "the loop of the gateway is not blocked"
        found = await messages(over.output, 5)
        assert [each["id"] for each in found] == [0, 1, 2, 3, 4]
        assert found[1]["result"]["content"][0]["text"] == LARGE


async def test_t260_a_client_with_a_full_send_queue_is_disconnected(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(outbox_module, "WAITING_BYTES", 2_000_000)
    async with over_stdio() as over:
        for number in range(1, 6):
            over.call(number, "large")
        async with asyncio.timeout(20):
            await over.serving
        assert over.running.gateway.metrics.disconnected == {"it does not read what it is sent": 1}


async def test_t260_a_client_that_exits_ends_the_gateway():
    async with over_stdio() as over:
        await messages(over.output, 1)
        os.close(over.output)
        over.call(1, "small")
        async with asyncio.timeout(20):
            await over.serving


async def test_t260_the_last_replies_are_written_after_the_input_has_ended():
    async with over_stdio() as over:
        over.call(1, "large")
        await until(lambda: over.calls == ["large"])
        await until(lambda: waiting_bytes(over.output) > 10_000)  # the reply is being written
        over.stream.shut()
        assert [each["id"] for each in await messages(over.output, 2)] == [0, 1]

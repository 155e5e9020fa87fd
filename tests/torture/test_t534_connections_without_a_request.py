"""T534: gateway connections on which no complete request arrives are closed after some time, so that they
do not use up its file descriptors; requests that take longer are answered."""

import asyncio

import pytest

from dragoman.gateway import app
from dragoman.testing import InMemoryServer
from tests.gateway import Client, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
IDLE_SECONDS = 0.2
BEGINNINGS = {
    "nothing": b"",
    "half a line": b"POST /mc",
    "half the headers": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "one request": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a request and a half": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /heal",
}


@pytest.mark.parametrize("sent", BEGINNINGS.values(), ids=BEGINNINGS.keys())
async def test_t534_a_connection_without_a_further_request_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(app, "IDLE_SECONDS", IDLE_SECONDS)
    async with gateway_of({"box": InMemoryServer("box")}) as running, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(sent)
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 200 OK") == (b"\r\n\r\n" in sent)
        writer.close()


async def test_t534_a_call_that_takes_longer_than_the_idle_limit_is_answered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "IDLE_SECONDS", IDLE_SECONDS)
    box = InMemoryServer("box")

    async def slow(*_: object) -> str:
        await asyncio.sleep(5 * IDLE_SECONDS)
        return "done"

    box.add_tool("slow", slow)
    async with gateway_of({"box": box}) as running, Client(running.url) as client:
        reply = await client.modern("tools/call", {"name": "box__slow", "arguments": {}})
        assert reply.last["result"]["content"] == [{"type": "text", "text": "done"}]

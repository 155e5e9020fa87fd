"""T827: a program writes its requests to a gateway over stdio and closes the pipe at once, as a script does
(`printf … | dragoman serve --stdio`). They are answered; an endless one does not keep the gateway
running."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from dragoman.gateway import stdio
from tests.e2e.command import DRAGOMAN
from tests.torture.test_t260_a_stdio_client_that_does_not_read import messages, over_stdio

pytestmark = pytest.mark.requirement("GWY-2")


async def test_t827_calls_sent_before_the_end_of_input_are_answered():
    async with over_stdio() as over:
        over.call(1, "small")
        over.stream.shut()
        async with asyncio.timeout(20):
            await over.serving
        assert [each["id"] for each in await messages(over.output, 2)] == [0, 1]


async def test_t827_an_endless_call_does_not_keep_the_gateway_running(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stdio, "END_SECONDS", 0.05)
    async with over_stdio() as over:
        over.call(1, "endless")
        over.stream.shut()
        async with asyncio.timeout(20):
            await over.serving
        assert over.calls == ["endless", "cancelled"]


@pytest.mark.slow
def test_t827_the_last_request_needs_no_newline(home: Path):
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    sent = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    ]
    words = [DRAGOMAN, "serve", "--stdio", "--mcp-config", "demo", "--strict-mcp-config"]
    given = "\n".join(map(json.dumps, sent))
    done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=40)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in found if "id" in each] == [0, 1]

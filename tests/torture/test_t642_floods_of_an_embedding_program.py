"""T642: a program that embeds the host floods its control message stream. Other tasks still run, and every
message arrives in order."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.transports import control
from dragoman.transports.control import LineControlChannel

pytestmark = pytest.mark.requirement("TRN-5")

LINES = 20_000


class Writer:
    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...


def pushed(number: int) -> bytes:
    message = {"subtype": "mcp_message", "server_name": "x", "message": number}
    return json.dumps({"type": "control_request", "request_id": "a", "request": message}).encode()


class Link:
    def __init__(self) -> None:
        self.got: list[Any] = []
        self.causes: list[str] = []

    def push(self, message: bytes) -> None:
        self.got.append(int(message))

    def disconnect(self, cause: str) -> None:
        self.causes.append(cause)


async def pumped(channel: LineControlChannel, data: bytes, link: Link) -> int:
    """The number of loop iterations of another task until the stream was read to its end."""
    channel.attach("x", link)
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    pump = asyncio.create_task(channel.pump(reader))
    turns = 0
    async with asyncio.timeout(60):
        while not pump.done():
            await asyncio.sleep(0)
            turns += 1
    return turns


@pytest.fixture
def always_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check of the clock finds that the time budget is used up."""
    times = iter(range(10**9))
    monkeypatch.setattr(control, "clock", lambda: float(next(times)))


@pytest.mark.usefixtures("always_late")
async def test_t642_other_tasks_run_between_very_many_lines():
    others = list[bytes]()
    channel = LineControlChannel(Writer(), limit_bytes=10**6, on_other=others.append)
    assert await pumped(channel, b"{}\n" * LINES, Link()) > LINES / 100
    assert others == [b"{}"] * LINES


@pytest.mark.usefixtures("always_late")
async def test_t642_messages_keep_their_order_and_the_last_needs_no_newline():
    link = Link()
    channel = LineControlChannel(Writer(), limit_bytes=10**6)
    data = b"\n".join(pushed(number) for number in range(1_000))
    await pumped(channel, data, link)
    assert link.got == list(range(1_000))
    assert link.causes == ["the program closed its stream"]


async def test_t642_an_endless_line_ends_the_stream():
    link = Link()
    channel = LineControlChannel(Writer(), limit_bytes=100)
    await pumped(channel, b"x" * 1_000, link)
    assert link.causes == ["the program sends data without a line end"]

"""T650: a program that embeds the host sends messages and does not read the answers, or has closed that
stream. Waiting answers are bounded, and nothing is written to a closed stream."""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncGenerator

import pytest

from dragoman.transports.control import NOT_READ, UNREAD_BYTES, ControlFailed, LineControlChannel

pytestmark = pytest.mark.requirement("TRN-5")

PUSHES_AT_ONCE = 1_000


def pushes() -> bytes:
    message = {"subtype": "mcp_message", "server_name": "x", "message": 1}
    line = json.dumps({"type": "control_request", "request_id": "a", "request": message}).encode()
    return (line + b"\n") * PUSHES_AT_ONCE


class Program(asyncio.StreamReader):
    """The messages that the program sends, this many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    async def read(self, n: int = -1) -> bytes:
        await asyncio.sleep(0)
        self.left -= 1
        return pushes() if self.left >= 0 else b""


@contextlib.asynccontextmanager
async def pipe() -> AsyncGenerator[tuple[int, asyncio.StreamWriter]]:
    """The program's end of a pipe, and the host's writer."""
    loop = asyncio.get_running_loop()
    reading, writing = os.pipe()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(writing, "wb")
    )
    try:
        yield reading, asyncio.StreamWriter(transport, protocol, None, loop)
    finally:
        if not transport.is_closing():
            transport.abort()
            os.close(reading)


async def test_t650_answers_that_are_not_read_are_bounded():
    async with pipe() as (reading, writer):
        channel = LineControlChannel(writer, limit_bytes=10**6)
        program = Program(times=200)
        pump = asyncio.create_task(channel.pump(program))
        largest = 0
        for _ in range(2_000):
            await asyncio.sleep(0)
            largest = max(largest, writer.transport.get_write_buffer_size())
        assert UNREAD_BYTES / 2 < largest < 2 * UNREAD_BYTES
        assert program.left > 0

        os.set_blocking(reading, False)
        async with asyncio.timeout(60):
            while not pump.done():  # the program reads again and receives everything
                with contextlib.suppress(BlockingIOError):
                    os.read(reading, 1 << 20)
                await asyncio.sleep(0)


async def test_t650_nothing_is_written_to_a_closed_stream(caplog: pytest.LogCaptureFixture):
    async with pipe() as (reading, writer):
        channel = LineControlChannel(writer, limit_bytes=10**6)
        os.close(reading)
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        with caplog.at_level(logging.WARNING, "asyncio"):
            calls = [channel.mcp_message("x", request) for _ in range(500)]
            async with asyncio.timeout(60):
                failures = await asyncio.gather(*calls, return_exceptions=True)
                await channel.pump(Program(times=2))
        assert {type(failure) for failure in failures} == {ControlFailed}
        assert {str(failure) for failure in failures} == {NOT_READ}
        assert caplog.messages == []

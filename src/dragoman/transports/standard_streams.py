"""The server's end of stdio: this process's standard input and output as a pair of ends."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from dragoman.transports.inprocess import ServerEnd
from dragoman.transports.lines import LineFramer

LIMIT_BYTES: Final = 64 * 1024 * 1024


async def standard_streams() -> ServerEnd:
    end = ServerEnd(_Output())
    await asyncio.get_running_loop().connect_read_pipe(lambda: _Input(end), sys.stdin.buffer)
    return end


class _Input(asyncio.Protocol):
    def __init__(self, end: ServerEnd) -> None:
        self._end = end
        self._framer = LineFramer(end.put, lambda _head, _tail: True, limit_bytes=LIMIT_BYTES)

    def data_received(self, data: bytes) -> None:
        self._framer.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.shut()


class _Output:
    def received(self, message: bytes) -> None:
        sys.stdout.buffer.write(message + b"\n")
        sys.stdout.buffer.flush()

    def lost(self, cause: str) -> None:
        return

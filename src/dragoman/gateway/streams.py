"""Messages for a client, written as an event stream; it can be continued after a lost connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator
from typing import Final

from aiohttp import web

RETRY_MS: Final = 1000
"""How long a client is asked to wait before it connects again."""
KEEP_ALIVE_SECONDS: Final = 15.0
DIGITS_LIMIT: Final = 18
"""Of the number in the id of an event."""
_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class Outbox:
    """Messages in the order in which they were put. Those that were read stay, up to the limit, and can be
    read again; with `keeps_read` False they are dropped, so that a long connection does not hold them."""

    def __init__(self, limit: int = 1000, *, keeps_read: bool = True) -> None:
        self._keeps_read = keeps_read
        self._messages: deque[bytes] = deque(maxlen=limit)
        self._count = 0
        self._wake = asyncio.Event()
        self.is_ended = False
        self.read_count = 0
        """How many were read, those that were dropped included."""
        self.reader: asyncio.Task[object] | None = None
        """The response that is given the messages."""

    def put(self, message: bytes) -> None:
        self._messages.append(message)
        self._count += 1
        self._wake.set()

    def end(self) -> None:
        """Nothing more will be put."""
        self.is_ended = True
        self._wake.set()

    async def get(self) -> bytes | None:
        """The next message; None at the end."""
        while self.read_count >= self._count:
            if self.is_ended:
                return None
            self._wake.clear()
            await self._wake.wait()
        oldest = self._count - len(self._messages)
        self.read_count = max(self.read_count, oldest) + 1
        if self._keeps_read:
            return self._messages[self.read_count - 1 - oldest]
        return self._messages.popleft()


class EventWriter:
    """Writes messages as events. With a name for the stream each has an id, by which it can be continued."""

    def __init__(self, response: web.StreamResponse, stream: str = "") -> None:
        self.response = response
        self._stream = stream

    async def begin(self, number: int) -> None:
        """Tells the client the id of the stream before anything is sent, and when to come back."""
        if self._stream:
            await self.response.write(f"id: {self._stream}.{number}\nretry: {RETRY_MS}\ndata: \n\n".encode())

    async def write_all(self, outbox: Outbox) -> None:
        """Writes what is put into the outbox, until its end. An earlier response that does so is cancelled:
        its connection may be lost without a sign, and messages that it takes with it."""
        if outbox.reader is not None:
            outbox.reader.cancel()
        outbox.reader = asyncio.current_task()
        try:
            await self._write_all(outbox)
        finally:
            if outbox.reader is asyncio.current_task():
                outbox.reader = None

    async def _write_all(self, outbox: Outbox) -> None:
        await self.begin(outbox.read_count)
        while (message := await outbox.get()) is not None:
            name = f"id: {self._stream}.{outbox.read_count}\n".encode() if self._stream else b""
            await self.response.write(name + b"event: message\ndata: " + message + b"\n\n")


@contextlib.asynccontextmanager
async def event_stream(
    request: web.Request, stream: str = "", headers: dict[str, str] | None = None
) -> AsyncGenerator[EventWriter]:
    """A response that is an event stream; comments keep proxies from closing it."""
    response = web.StreamResponse(headers={**_HEADERS, **(headers or {})})
    await response.prepare(request)

    async def keep_alive() -> None:
        with contextlib.suppress(ConnectionError):  # the client is gone: its request is cancelled
            while True:
                await asyncio.sleep(KEEP_ALIVE_SECONDS)
                await response.write(b": \n\n")

    task = asyncio.create_task(keep_alive())
    try:
        yield EventWriter(response, stream)
    finally:
        task.cancel()
    await response.write_eof()


def position_in(event_id: str) -> tuple[str, int] | None:
    """The stream and the number in the id of an event; None if the gateway has not made it."""
    stream, _, number = event_id.rpartition(".")
    is_number = number.isascii() and number.isdigit() and len(number) <= DIGITS_LIMIT
    return (stream, int(number)) if stream and is_number else None

"""Messages for a client, written as an event stream; it can be continued after a lost connection.

Large messages are written in pieces, at the pace of the client. A client that stops reading is disconnected.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import Final

from aiohttp import web

from dragoman.gateway.outbox import NOT_READING, NotReading, Outbox

RETRY_MS: Final = 1000
"""How long a client is asked to wait before it connects again."""
KEEP_ALIVE_SECONDS: Final = 15.0
DIGITS_LIMIT: Final = 18
"""The most digits of the number in the id of an event."""
_HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


PIECE_BYTES: Final = 64 * 1024
"""What is given to the network at once."""
STALL_SECONDS: Final = 30.0
"""How long a client may take to read one piece."""
DISCONNECTED: Final = web.RequestKey("disconnected", str)
"""Why the client of a request was disconnected."""
LISTENS: Final = web.RequestKey("listens", bool)
"""Whether a POST is answered with notifications until one side ends it, as a GET is."""


def disconnect(request: web.BaseRequest, reason: str = NOT_READING) -> None:
    """Ends the connection at once: a client that does not read takes no further message."""
    request[DISCONNECTED] = reason
    if request.transport is not None:
        request.transport.abort()


async def write_pieces(request: web.BaseRequest, response: web.StreamResponse, data: bytes) -> None:
    """Writes at the pace of the client; one that reads nothing for a while is disconnected."""
    view = memoryview(data)
    for start in range(0, len(data), PIECE_BYTES):
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await response.write(view[start : start + PIECE_BYTES])
        except TimeoutError:
            disconnect(request)
            raise NotReading from None


async def json_response(
    request: web.BaseRequest, body: bytes, headers: dict[str, str] | None, status: int
) -> web.StreamResponse:
    """A large JSON document, in pieces."""
    response = web.StreamResponse(headers=headers, status=status)
    response.content_type = "application/json"
    response.content_length = len(body)
    await response.prepare(request)
    await write_pieces(request, response, body)
    await response.write_eof()
    return response


class EventWriter:
    """Writes messages as events. With a name for the stream each has an id, by which it can be continued."""

    def __init__(self, request: web.BaseRequest, response: web.StreamResponse, stream: str = "") -> None:
        self._request = request
        self.response = response
        self._stream = stream

    async def begin(self, number: int) -> None:
        """Sends the client the id of the stream before anything else, and the reconnection time."""
        if self._stream:
            await self.response.write(f"id: {self._stream}.{number}\nretry: {RETRY_MS}\ndata: \n\n".encode())

    async def write_all(self, outbox: Outbox) -> None:
        """Writes what is put into the outbox, until its end. An earlier response that does so is cancelled:
        its connection may be lost without a sign, and messages that it takes with it."""
        if outbox.reader is not None:
            outbox.reader.cancel()
        outbox.reader = asyncio.current_task()
        outbox.disconnect = partial(disconnect, self._request)
        try:
            await self._write_all(outbox)
        except NotReading:
            disconnect(self._request)
            raise
        finally:
            if outbox.reader is asyncio.current_task():
                outbox.reader = None

    async def _write_all(self, outbox: Outbox) -> None:
        await self.begin(outbox.read_count)
        while (message := await outbox.get()) is not None:
            name = f"id: {self._stream}.{outbox.read_count}\n".encode() if self._stream else b""
            if len(message) <= PIECE_BYTES:
                await self._write(name + b"event: message\ndata: " + message + b"\n\n")
            else:
                for part in (name + b"event: message\ndata: ", message, b"\n\n"):
                    await self._write(part)

    async def _write(self, data: bytes) -> None:
        await write_pieces(self._request, self.response, data)


@contextlib.asynccontextmanager
async def event_stream(
    request: web.BaseRequest, stream: str = "", headers: dict[str, str] | None = None
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
        yield EventWriter(request, response, stream)
    finally:
        task.cancel()
    await response.write_eof()


def position_in(event_id: str) -> tuple[str, int] | None:
    """The stream and the number in the id of an event; None if the gateway has not made it."""
    stream, _, number = event_id.rpartition(".")
    is_number = number.isascii() and number.isdigit() and len(number) <= DIGITS_LIMIT
    return (stream, int(number)) if stream and is_number else None

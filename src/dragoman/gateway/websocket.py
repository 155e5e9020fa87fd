"""The WebSocket transport, from the server's side: `/ws`. One connection is one client.

A client that answers no ping, or that reads nothing of a message for a while, is disconnected. While a large
message is on its way no ping is sent: a slow client could not answer it in time.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final
from weakref import WeakValueDictionary

from aiohttp import WSMsgType, web

from dragoman.gateway.access import KnownCaller
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.outbox import NOT_READING, NotReading, Outbox
from dragoman.gateway.streams import DISCONNECTED, PIECE_BYTES, STALL_SECONDS
from dragoman.transports.pacing import Pacer, clock

SUBPROTOCOL: Final = "mcp"
PING_SECONDS: Final = 20.0
CLOSE_SECONDS: Final = 1.0
"""How long a client that does not read may take to answer that it is disconnected."""
CLOSE_CODE: Final = 1008
"""The client breaks a rule."""


class WebSockets:
    """Handles `/ws`. The caller of each request is known by then."""

    def __init__(self, gateway: Gateway, limit_bytes: int) -> None:
        self._gateway = gateway
        self._limit_bytes = limit_bytes
        self._pacers: WeakValueDictionary[str, Pacer] = WeakValueDictionary()
        """The budgets by caller: all connections of one caller share a budget, so that it cannot block
        others."""

    async def get(self, request: web.BaseRequest, caller: KnownCaller) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            protocols=(SUBPROTOCOL,), autoping=False, timeout=CLOSE_SECONDS, max_msg_size=self._limit_bytes
        )
        await socket.prepare(request)
        client = _Client(request, socket)
        pacer = self._pacers.setdefault(caller.caller.id, Pacer())
        tasks = [asyncio.create_task(client.write()), asyncio.create_task(client.ping())]
        try:
            async with self._gateway.client(caller, client.outbox.put) as connection:
                async for message in socket:
                    client.has_answered = True
                    began = clock()
                    if message.type == WSMsgType.TEXT:
                        connection.receive(message.data.encode())
                    elif message.type == WSMsgType.PING:
                        await client.pong(message.data)
                    elif message.type == WSMsgType.BINARY:
                        await socket.close(code=1003, message=b"messages are text")
                    pacer.spend(began)
                    if pacer.is_spent:
                        await pacer.next_turn()
        finally:
            for task in tasks:
                task.cancel()
        return socket


class ReadingWatch:
    """Detects whether a client reads, by the bytes that the network has not accepted."""

    def __init__(self) -> None:
        self._unsent = 0
        self._has_read = True
        """Since the last check."""

    def note(self, unsent: int) -> None:
        """Before more is written. A number that is another one than after the last message was changed by
        reading, or by a message that is being written."""
        self._has_read |= unsent != self._unsent or not unsent
        self._unsent = unsent

    def note_written(self, unsent: int) -> None:
        self._unsent = unsent

    def has_stopped(self, unsent: int) -> bool:
        """Whether nothing was read since the last check, although something waited all the time."""
        self.note(unsent)
        has_read, self._has_read = self._has_read, not unsent
        return not has_read


class _Client:
    """What is sent to one client."""

    def __init__(self, request: web.BaseRequest, socket: web.WebSocketResponse) -> None:
        self._request = request
        self._socket = socket
        self.outbox = Outbox(keeps_read=False)
        self.outbox.disconnect = self._end_soon
        self.has_answered = True
        self._watch = ReadingWatch()
        self._ending: asyncio.Task[None] | None = None

    async def write(self) -> None:
        with contextlib.suppress(ConnectionError):  # the client is gone: reading ends as well
            try:
                while (message := await self.outbox.get()) is not None:
                    await self._send(message)
            except NotReading:
                self._end_soon()

    async def _send(self, message: bytes) -> None:
        self._watch.note(self._unsent())
        if len(message) <= PIECE_BYTES and not self._unsent():
            await self._socket.send_frame(message, WSMsgType.TEXT)
        else:
            await self._send_watched(message)
        self._watch.note_written(self._unsent())

    async def _send_watched(self, message: bytes) -> None:
        sending = asyncio.ensure_future(self._socket.send_frame(message, WSMsgType.TEXT))
        await asyncio.sleep(0)  # the message is written
        left = self._unsent()
        try:
            while not (await asyncio.wait([sending], timeout=STALL_SECONDS))[0]:
                if self._unsent() == left:
                    raise NotReading
                left = self._unsent()
            await sending
        finally:
            sending.cancel()

    async def pong(self, data: bytes) -> None:
        self._watch.note(self._unsent())
        await self._socket.pong(data)
        self._watch.note_written(self._unsent())

    async def ping(self) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                await asyncio.sleep(PING_SECONDS)
                if self._watch.has_stopped(self._unsent()):
                    return self._end_soon()
                if self._unsent():
                    continue
                if not self.has_answered:
                    self._request[DISCONNECTED] = "it does not answer"
                    return self._abort()
                self.has_answered = False
                await self._socket.ping()

    def _end_soon(self) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        """Closes the connection with the reason, for a client that still reads."""
        self._request[DISCONNECTED] = NOT_READING
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._socket.close(code=CLOSE_CODE, message=NOT_READING.encode(), drain=False)
        self._abort()

    def _abort(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()

    def _unsent(self) -> int:
        """How many bytes the network has not accepted."""
        transport = self._request.transport
        return 0 if transport is None else transport.get_write_buffer_size()

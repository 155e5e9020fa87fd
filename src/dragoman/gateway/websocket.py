"""The WebSocket transport, from the server's side: `/ws`. One connection is one client."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from aiohttp import WSMsgType, web

from dragoman.gateway.access import KnownCaller
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.streams import Outbox

SUBPROTOCOL: Final = "mcp"
PING_SECONDS: Final = 20.0


class WebSockets:
    """Handles `/ws`. The caller of each request is known by then."""

    def __init__(self, gateway: Gateway, limit_bytes: int) -> None:
        self._gateway = gateway
        self._limit_bytes = limit_bytes

    async def get(self, request: web.Request, caller: KnownCaller) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            protocols=(SUBPROTOCOL,), heartbeat=PING_SECONDS, max_msg_size=self._limit_bytes
        )
        await socket.prepare(request)
        outbox = Outbox(keeps_read=False)
        writing = asyncio.create_task(_write(socket, outbox))
        try:
            async with self._gateway.client(caller, outbox.put) as connection:
                async for message in socket:
                    if message.type == WSMsgType.TEXT:
                        connection.receive(message.data.encode())
                    elif message.type == WSMsgType.BINARY:
                        await socket.close(code=1003, message=b"messages are text")
        finally:
            writing.cancel()
        return socket


async def _write(socket: web.WebSocketResponse, outbox: Outbox) -> None:
    with contextlib.suppress(ConnectionError):  # the client is gone: reading ends as well
        while (message := await outbox.get()) is not None:
            await socket.send_str(message.decode())

"""An `Office` behind a WebSocket on a port chosen by the kernel: a remote server that sends notifications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import WSMsgType, web

from tests.servers.office import Office


class _End:
    """The stream of one client."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._out: asyncio.Queue[bytes] = asyncio.Queue()
        self.sending = asyncio.create_task(self._send())

    async def receive(self) -> bytes | None:
        message = await self._socket.receive()
        return message.data.encode() if message.type is WSMsgType.TEXT else None

    def send(self, message: bytes) -> None:
        self._out.put_nowait(message)

    async def _send(self) -> None:
        while True:
            await self._socket.send_str((await self._out.get()).decode())


@asynccontextmanager
async def listening(office: Office) -> AsyncIterator[dict[str, str]]:
    """The entry for it."""

    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=("mcp",))
        await socket.prepare(request)
        end = _End(socket)
        try:
            await office.serve(end)
        finally:
            end.sending.cancel()
        return socket

    app = web.Application()
    app.router.add_get("/", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]  # aiohttp has no other way
        yield {"type": "ws", "url": f"ws://127.0.0.1:{port}/", "protocol": "2025-11-25"}
    finally:
        await runner.cleanup()

"""MCP over WebSocket: every frame is one message.

This module has the upgrade, the frames, and the faults below; tools.py has the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

import aiohttp
import msgspec
from aiohttp import web

from dragoman.protocol import REVISIONS
from tests.servers.web.site import Answer, Ask, Site
from tests.servers.web.tools import LIST_CHANGED, Conversation, Ledger, make_tool_server

Json = dict[str, Any]


class WebSocketSite(Site):
    def __init__(
        self,
        *,
        revisions: tuple[str, ...] = REVISIONS,
        protocols: tuple[str, ...] = ("mcp",),
        frames: Literal["text", "binary"] = "text",
        on: Mapping[str, Answer] | None = None,
        ledger: Ledger | None = None,
        path: str = "/ws",
    ) -> None:
        """`protocols`: the subprotocols it knows; with none, it picks none."""
        super().__init__(path=path)
        self.ledger = ledger or Ledger()
        self.in_memory = make_tool_server(revisions, self.ledger, lambda: self.push(LIST_CHANGED))
        self.on: dict[str, Answer] = dict(on or {})
        """Answers in front of the upgrade, under "GET" or "*"."""
        self.messages: list[Json] = []
        """Everything clients said."""
        self.sockets: set[web.WebSocketResponse] = set()
        self._protocols = protocols
        self._frames = frames
        self._writing: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return super().url.replace("http", "ws", 1)

    def push(self, message: Json) -> None:
        for socket in self.sockets:
            self._send(socket, message)

    async def close_sockets(self, code: int = 1001, reason: str = "going away") -> None:
        for socket in list(self.sockets):
            await socket.close(code=code, message=reason.encode())

    async def closing(self) -> None:
        for task in list(self._writing):
            task.cancel()

    async def answer(self, ask: Ask) -> web.StreamResponse:
        for what in (ask.method, "*"):
            if what in self.on and (response := await self.on[what](ask)) is not None:
                return response
        if ask.http.path != self.path:
            return web.Response(status=404)
        if ask.headers.get("Upgrade", "").lower() != "websocket":
            return web.Response(status=426)
        return await self._talk(ask)

    async def _talk(self, ask: Ask) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=self._protocols, compress=False, max_msg_size=0)
        await socket.prepare(ask.http)
        conversation = Conversation(self.in_memory, lambda message: self._send(socket, message))
        self.sockets.add(socket)
        try:
            async for frame in socket:
                if frame.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                    message = msgspec.json.decode(frame.data)
                    self.messages.append(message)
                    conversation.say(message)
        finally:
            self.sockets.discard(socket)
            await conversation.close()
        return socket

    def _send(self, socket: web.WebSocketResponse, message: Json) -> None:
        task = asyncio.create_task(self._write(socket, msgspec.json.encode(message)))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, socket: web.WebSocketResponse, data: bytes) -> None:
        try:
            if self._frames == "text":
                await socket.send_str(data.decode())
            else:
                await socket.send_bytes(data)
        except (ConnectionError, RuntimeError):
            pass  # the connection has ended, and its waiters were notified


websocket = WebSocketSite
"""`async with websocket(…) as server`."""

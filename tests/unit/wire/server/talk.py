"""Messages to a `ClientConnection`, and everything that it sends, decoded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Client, Handler, Service

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = {"io.modelcontextprotocol/serverInfo": {"name": "box", "version": "1"}}


def meta(**more: Any) -> dict[str, Any]:
    return {"_meta": {VERSION: MODERN, CAPABILITIES: {}, **more}}


def service(handlers: dict[str, Handler] | None = None, **more: Any) -> Service:
    return Service(name="box", version="1", handlers=handlers or {}, **more)


def legacy_client(**more: Any) -> Client:
    return Client(**{"era": "legacy", "revision": LEGACY, **more})


async def echo(request: ClientRequest) -> dict[str, Any]:
    return {"params": request.params}


class Talk:
    def __init__(self, served: Service, session: Client | None = None) -> None:
        self.sent: list[Any] = []
        self.connection = ClientConnection(served, self._take, session)
        self._news = asyncio.Event()

    def say(self, *messages: bytes | dict[str, Any] | list[Any]) -> None:
        for message in messages:
            self.connection.receive(message if isinstance(message, bytes) else json.dumps(message).encode())

    def ask(self, method: str, request_id: Any = 1, **params: Any) -> None:
        self.say({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})

    def tell(self, method: str, **params: Any) -> None:
        self.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def heard(self, count: int = 1) -> list[Any]:
        """What was sent since the last time, once it is so many messages."""
        async with asyncio.timeout(5):
            while len(self.sent) < count:
                self._news.clear()
                await self._news.wait()
        sent, self.sent = self.sent, []
        return sent

    async def settled(self) -> list[Any]:
        """What was sent since the last time, once nothing that has begun can go on by itself."""
        for _ in range(10):
            await asyncio.sleep(0)
        sent, self.sent = self.sent, []
        return sent

    def _take(self, message: bytes) -> None:
        self.sent.append(json.loads(message))
        self._news.set()


def result(request_id: Any, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": members}


def complete(request_id: Any, **members: Any) -> dict[str, Any]:
    """The result of a modern request that is not cacheable."""
    return result(request_id, **{"resultType": "complete", "_meta": INFO, **members})


def error(request_id: Any, code: int, message: str, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message, **more}}


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}

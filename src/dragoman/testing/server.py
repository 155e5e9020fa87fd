"""A small MCP server made of Python functions, for tests, demos and built-in tools.

Implements as much of the server's side, in both eras, as tools need; `shelf.py` adds resources and prompts.
It runs in-process (pass it to a host) or over stdio (`run_stdio`).
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from dragoman.protocol import (
    INVALID_PARAMS,
    LEGACY_REVISIONS,
    META_PROTOCOL_VERSION,
    META_SERVER_INFO,
    METHOD_NOT_FOUND,
    MODERN_REVISIONS,
    REVISIONS,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from dragoman.testing.shelf import NotThere, Shelf
from dragoman.transports.inprocess import ServerEnd
from dragoman.transports.lines import LineFramer
from dragoman.version import VERSION

Json = dict[str, Any]


class ToolContext:
    """What a tool may do besides returning a result."""

    def __init__(self, send: Callable[[bytes], None], progress_token: object) -> None:
        self._send = send
        self._progress_token = progress_token

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress_token is None:
            return
        params: Json = {"progressToken": self._progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._send(
            msgspec.json.encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        )


class ToolFunction(Protocol):
    """Gets the arguments and a context; returns text, a list of content blocks, or a whole result."""

    def __call__(self, arguments: Json, context: ToolContext, /) -> Awaitable[Any] | Any: ...


class InMemoryServer:
    def __init__(
        self, name: str, *, instructions: str | None = None, revisions: tuple[str, ...] = REVISIONS
    ) -> None:
        self.name = name
        self._instructions = instructions
        self._revisions = revisions
        self._tools: dict[str, tuple[Json, ToolFunction]] = {}
        self.shelf = Shelf()

    def add_tool(
        self,
        name: str,
        function: ToolFunction,
        *,
        description: str = "",
        properties: Mapping[str, Any] | None = None,
        required: tuple[str, ...] = (),
        **definition: Any,
    ) -> None:
        schema = {"type": "object", "properties": dict(properties or {}), "required": list(required)}
        self._tools[name] = (
            {"name": name, "description": description, "inputSchema": schema, **definition},
            function,
        )

    async def serve(self, end: ServerEnd) -> None:
        running: dict[object, asyncio.Task[None]] = {}
        try:
            while (data := await end.receive()) is not None:
                message: Json = msgspec.json.decode(data)
                if message.get("method") == "notifications/cancelled":
                    task = running.pop(message["params"]["requestId"], None)
                    if task is not None:
                        task.cancel()
                elif "id" in message and "method" in message:
                    key = message["id"]
                    task = running[key] = asyncio.create_task(self._answer(message, end.send))
                    task.add_done_callback(lambda _, key=key: running.pop(key, None))
        finally:
            for task in list(running.values()):
                task.cancel()

    def run_stdio(self) -> None:
        """Serves on this process's standard streams until the input ends."""
        asyncio.run(self._serve_stdio())

    async def _serve_stdio(self) -> None:
        end = ServerEnd(_StdoutSink())
        await asyncio.get_running_loop().connect_read_pipe(lambda: _Stdin(end), sys.stdin.buffer)
        await self.serve(end)

    async def _answer(self, message: Json, send: Callable[[bytes], None]) -> None:
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = await self._result(message["method"], message.get("params") or {}, send)
        except _Refusal as refusal:
            reply["error"] = refusal.error
        send(msgspec.json.encode(reply))

    async def _result(self, method: str, params: Json, send: Callable[[bytes], None]) -> Json:
        match method:
            case "initialize":
                return self._initialize(params)
            case "server/discover":
                return self._discover(params)
            case "ping":
                return {}
            case "tools/list":
                tools = [definition for definition, _ in self._tools.values()]
                return {"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"}
            case "tools/call":
                return await self._call(params, send)
            case _:
                return self._from_shelf(method, params)

    def _from_shelf(self, method: str, params: Json) -> Json:
        try:
            found = self.shelf.answer(method, params)
        except NotThere as error:
            raise _Refusal(INVALID_PARAMS, str(error)) from None
        if found is None:
            raise _Refusal(METHOD_NOT_FOUND, f"unknown method {method}")
        return found

    def _initialize(self, params: Json) -> Json:
        ours = [revision for revision in LEGACY_REVISIONS if revision in self._revisions]
        if not ours:
            raise self._unsupported(params.get("protocolVersion"))
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in ours else ours[0],
            "capabilities": {"tools": {}, **self.shelf.capabilities()},
            "serverInfo": {"name": self.name, "version": VERSION},
            **({"instructions": self._instructions} if self._instructions else {}),
        }

    def _discover(self, params: Json) -> Json:
        wanted = params.get("_meta", {}).get(META_PROTOCOL_VERSION)
        if wanted not in MODERN_REVISIONS or wanted not in self._revisions:
            if not any(revision in self._revisions for revision in MODERN_REVISIONS):
                raise _Refusal(METHOD_NOT_FOUND, "unknown method server/discover")
            raise self._unsupported(wanted)
        return {
            "resultType": "complete",
            "supportedVersions": list(self._revisions),
            "capabilities": {"tools": {}, **self.shelf.capabilities()},
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {META_SERVER_INFO: {"name": self.name, "version": VERSION}},
            **({"instructions": self._instructions} if self._instructions else {}),
        }

    async def _call(self, params: Json, send: Callable[[bytes], None]) -> Json:
        known = self._tools.get(params.get("name", ""))
        if known is None:
            raise _Refusal(INVALID_PARAMS, f"unknown tool {params.get('name')}")
        context = ToolContext(send, params.get("_meta", {}).get("progressToken"))
        try:
            value: Any = known[1](params.get("arguments") or {}, context)
            if inspect.isawaitable(value):
                value = await value
        except Exception as error:  # border: a tool's own failure is its result
            return _result_of(f"{type(error).__name__}: {error}", is_error=True)
        return _result_of(value)

    def _unsupported(self, requested: object) -> _Refusal:
        data = {"supported": list(self._revisions), "requested": requested}
        return _Refusal(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", data)


class _Refusal(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.error: Json = {"code": code, "message": message, **({"data": data} if data is not None else {})}


class _Stdin(asyncio.Protocol):
    def __init__(self, end: ServerEnd) -> None:
        self._end = end
        self._framer = LineFramer(end.put, lambda _head, _tail: True, limit_bytes=64 * 1024 * 1024)

    def data_received(self, data: bytes) -> None:
        self._framer.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.shut()


class _StdoutSink:
    def received(self, message: bytes) -> None:
        sys.stdout.buffer.write(message + b"\n")
        sys.stdout.buffer.flush()

    def oversized(self, head: bytes, tail: bytes) -> bool:
        return True

    def lost(self, cause: str) -> None:
        return


def _result_of(value: Any, *, is_error: bool = False) -> Json:
    if isinstance(value, dict):
        return {"resultType": "complete", **value}  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, list):
        value = [{"type": "text", "text": str(value)}]
    return {"resultType": "complete", "content": value, "isError": is_error}

"""A small MCP server made of Python functions, for tests, demos and built-in tools.

`wire/server` implements the protocol for both eras; `contents.py` has resources and prompts. A server runs
in-process (pass it to a host) or over stdio (`run_stdio`).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from dragoman.protocol import INVALID_PARAMS, REVISIONS
from dragoman.testing.contents import ServerContents
from dragoman.transports.inprocess import ServerEnd, standard_streams
from dragoman.version import VERSION
from dragoman.wire.server.connection import serve
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import RequestError, Service

Json = dict[str, Any]


class ToolContext:
    """The context of a call: reports progress."""

    def __init__(self, request: ClientRequest) -> None:
        self._request = request

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self._request.progress(progress, total, message)


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
        self.contents = ServerContents()

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
        await serve(self._service(), end)

    def run_stdio(self) -> None:
        """Serves on this process's standard streams until the input ends."""
        asyncio.run(self._serve_stdio())

    async def _serve_stdio(self) -> None:
        await self.serve(await standard_streams())

    def _service(self) -> Service:
        return Service(
            name=self.name,
            version=VERSION,
            handlers={
                "tools/list": self._list,
                "tools/call": self._call,
                **self.contents.handlers(),
            },
            instructions=self._instructions,
            revisions=self._revisions,
        )

    async def _list(self, request: ClientRequest) -> Json:
        return {"tools": [definition for definition, _ in self._tools.values()]}

    async def _call(self, request: ClientRequest) -> Json:
        call = request.decode(_Call)
        known = self._tools.get(call.name)
        if known is None:
            raise RequestError(INVALID_PARAMS, f"unknown tool {call.name}")
        try:
            value: Any = known[1](call.arguments or {}, ToolContext(request))
            if inspect.isawaitable(value):
                value = await value
        except Exception as error:  # border: a tool's own failure is its result
            return _result_of(f"{type(error).__name__}: {error}", is_error=True)
        return _result_of(value)


class _Call(Struct):
    name: str
    arguments: Json | None = None


def _result_of(value: Any, *, is_error: bool = False) -> Json:
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, list):
        value = [{"type": "text", "text": str(value)}]
    return {"content": value, "isError": is_error}

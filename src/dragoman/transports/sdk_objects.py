"""Adapts server objects of other libraries to the in-process transport.

Recognises a server object of the official SDK (`mcp`, 1.x and 2.x) or of FastMCP, and passes messages between
the in-process pair and the memory streams that these libraries expect. The libraries are imported only when
such an object is passed in.
"""

# These libraries are optional and untyped; only this module deals with them.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from dragoman.errors import ConfigError
from dragoman.transports.inprocess import InProcessServer, ServerEnd


def adapt(name: str, candidate: object) -> InProcessServer:
    """An object that can `serve`, made from the object that was passed to the host."""
    if isinstance(candidate, InProcessServer):
        return candidate
    lowlevel = _lowlevel_of(candidate)
    if lowlevel is None:
        raise ConfigError(
            f"server {name!r}: cannot serve {type(candidate).__name__!r} objects",
            hint="Give an entry (a dict), a server object of `mcp` or FastMCP, or an object with `serve`.",
        )
    return _SdkServer(candidate, lowlevel)


def _lowlevel_of(candidate: Any) -> Any:
    for attribute in ("_lowlevel_server", "_mcp_server"):  # MCPServer of mcp 2.x; FastMCP
        inner = getattr(candidate, attribute, None)
        if inner is not None:
            candidate = inner
    return (
        candidate
        if hasattr(candidate, "create_initialization_options") and hasattr(candidate, "run")
        else None
    )


class _SdkServer:
    def __init__(self, outer: Any, lowlevel: Any) -> None:
        self._outer = outer
        self._lowlevel = lowlevel

    async def serve(self, end: ServerEnd) -> None:
        from mcp.shared.memory import create_client_server_memory_streams

        # FastMCP keeps its lifespan outside the low-level server.
        lifespan = getattr(self._outer, "_lifespan_manager", contextlib.nullcontext)
        async with lifespan(), create_client_server_memory_streams() as (ours, theirs):
            outgoing = asyncio.create_task(_carry_out(ours[0], end))
            incoming = asyncio.create_task(_carry_in(end, ours[1]))
            try:
                options = self._lowlevel.create_initialization_options()
                await self._lowlevel.run(theirs[0], theirs[1], options)
            finally:
                incoming.cancel()
                outgoing.cancel()
                await asyncio.wait([incoming, outgoing])


async def _carry_in(end: ServerEnd, stream: Any) -> None:
    from mcp.shared.message import SessionMessage

    parse = _parser()
    async with stream:
        while (message := await end.receive()) is not None:
            await stream.send(SessionMessage(parse(message)))


async def _carry_out(stream: Any, end: ServerEnd) -> None:
    async for item in stream:
        end.send(_dumped(item.message))


def _dumped(message: Any) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:  # text with lone surrogates, which pydantic cannot write
        return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode()


def _parser() -> Any:
    import mcp.types

    types: Any = mcp.types
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    from_json = adapter.validate_json if adapter is not None else types.JSONRPCMessage.model_validate_json
    from_value = adapter.validate_python if adapter is not None else types.JSONRPCMessage.model_validate

    def parse(message: bytes) -> Any:
        try:
            return from_json(message)
        except ValueError:  # it may be text with lone surrogates, which pydantic cannot read
            return from_value(json.loads(message))

    return parse

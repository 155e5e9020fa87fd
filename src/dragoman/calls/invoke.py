"""Sends one `tools/call` request, with its parameters and headers, and reads the result.

`input_rounds.py` handles several rounds and the time limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Raw

from dragoman.calls.input_rounds import request_with_input
from dragoman.catalog.tools import ServerTool
from dragoman.connections.server_requests import ServerRequests
from dragoman.connections.session import Session
from dragoman.content.blocks import Block
from dragoman.content.result import ToolResult, is_large, read_large, read_result
from dragoman.interaction import RelatedCall
from dragoman.wire.mirroring import argument_headers
from dragoman.wire.peer import ProgressCallback

Result = tuple[ToolResult, tuple[Block, ...]]


def invoke(
    session: Session,
    tool: ServerTool,
    arguments: Mapping[str, Any],
    timeout_seconds: float,
    answerer: ServerRequests,
    check: Callable[[], None] | None = None,
    *,
    on_progress: ProgressCallback | None = None,
    reset_timeout_on_progress: bool = False,
    call: RelatedCall | None = None,
) -> Awaitable[Result]:
    name = tool.definition.name
    return request_with_input(
        session,
        "tools/call",
        {"name": name, "arguments": arguments},
        _read,
        name,
        timeout_seconds,
        answerer,
        check,
        on_progress,
        argument_headers(tool.mirrored, arguments) if session.mirrors_arguments else None,
        reset_timeout_on_progress,
        call,
    )


def _read(raw: Raw) -> tuple[str, Result] | Awaitable[tuple[str, Result]]:
    if is_large(raw):
        return _read_large(raw)
    result = read_result(raw)
    return result[0].result_type, result


async def _read_large(raw: Raw) -> tuple[str, Result]:
    result = await read_large(raw)
    return result[0].result_type, result

"""Handing one call to its server and reading the answer.

I own: the `tools/call` request itself: its parameters, its time limit, and what kinds of result are
understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.connections.session import Session
from dragoman.content.blocks import Block
from dragoman.content.result import ToolResult, read_result
from dragoman.errors import InvalidArguments, MalformedReply
from dragoman.names import WireToolName
from dragoman.wire.codec import Unreadable
from dragoman.wire.peer import ProgressCallback


async def invoke(
    session: Session,
    name: WireToolName,
    arguments: Mapping[str, Any],
    *,
    timeout_seconds: float,
    on_progress: ProgressCallback | None,
) -> tuple[ToolResult, tuple[Block, ...]]:
    try:
        raw = await session.request(
            "tools/call",
            {"name": name, "arguments": arguments},
            timeout_seconds=timeout_seconds,
            on_progress=on_progress,
        )
    except (TypeError, ValueError, OverflowError, RecursionError) as error:  # the encoder's: nothing was sent
        raise InvalidArguments(session.server, name, (f"cannot be written as JSON: {error}",)) from None
    try:
        result, content = read_result(raw)
    except Unreadable as problem:
        raise MalformedReply(session.server, problem.detail) from None
    if result.result_type != "complete":
        # Nothing that would let a server answer otherwise has been declared to it.
        raise MalformedReply(session.server, f"a result of the undeclared kind {result.result_type!r}")
    return result, content

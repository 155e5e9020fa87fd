"""Handing one call to its server and reading the answer.

I own: the `tools/call` request itself: its parameters, its headers, its time limit, its rounds, and what
kinds of result are understood.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dragoman.calls.rounds import ROUND_LIMIT, Answerer, next_round
from dragoman.catalog.tools import Tool
from dragoman.connections.session import Session
from dragoman.content.blocks import Block
from dragoman.content.result import ToolResult, read_result
from dragoman.errors import CallTimeout, ConnectionLost, InvalidArguments, MalformedReply, RemoteError
from dragoman.wire.codec import Unreadable
from dragoman.wire.mirroring import argument_headers
from dragoman.wire.peer import ProgressCallback


async def invoke(
    session: Session,
    tool: Tool,
    arguments: Mapping[str, Any],
    *,
    timeout_seconds: float,
    on_progress: ProgressCallback | None,
    answerer: Answerer,
) -> tuple[ToolResult, tuple[Block, ...]]:
    params: dict[str, Any] = {"name": tool.wire_name, "arguments": arguments}
    headers = argument_headers(tool.mirrored, arguments) if session.mirrors_arguments else None
    limit_seconds = timeout_seconds
    deadline = asyncio.get_running_loop().time() + limit_seconds
    for round_number in range(ROUND_LIMIT + 1):
        try:
            raw = await session.request(
                "tools/call",
                params,
                timeout_seconds=timeout_seconds,
                on_progress=on_progress,
                headers=headers,
            )
        except ConnectionLost as lost:
            if not round_number:
                raise
            # The rounds before were answered, so the call as a whole has reached the server.
            raise ConnectionLost(session.server, lost.cause, may_have_run=True, hint=lost.hint) from None
        except RemoteError as error:
            if round_number:
                error.status = None  # it says nothing about the rounds before, so nothing is repeated
            raise
        except (
            TypeError,
            ValueError,
            OverflowError,
            RecursionError,
        ) as error:  # the encoder's: nothing was sent
            raise InvalidArguments(
                session.server, tool.wire_name, (f"cannot be written as JSON: {error}",)
            ) from None
        try:
            result, content = read_result(raw)
        except Unreadable as problem:
            raise MalformedReply(session.server, problem.detail) from None
        if result.result_type == "complete":
            return result, content
        if result.result_type != "input_required" or session.driver.era != "modern":
            # Nothing that would let a server answer otherwise has been declared to it.
            raise MalformedReply(session.server, f"a result of the undeclared kind {result.result_type!r}")
        try:
            async with asyncio.timeout_at(deadline):
                answers = await next_round(session.server, raw, answerer)
        except TimeoutError:
            raise CallTimeout(session.server, "tools/call", limit_seconds) from None
        params = {"name": tool.wire_name, "arguments": arguments, **answers}
        timeout_seconds = max(0.001, deadline - asyncio.get_running_loop().time())
    raise MalformedReply(session.server, f"it asks for more than {ROUND_LIMIT} rounds")

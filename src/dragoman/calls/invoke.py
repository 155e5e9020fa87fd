"""Sends one `tools/call` request, with its parameters and headers, and reads the result.

`input_rounds.py` handles several rounds and the time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from time import monotonic
from typing import Any, Final

from msgspec import Raw

from dragoman.calls.input_rounds import Exchange, Read, complete
from dragoman.calls.tool_call import JudgedCall, ToolCall
from dragoman.catalog.tools import ServerTool
from dragoman.cleaning import cut
from dragoman.connections.session import Session
from dragoman.content.blocks import Block
from dragoman.content.result import LARGE_BYTES, ToolResult, is_large, read_forwarded, read_large, read_result
from dragoman.errors import MalformedReply
from dragoman.protocol import META_CLIENT_CAPABILITIES, META_LOG_LEVEL, Era
from dragoman.servers.server import Server
from dragoman.wire.client.tasks import TaskState, read_created
from dragoman.wire.codec import Unreadable
from dragoman.wire.mirroring import argument_headers
from dragoman.wire.peer import ProgressCallback

Result = tuple[ToolResult, tuple[Block, ...]]
_Found = tuple[str, Result | TaskState] | Awaitable[tuple[str, Result | TaskState]]

_OF_MODERN_ERA: Final = frozenset({META_CLIENT_CAPABILITIES, META_LOG_LEVEL})
TASK: Final = "task"
"""The `resultType` of a task of the modern era."""


async def invoke(
    session: Session,
    server: Server,
    tool: ServerTool,
    judged: JudgedCall,
    request: ToolCall,
    timeout_seconds: float,
    on_progress: ProgressCallback | None = None,
    task_ttl_ms: int | None = None,
) -> Result | TaskState:
    """The result, or the task that the server makes of the call. `task_ttl_ms`: a task is asked for, in the
    form of the legacy era, and is to be kept for so long."""
    arguments, driver = judged.arguments, session.driver
    params: dict[str, Any] = {"name": tool.definition.name, "arguments": arguments}
    if request.meta and (meta := _understood(request.meta, driver.era)):
        params["_meta"] = meta
    if task_ttl_ms is not None:
        params["task"] = {"ttl": task_ttl_ms}
    headers = argument_headers(tool.mirrored, arguments) if session.mirrors_arguments else None
    read = _READERS[driver.era, task_ttl_ms is not None, request.forward]
    deadline = monotonic() + timeout_seconds
    # Not by an `Exchange`, which most calls do not need: they are complete after this.
    raw = await session.request(
        "tools/call",
        params,
        timeout_seconds=timeout_seconds,
        on_progress=on_progress,
        headers=headers,
        reset_timeout_on_progress=request.reset_timeout_on_progress,
        before_send=judged.check,
        call=request.related(tool) if driver.servers_may_ask else None,
    )
    try:
        found = read(raw)
    except Unreadable as problem:
        raise MalformedReply(session.server, problem.detail) from None
    if isinstance(found, tuple) and found[0] == "complete":
        return found[1]
    exchange = Exchange(
        session,
        "tools/call",
        params,
        read,
        server.requests,
        judged.check,
        on_progress,
        headers,
        request.reset_timeout_on_progress,
        request.related(tool),
    )
    return await complete(exchange, raw, found, timeout_seconds, deadline)


def _understood(meta: Mapping[str, Any], era: Era) -> dict[str, Any]:
    """What a server of this era is sent of the metadata that a caller gives."""
    return {key: value for key, value in meta.items() if era == "modern" or key not in _OF_MODERN_ERA}


def _forwarded(raw: Raw) -> tuple[str, Result] | Awaitable[tuple[str, Result]]:
    return asyncio.to_thread(_forwarded_now, raw) if is_large(raw) else _forwarded_now(raw)


def _forwarded_now(raw: Raw) -> tuple[str, Result]:
    result = read_forwarded(raw)
    return result[0].result_type, result


def _forwarded_or_modern_task(raw: Raw) -> _Found:
    if is_large(raw):
        return asyncio.to_thread(_forwarded_or_modern_task_now, raw)
    return _forwarded_or_modern_task_now(raw)


def _forwarded_or_modern_task_now(raw: Raw) -> tuple[str, Result | TaskState]:
    kind, result = _forwarded_now(raw)
    return (kind, result) if kind != TASK else _modern_task(raw)


def _read_or_modern_task(raw: Raw) -> _Found:
    if len(raw) > LARGE_BYTES:
        return _read_large(raw)
    result = read_result(raw)
    kind = result[0].result_type
    return (kind, result) if kind != TASK else _modern_task(raw)


def _modern_task(raw: Raw) -> tuple[str, TaskState]:
    created = read_created(raw, "modern")
    assert created is not None
    return "complete", created


def _read_or_legacy_task(raw: Raw) -> _Found:
    if is_large(raw):
        return _read_large(raw)
    created = read_created(raw, "legacy")
    return _read_small(raw) if created is None else ("complete", created)


async def read_complete(raw: Raw) -> Result:
    """A result that is neither a task nor a request for input; `Unreadable` if it is one of these."""
    kind, result = await _read_large(raw) if is_large(raw) else _read_small(raw)
    if kind != "complete":
        raise Unreadable(f"a result of the undeclared kind {cut(kind, 40)!r}")
    return result


def _read(raw: Raw) -> tuple[str, Result] | Awaitable[tuple[str, Result]]:
    if is_large(raw):
        return _read_large(raw)
    return _read_small(raw)


def _read_small(raw: Raw) -> tuple[str, Result]:
    result = read_result(raw)
    return result[0].result_type, result


async def _read_large(raw: Raw) -> tuple[str, Result]:
    result = await read_large(raw)
    return result[0].result_type, result


_READERS: Final[Mapping[tuple[Era, bool, bool], Read[Result | TaskState]]] = {
    ("modern", False, False): _read_or_modern_task,
    ("modern", False, True): _forwarded_or_modern_task,
    ("modern", True, False): _read_or_modern_task,
    ("modern", True, True): _forwarded_or_modern_task,
    ("legacy", False, False): _read,
    ("legacy", False, True): _forwarded,
    ("legacy", True, False): _read_or_legacy_task,
    ("legacy", True, True): _read_or_legacy_task,
}
"""By era, whether a task was asked for, and whether the result is passed on undecoded."""

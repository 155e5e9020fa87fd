"""Sends one `tools/call` request, with its parameters and headers, and reads the result.

`input_rounds.py` handles several rounds and the time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from dragoman.calls.input_rounds import Read, request_with_input
from dragoman.catalog.tools import ServerTool
from dragoman.connections.server_requests import ServerRequests
from dragoman.connections.session import Session
from dragoman.content.blocks import Block
from dragoman.content.result import ToolResult, is_large, read_forwarded, read_large, read_result
from dragoman.interaction import RelatedCall
from dragoman.protocol import META_CLIENT_CAPABILITIES, META_LOG_LEVEL, Era
from dragoman.wire.client.tasks import TaskState, read_created
from dragoman.wire.codec import Unreadable
from dragoman.wire.mirroring import argument_headers
from dragoman.wire.peer import ProgressCallback

Result = tuple[ToolResult, tuple[Block, ...]]
_Found = tuple[str, Result | TaskState] | Awaitable[tuple[str, Result | TaskState]]

_OF_MODERN_ERA: Final = frozenset({META_CLIENT_CAPABILITIES, META_LOG_LEVEL})
TASK: Final = "task"
"""The `resultType` of a task of the modern era."""


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
    task_ttl_ms: int | None = None,
    forward: bool = False,
    meta: Mapping[str, Any] | None = None,
) -> Awaitable[Result | TaskState]:
    """The result, or the task that the server makes of the call. `task_ttl_ms`: a task is asked for, in the
    form of the legacy era, and is to be kept for so long. `forward`: the result is passed on undecoded.
    `meta`: see `ToolCall`."""
    name = tool.definition.name
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    era = session.driver.era
    if meta and era == "legacy":
        meta = {key: value for key, value in meta.items() if key not in _OF_MODERN_ERA}
    if meta:
        params["_meta"] = dict(meta)
    if task_ttl_ms is not None:
        params["task"] = {"ttl": task_ttl_ms}
    return request_with_input(
        session,
        "tools/call",
        params,
        _READERS[era, task_ttl_ms is not None, forward],
        name,
        timeout_seconds,
        answerer,
        check,
        on_progress,
        argument_headers(tool.mirrored, arguments) if session.mirrors_arguments else None,
        reset_timeout_on_progress,
        call,
    )


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
    if is_large(raw):
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
        raise Unreadable(f"a result of the undeclared kind {kind[:40]!r}")
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

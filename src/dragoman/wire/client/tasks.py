"""The two wire forms of tasks, read into one type: those of revision 2025-11-25, and the extension of the
modern era. Pure; anything a server sends ends in a `TaskState` or in `Unreadable`.
"""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

from msgspec import Raw, Struct

from dragoman.cleaning import cut
from dragoman.protocol import Era
from dragoman.wire.codec import Unreadable, decode_as, split_as
from dragoman.wire.messages import ABSENT

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]
STATUSES: Final[tuple[TaskStatus, ...]] = get_args(TaskStatus)
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})

ID_LIMIT: Final = 1024
"""The maximum length of a task's id, in characters."""
_NUMBER_LIMIT_BYTES: Final = 40


class TaskState(Struct, frozen=True, kw_only=True):
    """The state of a task, as its server reports it."""

    task_id: str
    status: TaskStatus = "working"
    message: str = ""
    """The status message of the server; untrusted text."""
    ttl_seconds: float | None = None
    poll_seconds: float | None = None
    """How long to wait before the next poll, as the server requests; the caller limits it."""
    result: Raw = ABSENT
    """The result of a completed task, in the modern era."""
    error: Raw = ABSENT
    """The error of a failed task, in the modern era."""
    input_requests: Raw = ABSENT
    """The input requests of a task, in the modern era."""


class _Wire(Struct, rename="camel"):
    # Without numbers, so that a large result in the same object is not searched.
    task_id: str
    status: str = "working"
    status_message: str | None = None
    ttl: Raw = ABSENT
    ttl_ms: Raw = ABSENT
    poll_interval: Raw = ABSENT
    poll_interval_ms: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT
    input_requests: Raw = ABSENT


class _Created(Struct):
    task: Raw = ABSENT


def read_created(raw: Raw, era: Era) -> TaskState | None:
    """The created task in a result; None if the result is of another kind."""
    if era == "modern":
        return _state(raw, era)
    created = split_as(_Created, raw)
    return None if created.task is ABSENT else _state(created.task, era)


def read_state(raw: Raw, era: Era, task_id: str) -> TaskState:
    """The answer to `tasks/get` about this task."""
    state = _state(raw, era)
    if state.task_id != task_id:
        raise Unreadable("it is about another task")
    return state


def _state(raw: Raw, era: Era) -> TaskState:
    wire = split_as(_Wire, raw)
    if not 0 < len(wire.task_id) <= ID_LIMIT or not (wire.task_id.isascii() and wire.task_id.isprintable()):
        raise Unreadable("the id of the task is empty, too long, or has characters that no id should have")
    if wire.status not in STATUSES:
        raise Unreadable(f"the task has the unknown status {cut(wire.status, 40)!r}")
    is_modern = era == "modern"
    return TaskState(
        task_id=wire.task_id,
        status=wire.status,
        message=cut(wire.status_message or "", 2048),
        ttl_seconds=_seconds(wire.ttl_ms if is_modern else wire.ttl),
        poll_seconds=_seconds(wire.poll_interval_ms if is_modern else wire.poll_interval),
        result=wire.result if is_modern else ABSENT,
        error=wire.error if is_modern else ABSENT,
        input_requests=wire.input_requests if is_modern else ABSENT,
    )


def _seconds(milliseconds: Raw) -> float | None:
    """The value in seconds; a value that is not a number, or out of range, counts as missing."""
    if milliseconds is ABSENT or memoryview(milliseconds).nbytes > _NUMBER_LIMIT_BYTES:
        return None
    try:
        found = decode_as(float, milliseconds) / 1000
    except Unreadable:
        return None
    return found if math.isfinite(found) and found >= 0 else None

"""What a task's state means, when it is asked for next, and what a failure on the way means. Pure.

Every decision of `task_following.py` is made here, with tables as tests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, cast

from dragoman.errors import CallError, CallTimeout, ConnectionLost, HttpError, RemoteError
from dragoman.protocol import INVALID_PARAMS, TASKS_EXTENSION, Era
from dragoman.wire.client.tasks import TERMINAL, TaskState

LEAST_POLL_SECONDS: Final = 0.1
"""The shortest time between two polls, whatever the server asks for or announces."""
LONGEST_POLL_SECONDS: Final = 60.0
FIRST_POLL_SECONDS: Final = 0.2
"""The first wait for a server that names no poll interval; each further wait is longer, up to
`USUAL_POLL_SECONDS`."""
USUAL_POLL_SECONDS: Final = 5.0
FAILURE_LIMIT: Final = 5
"""How many polls in a row may fail."""
INPUT_LIMIT: Final = 50
"""The most input requests of one task."""
LEAST_TTL_SECONDS: Final = 3600.0
LONGEST_TTL_SECONDS: Final = 24 * 3600.0
TASK_ANSWER_SECONDS: Final = 5.0
"""How long a server that has tasks may take to answer a call with a task."""
TASK_REVISION: Final = "2025-11-25"
"""The legacy revision that has tasks."""

Step = Literal["wait", "answer input", "fetch the result", "read the result", "read the error", "cancelled"]


def next_step(state: TaskState, era: Era) -> Step:
    """What to do with a task in this state."""
    match state.status:
        case "working":
            return "wait"
        case "input_required":
            # In the legacy era the server sends its requests by itself, while `tasks/result` is open.
            return "answer input" if era == "modern" else "wait"
        case "cancelled":
            return "cancelled"
        case "completed" | "failed" if era == "legacy":
            return "fetch the result"
        case "completed":
            return "read the result"
        case "failed":
            return "read the error"


def poll_wait(asked_seconds: float | None, polls: int) -> float:
    """How long to wait before the next poll; `polls`: how many there were."""
    if asked_seconds is None:
        return min(FIRST_POLL_SECONDS * 1.5 ** min(polls, 20), USUAL_POLL_SECONDS)
    return min(max(asked_seconds, LEAST_POLL_SECONDS), LONGEST_POLL_SECONDS)


AfterFailure = Literal["poll again", "not found", "give up"]


def after_failure(error: CallError, failures: int) -> AfterFailure:
    """What to do after a request about a task failed, for the `failures`-th time in a row."""
    match error:
        case RemoteError() if error.remote_code == INVALID_PARAMS:
            return "not found"
        case RemoteError():
            return "give up"
        case HttpError() if error.status != 429 and error.status < 500:
            return "give up"
        case ConnectionLost() | CallTimeout() | HttpError():
            return "poll again" if failures < FAILURE_LIMIT else "give up"
        case _:
            return "give up"


def takes_task(support: str | None, era: Era, revision: str, capabilities: Mapping[str, Any]) -> bool:
    """Whether a call asks for a task. In the modern era servers decide by themselves.

    `support`: `execution.taskSupport` of the tool; `capabilities`: those of the server.
    """
    if era != "legacy" or revision != TASK_REVISION or support not in ("required", "optional"):
        return False
    return offers_tasks(capabilities, "requests", "tools", "call")


def offers_tasks(capabilities: Mapping[str, Any], *path: str) -> bool:
    """Whether the server declares this part of `tasks`."""
    part: Any = capabilities.get("tasks")
    for key in path:
        part = cast("Mapping[str, Any]", part).get(key) if isinstance(part, Mapping) else None
    return part is not None and part is not False


def wait_before_moving(after_seconds: float, capabilities: Mapping[str, Any]) -> float:
    """How long a call is waited for before it continues inside the host. A server that has tasks is given the
    time to make one of it: a task survives the host."""
    extensions: Any = capabilities.get("extensions")
    has_extension = isinstance(extensions, Mapping) and TASKS_EXTENSION in extensions
    if has_extension or offers_tasks(capabilities):
        return max(after_seconds, TASK_ANSWER_SECONDS)
    return max(after_seconds, 0.0)


def wanted_ttl_ms(limit_seconds: float) -> int:
    """How long a server is asked to keep a task whose call has this time limit."""
    return int(min(max(limit_seconds, LEAST_TTL_SECONDS), LONGEST_TTL_SECONDS) * 1000)


def unanswered(keys: Collection[str], answered: Collection[str]) -> list[str]:
    """The input requests that are to be answered now: each once in the life of a task."""
    return [key for key in keys if key not in answered]


def is_over(state: TaskState) -> bool:
    return state.status in TERMINAL

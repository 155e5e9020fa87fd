"""`Host.tasks`: the tasks that run at servers, also those that an earlier process has started, and the calls
that continue inside this host.

Each request is judged like a call of the task's tool: what rules deny of the tool, they deny here. Arguments
of a task's call are not stored, so a rule about arguments cannot apply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.calls.progress import OnProgress
from dragoman.calls.requests import CANCEL_TASK, GET_TASK, NOTHING_SHOWN, Requests
from dragoman.calls.task_store import RunningTask
from dragoman.calls.tasks import TaskRunner
from dragoman.calls.tool_call import ToolCall
from dragoman.cleaning import one_line
from dragoman.content.redact import Redactor
from dragoman.errors import TaskNotFound
from dragoman.wire.client.tasks import TaskState


class TaskInfo(Struct, frozen=True, kw_only=True):
    """A task at a server, or a call that continues inside the host."""

    id: str
    server: str
    tool: str
    """The qualified name of the tool that was called."""
    status: str = "unknown"
    """`working`, `input_required`, `completed`, `failed`, `cancelled`; `unknown`: its server was not asked;
    `expired`: its server need not know it any more."""
    message: str = ""
    """The status message of the server, cleaned."""
    created: float
    """Seconds since the epoch."""
    expires: float | None = None


class Tasks:
    """The tasks of a host's servers."""

    def __init__(
        self,
        runner: TaskRunner,
        call: Callable[[ToolCall], Awaitable[CallOutcome]],
        requests: Requests,
        redactor_of: Callable[[str], Redactor | None],
        now: Callable[[], float],
    ) -> None:
        self._runner = runner
        self._call = call
        self._requests = requests
        self._redactor_of = redactor_of
        self._now = now

    async def list(self, server: str | None = None) -> list[TaskInfo]:
        """The tasks that are known, oldest first. No server is asked."""
        found = [task for task in await self._runner.all() if server in (None, task.server)]
        calls = self._runner.calls
        return [
            self._info(task, None if (call := calls.find(task.id)) is None else call.state) for task in found
        ]

    async def get(self, task: str) -> TaskInfo:
        """A task as its server describes it now. `TaskNotFound` if it is not known, or not any more."""
        known = await self._known(task)

        async def perform(_: Mapping[str, Any]) -> TaskState:
            return await self._runner.state(known)

        state = await self._requests.make(GET_TASK, _arguments(known), perform, NOTHING_SHOWN)
        return self._info(known, state)

    async def result(
        self,
        task: str,
        *,
        timeout_seconds: float | None = None,
        background_after_seconds: float | None = None,
        on_progress: OnProgress | None = None,
        raw: bool = False,
    ) -> CallOutcome:
        """Waits for the result of a task. The options are those of `Host.call`."""
        try:
            known = await self._known(task)
        except TaskNotFound as error:
            return outcome_of_error("", "", error)
        return await self._call(
            ToolCall(
                known.tool,
                {} if (call := self._runner.calls.find(known.id)) is None else call.arguments,
                timeout_seconds,
                on_progress,
                raw=raw,
                resumes=known,
                background_after_seconds=background_after_seconds,
            )
        )

    async def cancel(self, task: str) -> TaskInfo:
        """Asks the server to cancel a task, and forgets it. `TaskNotFound` if it is not known or over."""
        known = await self._known(task)

        async def perform(_: Mapping[str, Any]) -> None:
            await self._runner.cancel(known)

        await self._requests.make(CANCEL_TASK, _arguments(known), perform, NOTHING_SHOWN)
        return self._info(known, TaskState(task_id=known.task_id, status="cancelled"))

    async def _known(self, task: str) -> RunningTask:
        for each in await self._runner.all():
            if each.id == task:
                return each
        raise TaskNotFound("", task, "no running task has this id")

    def _info(self, task: RunningTask, state: TaskState | None = None) -> TaskInfo:
        return info_of(task, self._now(), state, self._redactor_of(task.server))


def info_of(
    task: RunningTask, now: float, state: TaskState | None = None, redact: Redactor | None = None
) -> TaskInfo:
    """`state`: as the server describes it, if it was asked."""
    message = state.message if state is not None else ""
    return TaskInfo(
        id=task.id,
        server=task.server,
        tool=task.tool,
        status=state.status if state else "expired" if task.is_expired(now) else "unknown",
        message=one_line(redact.text(message) if redact else message),
        created=task.created,
        expires=None if task.ttl_seconds is None else task.created + task.ttl_seconds,
    )


def _arguments(task: RunningTask) -> dict[str, str]:
    return {"server": task.server, "tool": task.wire_name, "task": task.id}

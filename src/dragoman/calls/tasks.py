"""The tasks of a host's servers: their results, states and cancellation.

`task_following.py` follows one task, `task_store.py` keeps what a later process needs. A task that its call
gives up is cancelled at its server.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from dragoman.calls.background import BackgroundCalls
from dragoman.calls.invoke import Result
from dragoman.calls.task_following import Following, FollowOptions, MovedToBackground, not_found, state_of
from dragoman.calls.task_steps import (
    after_failure,
    offers_tasks,
)
from dragoman.calls.task_store import KEPT_TASKS, RunningTask, TaskStore
from dragoman.connections.session import Session
from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    InputUnavailable,
    MalformedReply,
    PermissionRefused,
    RemoteError,
    TaskCancelled,
    TaskNotFound,
)
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server
from dragoman.servers.stored_tools import key_of
from dragoman.wire.client.tasks import TaskState

CANCEL_SECONDS: Final = 5.0
"""How long the cancelling of a task may take, after its call has ended."""


class TaskRunner:
    """Follows the tasks of a host's servers."""

    def __init__(self, servers: ServerRegistry) -> None:
        self._servers = servers
        self._store = TaskStore(servers.clock.now)
        self._unstored: dict[str, RunningTask] = {}
        """Tasks of servers without an entry: they end with this process."""
        self._cancelling: set[asyncio.Task[None]] = set()
        self.calls = BackgroundCalls()
        """Ordinary calls that continue in the background; they end with this process, too."""

    async def result(self, task: RunningTask, options: FollowOptions, state: TaskState | None) -> Result:
        """The result of the task. `state`: of a task that was just created.

        Raises `MovedToBackground` if it is still running after that time, `TaskNotFound`, `TaskCancelled`,
        and what a call raises.
        """
        server = self.server_of(task)
        following = Following(server, task, options, lambda: self._check(server), state)
        try:
            if state is not None and options.is_kept:
                await self._keep(task)
            found = await following.result()
        except MovedToBackground:
            raise
        except (
            TimeoutError,
            asyncio.CancelledError,
            InputUnavailable,
            MalformedReply,
            PermissionRefused,
        ) as ended:
            self.cancel_soon(server, task)
            if isinstance(ended, TimeoutError):
                raise CallTimeout(task.server, "tools/call", options.limit_seconds) from None
            raise
        except (TaskNotFound, TaskCancelled, RemoteError):
            await self._forget(task)
            raise
        await self._forget(task)
        return found

    async def all(self) -> list[RunningTask]:
        """The tasks whose results were not fetched yet."""
        stored = await asyncio.to_thread(self._store.all)
        return [*stored, *self._unstored.values(), *self.calls.all()]

    async def _keep(self, task: RunningTask) -> None:
        if task.fingerprint:
            await asyncio.to_thread(self._store.add, task)
            return
        self._unstored[task.id] = task
        for oldest in list(self._unstored)[:-KEPT_TASKS]:
            del self._unstored[oldest]

    async def _forget(self, task: RunningTask) -> None:
        if self._unstored.pop(task.id, None) is None:
            await asyncio.to_thread(self._store.remove, task)

    def server_of(self, task: RunningTask) -> Server:
        """The server of a task; `TaskNotFound` if its entry is not the one that the task was created at."""
        server = self._servers.find(task.server)
        if server is None:
            raise TaskNotFound(task.server, task.id, "its server is not configured any more")
        if task.fingerprint and key_of(server.config) != task.fingerprint:
            raise TaskNotFound(
                task.server, task.id, "the entry of its server has changed since, or starts in another folder"
            )
        return server

    async def state(self, task: RunningTask) -> TaskState:
        """The state of the task, as its server describes it now; or of a call that continues inside the
        host."""
        if (call := self.calls.find(task.id)) is not None:
            return call.state
        server = self.server_of(task)
        session = await server.wait_for_session(server.request_seconds)
        try:
            return await state_of(session, task, server.request_seconds)
        except RemoteError as error:
            if after_failure(error, 1) != "not found":
                raise
            await self._forget(task)
            raise not_found(task, error) from None

    async def cancel(self, task: RunningTask) -> None:
        """Asks the server to cancel the task. `TaskNotFound` if there is none that could be cancelled."""
        if (call := self.calls.find(task.id)) is not None:
            self.calls.forget(task.id)
            await call.cancel()
            return
        server = self.server_of(task)
        session = await server.wait_for_session(server.request_seconds)
        try:
            await self._send_cancel(server, session, task, server.request_seconds)
        except RemoteError as error:
            if after_failure(error, 1) != "not found":
                raise
            await self._forget(task)
            raise not_found(task, error) from None
        await self._forget(task)

    def cancel_soon(self, server: Server, task: RunningTask) -> None:
        """Cancels the task in the background: its caller does not wait."""

        async def cancel() -> None:
            session = server.session()
            if session is not None:
                with contextlib.suppress(CallError):
                    await self._send_cancel(server, session, task, CANCEL_SECONDS)
            await self._forget(task)

        cancelling = asyncio.create_task(cancel(), name=f"dragoman cancel {task.id}")
        self._cancelling.add(cancelling)
        cancelling.add_done_callback(self._cancelling.discard)

    async def close(self) -> None:
        """Ends the calls that continue in the background, and waits until servers know of the tasks that were
        given up; bounded in time."""
        await self.calls.close()
        if self._cancelling:
            await asyncio.wait(self._cancelling, timeout=CANCEL_SECONDS)

    async def _send_cancel(self, server: Server, session: Session, task: RunningTask, seconds: float) -> None:
        if task.era == "legacy" and not offers_tasks(server.capabilities, "cancel"):
            raise CallError(task.server, f"{task.server} cannot cancel tasks")
        await session.request("tasks/cancel", {"taskId": task.task_id}, timeout_seconds=seconds)

    def _check(self, server: Server) -> None:
        if self._servers.find(server.name) is not server:
            # The task was created at the server before: nothing is called again.
            error = ConnectionLost(server.name, "its entry has changed", may_have_run=True)
            error.is_final = True
            raise error

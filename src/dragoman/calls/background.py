"""Ordinary calls that continue inside the host after their callers stopped waiting.

A call is moved here with everything that belongs to it: its time limit, its questions to the person and its
recovery. Its result is stored until it is fetched, for a bounded number of calls, and no longer than the host
is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from dragoman.calls.invoke import Result
from dragoman.calls.progress import OnProgress
from dragoman.calls.recovery import Changed
from dragoman.calls.task_store import RunningTask
from dragoman.content.redact import Redactor
from dragoman.errors import CallTimeout, ConnectionLost, TaskNotFound
from dragoman.wire.client.tasks import TaskState
from dragoman.wire.peer import Progress

CALL_LIMIT: Final = 64
"""The most calls of one host that continue, or whose results were not fetched. One more drops the oldest
result."""

CALLS_OF_SERVER: Final = 32
"""The same limit for one server, so that a server that never answers leaves room for others."""

CLOSE_SECONDS: Final = 5.0


class BackgroundCall:
    """One call, and who receives its progress."""

    def __init__(
        self, arguments: Mapping[str, Any], on_progress: OnProgress | None, redactor: Redactor | None = None
    ) -> None:
        self.arguments = arguments
        self.redactor = redactor
        """Covers the secrets of the entry that the call was sent with: the entry may have changed when the
        result is fetched."""
        self.is_task = False
        """Whether its server runs it as a task: then the task is moved, and not the call."""
        self.is_moved = False
        self._on_progress = on_progress
        self._running: asyncio.Task[Result] | None = None

    def progressed(self, progress: Progress) -> Awaitable[None] | None:
        return None if self._on_progress is None else self._on_progress(progress)

    async def start(
        self, work: Awaitable[Result], seconds: float, may_move: Callable[[], bool]
    ) -> Result | None:
        """The result; None if the call is not over after so many seconds, and continues. Where it may not be
        moved then, the result is waited for."""
        self._running = asyncio.ensure_future(work)
        try:
            await asyncio.wait([self._running], timeout=seconds)
            if self._running.done() or self.is_task or not may_move():
                return await self._running
        except asyncio.CancelledError:
            await self.cancel()
            raise
        self.is_moved, self._on_progress = True, None
        return None

    async def result(
        self, task: RunningTask, seconds: float | None, after: float | None, on_progress: OnProgress | None
    ) -> Result | None:
        """The result; None if it is not there `after` so many seconds. When the time limit has passed, or the
        caller is cancelled, the call is cancelled."""
        assert self._running is not None
        self._on_progress = on_progress
        waits = [each for each in (seconds, after) if each is not None]
        try:
            await asyncio.wait([self._running], timeout=min(waits) if waits else None)
        except asyncio.CancelledError:
            await self.cancel()
            raise
        finally:
            self._on_progress = None
        if self._running.done():
            return self._outcome(task)
        if seconds is None or (after is not None and after < seconds):
            return None
        await self.cancel()
        raise CallTimeout(task.server, "tools/call", seconds)

    def _outcome(self, task: RunningTask) -> Result:
        assert self._running is not None
        try:
            return self._running.result()
        except asyncio.CancelledError:
            raise TaskNotFound(task.server, task.id, "the call was cancelled") from None
        except Changed:  # before it was sent: the call that was judged cannot be made any more
            raise ConnectionLost(task.server, "its entry has changed", may_have_run=False) from None

    async def cancel(self) -> None:
        """Cancels the call at its server, as the end of waiting for any call does."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    @property
    def is_over(self) -> bool:
        return self._running is not None and self._running.done()

    @property
    def state(self) -> TaskState:
        if self._running is None or not self._running.done():
            return TaskState(task_id="")
        if self._running.cancelled():
            return TaskState(task_id="", status="cancelled")
        # Asked for in every case: otherwise the event loop reports an error that was never fetched.
        failed = self._running.exception() is not None
        return TaskState(task_id="", status="failed" if failed else "completed")


class BackgroundCalls:
    """The calls of one host that continue, by the id by which they are fetched."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[RunningTask, BackgroundCall]] = {}

    def has_room(self, server: str) -> bool:
        full = self._full_of(server)
        return full is None or any(call.is_over for _, call in full)

    def keep(self, task: RunningTask, call: BackgroundCall) -> None:
        """Call only if there is room."""
        full = self._full_of(task.server)
        if full is not None:
            self.forget(next(each.id for each, known in full if known.is_over))
        self._calls[task.id] = (task, call)

    def _full_of(self, server: str) -> list[tuple[RunningTask, BackgroundCall]] | None:
        """The calls of which one has to make way for another call of the server; None if none has to."""
        every = list(self._calls.values())
        own = [each for each in every if each[0].server == server]
        if len(own) >= CALLS_OF_SERVER:
            return own
        return every if len(every) >= CALL_LIMIT else None

    def find(self, task: str) -> BackgroundCall | None:
        found = self._calls.get(task)
        return None if found is None else found[1]

    def all(self) -> list[RunningTask]:
        return [task for task, _ in self._calls.values()]

    def forget(self, task: str) -> None:
        if task in self._calls:
            _ = self._calls.pop(task)[1].state

    async def close(self) -> None:
        """Cancels all calls; waits a bounded time for their ends."""
        ends = [asyncio.create_task(call.cancel()) for _, call in self._calls.values()]
        self._calls.clear()
        if ends:
            await asyncio.wait(ends, timeout=CLOSE_SECONDS)

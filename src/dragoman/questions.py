"""The queue of all questions that a host puts to its person: permission, forms, URLs, sampling.

One question is shown at a time. Servers take turns, so that a server with many questions does not delay those
of others. An interaction that reaches several people (`asks_in_parallel`) is given all questions at once. A
question is removed from the queue or the screen when the task that asks it is cancelled, and all are removed
when the host closes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from dragoman.errors import HostClosed
from dragoman.interaction import Interaction

T = TypeVar("T")

WAITING_LIMIT: Final = 16
"""The most questions of one server that wait; more are refused. Permission questions are not limited: the
program itself makes the calls."""


class TooManyQuestions(Exception):
    """The server already has `WAITING_LIMIT` questions in the queue."""


class CallbackCancelled(Exception):
    """The program's code was cancelled, and the task that waits for it was not: for example, a front end has
    closed its dialog."""

    def __init__(self) -> None:
        super().__init__("it was cancelled")


def is_cancelled() -> bool:
    """Whether the running task was cancelled. A `CancelledError` that comes while it was not is a failure of
    the code that raised it."""
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


class OpenQuestion:
    """A question while it is shown. Work that the answer depends on is done within it."""

    is_open = True


sampling_depth: ContextVar[int] = ContextVar("dragoman sampling depth", default=0)
"""The number of nested sampling requests that the running code helps to answer."""

_current: ContextVar[OpenQuestion | None] = ContextVar("dragoman question", default=None)


def current_question() -> OpenQuestion | None:
    """The question that the running code helps to answer; None if there is none."""
    question = _current.get()
    return question if question is not None and question.is_open else None


class Questions:
    """The person of a host, and the queue of questions to them."""

    def __init__(self, interaction: Interaction | None) -> None:
        self.interaction = interaction
        self._asks_in_parallel = bool(getattr(interaction, "asks_in_parallel", False))
        self._is_busy = False
        """Whether a question is being shown."""
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The waiting questions by server. The first server is next."""
        self._shown: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    @asynccontextmanager
    async def turn(
        self, server: str, *, within: OpenQuestion | None = None, limit: int | None = None
    ) -> AsyncGenerator[None]:
        """Waits until the question may be shown. `limit`: raises `TooManyQuestions` if this many questions of
        the server wait. `within`: a question whose answer depends on this one. If that question, or the one
        that the caller helps to answer, is being shown, this one is shown immediately, because waiting would
        be a deadlock."""
        if self._is_closed:
            raise HostClosed
        outer = within if within is not None and within.is_open else current_question()
        if outer is not None or self._asks_in_parallel:
            yield
            return
        await self._take_turn(server, limit)
        try:
            yield
        finally:
            self._pass_turn_on()

    async def show(self, asked: Coroutine[Any, Any, T]) -> T:
        """The answer; `HostClosed` if the host is closed before it comes."""
        question = OpenQuestion()
        token = _current.set(question)
        try:
            return await self.wait_for(asked)
        finally:
            question.is_open = False
            _current.reset(token)

    async def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that ends with the host. Raises `HostClosed` if the host is closed first, and
        `CallbackCancelled` if the work is cancelled by itself."""
        if self._is_closed:
            work.close()
            raise HostClosed
        task = asyncio.create_task(work)
        self._shown.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            raise HostClosed() if self._is_closed else CallbackCancelled() from None
        finally:
            self._shown.discard(task)

    def close(self) -> None:
        """Ends every question; callers that wait for an answer get `HostClosed`."""
        self._is_closed = True
        for task in list(self._shown):
            task.cancel()
        for waiter in [waiter for line in self._waiting.values() for waiter in line]:
            if not waiter.done():
                waiter.set_exception(HostClosed())

    async def _take_turn(self, server: str, limit: int | None) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        line = self._waiting.setdefault(server, deque())
        if limit is not None and len(line) >= limit:
            raise TooManyQuestions
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._leave(server, waiter)
            elif waiter.done():
                self._pass_turn_on()  # the answer came at the same moment
            raise

    def _leave(self, server: str, waiter: asyncio.Future[None]) -> None:
        line = self._waiting.get(server, deque[asyncio.Future[None]]())
        if waiter in line:  # absent if it was already taken out after it was cancelled
            line.remove(waiter)
            if not line:
                del self._waiting[server]

    def _pass_turn_on(self) -> None:
        while self._waiting:
            server, line = next(iter(self._waiting.items()))
            del self._waiting[server]
            waiter = line.popleft()
            if line:
                self._waiting[server] = line  # after all other servers
            if not waiter.done():
                waiter.set_result(None)
                return
        self._is_busy = False

"""Follows one task until it ends: polls it, answers its input requests once each, and reads its result.

`task_steps.py` decides. A lost connection does not end a task: it is polled again as soon as its server is
back. A task is polled in bounded intervals and ends with its call's time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from dragoman.calls.input_rounds import (
    INPUT_LIMIT_BYTES,
    QUESTION_LIMIT,
    InputRequest,
    answer_input,
    input_context,
)
from dragoman.calls.invoke import Result, read_complete
from dragoman.calls.task_steps import (
    INPUT_LIMIT,
    LEAST_POLL_SECONDS,
    after_failure,
    is_over,
    next_step,
    poll_wait,
    unanswered,
)
from dragoman.calls.task_store import RunningTask
from dragoman.cleaning import one_line
from dragoman.connections.session import Session
from dragoman.content.result import is_large
from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    HttpError,
    MalformedReply,
    NotConnected,
    PermissionRefused,
    RemoteError,
    TaskCancelled,
    TaskNotFound,
)
from dragoman.interaction import RelatedCall
from dragoman.protocol import INTERNAL_ERROR
from dragoman.servers.server import Server
from dragoman.wire.client.tasks import TaskState, read_state
from dragoman.wire.codec import Unreadable, decode_as, split_as
from dragoman.wire.messages import ABSENT, ErrorObject, LargeErrorObject
from dragoman.wire.peer import ERROR_LIMIT_BYTES, Progress, ProgressCallback


class MovedToBackground(Exception):
    """The call ends here; its task continues, and its result can be fetched later."""

    def __init__(self, task: RunningTask, state: TaskState) -> None:
        super().__init__(task.id)
        self.task = task
        self.state = state


class TaskProgress:
    """Progress of a call that may be a task: the server's own notifications, and changes of the state."""

    def __init__(self, report: ProgressCallback, *, outlives_reply: bool = False) -> None:
        """`outlives_reply`: the token of the call stays valid for the task, as in the legacy era."""
        self._report = report
        self.outlives_reply = outlives_reply
        self._notified: Progress | None = None
        """The server's last notification."""
        self._changes = 0

    def __call__(self, progress: Progress) -> None:
        self._notified = progress
        self._report(progress)

    def changed(self, message: str) -> None:
        """The state has changed; the last numbers that the server has reported itself are repeated."""
        self._changes += 1
        last = self._notified
        if last is None:
            self._report(Progress(self._changes, None, message))
        else:
            self._report(Progress(last.progress, last.total, message))


class FollowOptions(Struct, frozen=True):
    """How long a task is followed, and who receives its progress."""

    seconds: float
    """The time limit."""
    reset_on_progress: bool = False
    """Whether the time limit starts again when the state of the task changes."""
    background_after_seconds: float | None = None
    progress: TaskProgress | None = None
    limit_seconds: float = 0.0
    """The time limit of the whole call, for the error."""
    is_kept: bool = True
    """Whether a new task can be fetched by its id; not if its call can be."""
    call: RelatedCall | None = None
    """The call that questions of the task belong to."""
    is_denied: Callable[[], bool] = lambda: False
    """Whether a rule denies the call by now."""


class Following:
    """One task, until it ends."""

    def __init__(
        self,
        server: Server,
        task: RunningTask,
        options: FollowOptions,
        check: Callable[[], None],
        state: TaskState | None,
    ) -> None:
        self._server = server
        self._task = task
        self._options = options
        self._check = check
        self._state = state or TaskState(task_id=task.task_id)
        self._is_new = state is not None and state.status == "working"
        """Whether the task was just created, so that the first poll can wait."""
        self._answered: set[str] = set()
        """Keys of input requests."""
        self._failures = 0
        self._open: asyncio.Task[Raw] | None = None
        """`tasks/result` of the legacy era: answered when the task ends; its stream carries the requests of
        the task."""
        self._loop = asyncio.get_running_loop()

    async def result(self) -> Result:
        """Raises `TimeoutError` when the time limit has passed."""
        began = self._loop.time()
        after = self._options.background_after_seconds
        async with asyncio.timeout(self._options.seconds) as limit, self._notified() as woken:
            self._limit = limit
            try:
                return await self._follow(woken, None if after is None else began + after)
            finally:
                self._close_stream()

    async def _follow(self, woken: asyncio.Event, background_at: float | None) -> Result:
        polls, is_known = 0, self._is_new
        while True:
            session = None
            try:
                session = await self._session()
                if not is_known:
                    self._changed(await state_of(session, self._task, self._server.request_seconds))
                    polls, self._failures = polls + 1, 0
                found = await self._act(session)
            except CallError as error:
                await self._recover(error)
                found = None
            if found is not None:
                return found
            wait = poll_wait(self._state.poll_seconds, polls)
            if background_at is not None and self._loop.time() + wait > background_at:
                wait = max(0.0, background_at - self._loop.time())
            with contextlib.nullcontext() if session is None else session.in_use():
                is_known = await self._wait(wait, woken)
            if background_at is not None and self._loop.time() >= background_at and not is_known:
                raise MovedToBackground(self._task, self._state)

    async def _session(self) -> Session:
        session = self._server.session()
        if session is None:
            try:
                session = await self._server.wait_for_session(self._server.timeout_seconds)
            except NotConnected:
                self._check()
                raise
        self._check()
        if session.driver.era != self._task.era:
            raise TaskNotFound(self._task.server, self._task.id, "its server speaks another revision now")
        return session

    def _check_allowed(self) -> None:
        """Raises an error if nothing may be sent to the task any more, such as what a person has answered."""
        self._check()
        if self._options.is_denied():
            error = PermissionRefused(self._task.server, self._task.tool, "a rule denies it by now")
            error.is_final = True
            raise error

    async def _act(self, session: Session) -> Result | None:
        """Does what the state asks for; the result, if that is it."""
        task, state = self._task, self._state
        match next_step(state, task.era):
            case "wait":
                self._open_stream(session)
            case "answer input":
                await self._answer(session)
            case "fetch the result":
                self._open_stream(session)
                assert self._open is not None
                return await self._streamed(self._open)
            case "read the result":
                return await self._read(state.result)
            case "read the error":
                raise _error_of(task, state)
            case "cancelled":
                raise TaskCancelled(task.server, task.tool, state.message)
        return await self._streamed(self._open) if self._open is not None and self._open.done() else None

    def _changed(self, state: TaskState) -> None:
        before, self._state = self._state, state
        if (before.status, before.message) == (state.status, state.message):
            return
        if self._options.reset_on_progress:
            self._limit.reschedule(self._loop.time() + self._options.limit_seconds)
        if self._options.progress is not None and (state.message or not is_over(state)):
            self._options.progress.changed(state.message or state.status)

    async def _recover(self, error: CallError) -> None:
        """Returns if the task is to be polled again; raises otherwise."""
        self._close_stream()
        if error.is_final:
            raise error
        self._failures += 1
        match after_failure(error, self._failures):
            case "poll again":
                return
            case "not found":
                assert isinstance(error, RemoteError)
                raise not_found(self._task, error) from None
            case "give up":
                raise error

    # The legacy era: `tasks/result`.

    def _open_stream(self, session: Session) -> None:
        if self._open is None and self._task.era == "legacy":
            waiting = session.request(
                "tasks/result",
                {"taskId": self._task.task_id},
                timeout_seconds=self._options.limit_seconds,
                is_long_lived=True,  # a stream that a proxy cuts is no lost link
                before_send=self._check_allowed,  # also before a question of the task is answered
                call=self._related_call,  # questions of the task come on this stream
            )
            self._open = asyncio.create_task(waiting, name=f"dragoman {self._task.id}")

    async def _streamed(self, stream: asyncio.Task[Raw]) -> Result | None:
        """The result, once it is there; None if the server refuses to give it before the task has ended."""
        await asyncio.wait([stream])
        self._open = None
        try:
            return await self._read(stream.result())
        except RemoteError as error:
            if not is_over(self._state):
                return None  # the next poll shows the state of the task
            error.is_final = True  # the task's own error, not one of the request for it
            raise

    def _close_stream(self) -> None:
        stream, self._open = self._open, None
        if stream is not None:
            # So that asyncio does not report an unread error.
            stream.add_done_callback(lambda done: done.cancelled() or done.exception())
            stream.cancel()

    async def _read(self, raw: Raw) -> Result:
        try:
            return await read_complete(raw)
        except Unreadable as problem:
            raise MalformedReply(self._task.server, f"the result of a task: {problem.detail}") from None

    @property
    def _related_call(self) -> RelatedCall:
        """The call that questions of the task belong to."""
        call = self._options.call or RelatedCall("tools/call", self._task.tool)
        return replace(call, task_id=self._task.task_id)

    # The modern era: input requests in the state.

    async def _answer(self, session: Session) -> None:
        questions = _questions(self._task, self._state.input_requests)
        keys = unanswered(questions, self._answered)
        if not keys:
            return
        if len(self._answered) + len(keys) > INPUT_LIMIT:
            raise MalformedReply(self._task.server, f"a task asks for input more than {INPUT_LIMIT} times")
        self._answered.update(keys)
        asking = asyncio.create_task(self._ask({key: questions[key] for key in keys}))
        try:
            with session.in_use():
                await self._until_answered(asking, keys)
            if asking.done():
                self._check_allowed()
                await self._update(asking.result())
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask(self, questions: Mapping[str, InputRequest]) -> dict[str, Mapping[str, Any]]:
        requests, context = self._server.requests, input_context(self._related_call)
        return {
            key: await answer_input(self._task.server, question, requests, context)
            for key, question in questions.items()
        }

    async def _until_answered(self, asking: asyncio.Task[Any], keys: Collection[str]) -> None:
        """Returns also when the task needs none of the answers any more: its questions are withdrawn."""
        polls = 0
        while not asking.done():
            await asyncio.wait([asking], timeout=poll_wait(self._state.poll_seconds, polls))
            polls += 1
            if asking.done() or (session := self._server.session()) is None:
                continue
            with contextlib.suppress(ConnectionLost, CallTimeout, HttpError):  # the person may still answer
                self._changed(await state_of(session, self._task, self._server.request_seconds))
            if not set(keys) & set(_wanted(self._task, self._state)):
                return

    async def _update(self, answers: Mapping[str, Any]) -> None:
        """Sends the answers, once more after a lost connection: a server takes each key once."""
        while True:
            session = await self._session()
            params = {"taskId": self._task.task_id, "inputResponses": answers}
            try:
                await session.request("tasks/update", params, timeout_seconds=self._server.request_seconds)
                return
            except CallError as error:
                await self._recover(error)
                await asyncio.sleep(poll_wait(self._state.poll_seconds, self._failures))

    # Waiting.

    @contextlib.asynccontextmanager
    async def _notified(self) -> AsyncGenerator[asyncio.Event]:
        """Set when the server announces a change of the task."""
        listeners, event = self._server.task_listeners, asyncio.Event()
        listeners[self._task.task_id] = event
        try:
            yield event
        finally:
            if listeners.get(self._task.task_id) is event:
                del listeners[self._task.task_id]

    async def _wait(self, seconds: float, woken: asyncio.Event) -> bool:
        """Returns when it is time to poll, or the result is there (true: no poll is needed)."""
        stream = self._open
        least = min(seconds, LEAST_POLL_SECONDS)
        waking = asyncio.create_task(_woken_after(woken, least))
        awaited = {waking} if stream is None else {waking, stream}
        try:
            await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()
            woken.clear()
        return stream is not None and stream.done()


async def _woken_after(woken: asyncio.Event, least_seconds: float) -> None:
    await asyncio.sleep(least_seconds)
    await woken.wait()


async def state_of(session: Session, task: RunningTask, seconds: float) -> TaskState:
    raw = await session.request("tasks/get", {"taskId": task.task_id}, timeout_seconds=seconds)
    try:
        if is_large(raw):
            return await asyncio.to_thread(read_state, raw, task.era, task.task_id)
        return read_state(raw, task.era, task.task_id)
    except Unreadable as problem:
        raise MalformedReply(task.server, f"the state of a task: {problem.detail}") from None


def _questions(task: RunningTask, raw: Raw) -> dict[str, InputRequest]:
    if memoryview(raw).nbytes > INPUT_LIMIT_BYTES:
        raise MalformedReply(task.server, f"its input requests are larger than {INPUT_LIMIT_BYTES} bytes")
    try:
        found = {} if raw is ABSENT else split_as(dict[str, InputRequest], raw)
    except Unreadable as problem:
        raise MalformedReply(task.server, f"its input requests cannot be read: {problem.detail}") from None
    if len(found) > QUESTION_LIMIT:
        raise MalformedReply(task.server, f"it sends more than {QUESTION_LIMIT} input requests at once")
    return found


def _wanted(task: RunningTask, state: TaskState) -> Collection[str]:
    """The keys of the input requests that a task waits for."""
    return _questions(task, state.input_requests) if state.status == "input_required" else ()


def _error_of(task: RunningTask, state: TaskState) -> CallError:
    """The error that a failed task of the modern era has."""
    try:
        if memoryview(state.error).nbytes > ERROR_LIMIT_BYTES:
            large = decode_as(LargeErrorObject, state.error)
            found = RemoteError(task.server, large.code, large.message)
        else:
            error = decode_as(ErrorObject, state.error)
            found = RemoteError(task.server, error.code, error.message, error.data)
    except Unreadable:
        found = RemoteError(task.server, INTERNAL_ERROR, state.message or "the task has failed")
    found.is_final = True  # the task's own error, not one of the request about it
    return found


def not_found(task: RunningTask, error: RemoteError) -> TaskNotFound:
    said = one_line(error.remote_message, 200)
    return TaskNotFound(
        task.server,
        task.id,
        f"its server does not know it any more ({said})",
        hint="It has expired, or the server keeps tasks only while the connection lasts that created them.",
    )

"""Delivers one call that was allowed: gets the session, sends the call, recovers after failures, follows its
task, and moves it to the background where that is wanted.
"""

from __future__ import annotations

import asyncio
import contextlib

from msgspec import structs

from dragoman.calls.background import BackgroundCall
from dragoman.calls.elicitation import Elicitor
from dragoman.calls.invoke import Result, invoke
from dragoman.calls.progress import ProgressRelay
from dragoman.calls.recovery import Changed, react
from dragoman.calls.task_following import FollowOptions, MovedToBackground, TaskProgress
from dragoman.calls.task_steps import takes_task, wait_before_moving, wanted_ttl_ms
from dragoman.calls.task_store import LONGEST_SECONDS, RunningTask, new_id
from dragoman.calls.tasks import TaskRunner
from dragoman.calls.tool_call import JudgedCall, ToolCall
from dragoman.calls.url_elicitation import elicit_urls
from dragoman.catalog.tools import ServerTool
from dragoman.connections.session import Session
from dragoman.errors import CallError, ConnectionLost, HttpError, NotConnected, RemoteError
from dragoman.interaction import RelatedCall
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server
from dragoman.wire.client.tasks import TaskState


class Delivery:
    def __init__(self, servers: ServerRegistry, elicitor: Elicitor | None) -> None:
        self._servers = servers
        self._bus = servers.bus
        self._clock = servers.clock
        self._elicitor = elicitor
        self.tasks = TaskRunner(servers)

    async def deliver(
        self, tool: ServerTool, judged: JudgedCall, request: ToolCall, started: float
    ) -> Result:
        """The result of the call; raises `MovedToBackground` if the call goes on without it."""
        task, after, server = request.resumes, request.background_after_seconds, judged.server
        if task is not None and (moved := self.tasks.calls.find(task.id)) is not None:
            return await self._fetch(task, moved, request)
        may_move = task is None and not request.moves_tasks_only
        if after is not None and may_move and self.tasks.calls.has_room(tool.server):
            return await self._deliver_or_move(tool, judged, request, started, after)
        session = None if server is None else server.session()
        takes_progress = request.on_progress is not None or request.reset_timeout_on_progress
        may_be_task = task is not None or tool.task_support is not None
        if takes_progress or may_be_task or self._bus.has_call_listeners or session is None or server is None:
            return await self._deliver(tool, judged, request, started)
        # Most calls need no more than this.
        seconds = request.timeout_seconds
        if seconds is None:
            seconds = server.timeout_seconds
        try:
            result = await invoke(session, server, tool, judged, request, seconds)
        except (ConnectionLost, RemoteError, HttpError) as error:
            return await self._deliver(tool, judged, request, started, failed=error)
        if isinstance(result, TaskState):
            task = self._new_task(session, tool, server, result)
            options = self._follow_options(tool, request, started, started + seconds, seconds)
            return await self.tasks.result(task, options, result)
        return result

    async def _deliver_or_move(
        self, tool: ServerTool, judged: JudgedCall, request: ToolCall, started: float, after: float
    ) -> Result:
        """Delivers the call; it goes on in the background if that takes longer."""
        call = BackgroundCall(judged.arguments, request.on_progress, judged.redactor)
        request = structs.replace(request, on_progress=call.progressed)
        wait = wait_before_moving(after, judged.server.capabilities if judged.server else {})
        wait = max(0.0, wait - (self._clock.monotonic() - started))
        work = self._deliver(tool, judged, request, started, call)
        # Asked again when the time has passed: others may have been moved meanwhile.
        result = await call.start(work, wait, lambda: self.tasks.calls.has_room(tool.server))
        if result is not None:
            return result
        task = RunningTask(
            id=new_id(),
            server=tool.server,
            fingerprint="",
            tool=tool.name,
            wire_name=tool.wire_name,
            task_id="",
            era="modern",
            created=self._clock.now(),
        )
        self.tasks.calls.keep(task, call)
        raise MovedToBackground(task, call.state)

    async def _fetch(self, task: RunningTask, call: BackgroundCall, request: ToolCall) -> Result:
        """The result of a call that was moved to the background; it is forgotten then."""
        after, is_kept = request.background_after_seconds, False
        try:
            result = await call.result(task, request.timeout_seconds, after, request.on_progress)
            is_kept = result is None
        finally:
            if not is_kept:
                self.tasks.calls.forget(task.id)
        if result is None:
            raise MovedToBackground(task, call.state)
        return result

    async def _deliver(
        self,
        tool: ServerTool,
        judged: JudgedCall,
        request: ToolCall,
        started: float,
        background: BackgroundCall | None = None,
        *,
        failed: CallError | None = None,
    ) -> Result:
        """Gets the session, sends the call, and again where `recovery` decides so. `failed`: why the first
        attempt did. A call that may have run is not judged again: its error is raised."""
        server, session = judged.server, None
        if server is None:
            raise Changed  # it was removed while the call was being checked
        limit_seconds = request.timeout_seconds
        if limit_seconds is None:
            limit_seconds = server.timeout_seconds
        deadline, seconds = started + limit_seconds, limit_seconds
        if failed is None:
            session = server.session()
            if session is None:
                session = await self._session(server, judged, limit_seconds)
                limit_seconds = seconds = self._left(deadline)
            if request.resumes is not None:  # nothing is sent by `invoke`, which checks it
                judged.check()
        attempt, ttl_ms, relay, progress = 1, None, None, None
        may_have_run = failed if _may_have_run(failed) else None
        if session is not None and _takes_task(tool, session, server):
            ttl_ms = wanted_ttl_ms(limit_seconds)
        if request.on_progress is not None or self._bus.has_call_listeners:
            relay = ProgressRelay(
                tool.server, tool.name, request.on_progress, self._bus, judged.redactor, request.call_id
            )
            progress = TaskProgress(relay, outlives_reply=ttl_ms is not None)
        result: Result | TaskState | None = None
        try:
            while request.resumes is None and result is None:
                if failed is not None:
                    if request.reset_timeout_on_progress:
                        # Progress extended the deadline; attempts are limited.
                        deadline = self._clock.monotonic() + limit_seconds
                    session = await self._recover(failed, attempt, judged, request, deadline)
                    attempt, seconds, failed = attempt + 1, self._left(deadline), None
                assert session is not None
                try:
                    result = await invoke(session, server, tool, judged, request, seconds, progress, ttl_ms)
                    if request.reset_timeout_on_progress:
                        deadline = self._clock.monotonic() + limit_seconds
                except (ConnectionLost, RemoteError, HttpError) as error:
                    failed = error
                    may_have_run = failed if _may_have_run(failed) else may_have_run
            if result is None or isinstance(result, TaskState):
                assert session is not None
                task = request.resumes or self._new_task(session, tool, server, result)
                options = self._follow_options(
                    tool, request, started, deadline, limit_seconds, progress, background
                )
                result = await self.tasks.result(task, options, result)
            if relay is not None:
                await relay.finish()
            return result
        except Changed:
            if may_have_run is not None:
                raise may_have_run from None
            raise
        finally:
            if relay is not None:
                relay.stop()
            if progress is not None and ttl_ms is not None and session is not None:
                session.forget_progress(progress)

    def _follow_options(
        self,
        tool: ServerTool,
        request: ToolCall,
        started: float,
        deadline: float,
        limit_seconds: float,
        progress: TaskProgress | None = None,
        background: BackgroundCall | None = None,
    ) -> FollowOptions:
        """How a call is followed that its server runs as a task."""
        if background is not None:
            background.is_task = True
        is_kept = background is None or not background.is_moved
        return FollowOptions(
            self._left(deadline),
            request.reset_timeout_on_progress,
            self._wait_left(request, started) if is_kept else None,
            progress,
            limit_seconds,
            is_kept=is_kept,
            call=request.related(tool),
        )

    def _wait_left(self, request: ToolCall, started: float) -> float | None:
        """After how many seconds from now the caller stops waiting; None: it does not."""
        after = request.background_after_seconds
        return None if after is None else max(0.0, after - (self._clock.monotonic() - started))

    def _new_task(
        self, session: Session, tool: ServerTool, server: Server, state: TaskState | None
    ) -> RunningTask:
        assert state is not None
        config = server.config
        return RunningTask(
            id=new_id(),
            server=tool.server,
            fingerprint=config.fingerprint() if config.command or config.url else "",
            tool=tool.name,
            wire_name=tool.wire_name,
            task_id=state.task_id,
            era=session.driver.era,
            created=self._clock.now(),
            # A longer time is as good as none for a person.
            ttl_seconds=None if (state.ttl_seconds or 0) > LONGEST_SECONDS else state.ttl_seconds,
        )

    async def _session(self, server: Server, judged: JudgedCall, seconds: float) -> Session:
        try:
            return await server.wait_for_session(seconds)
        except NotConnected:
            if server.name in self._servers:
                judged.check()  # if the entry was replaced, the call starts again with the new one
            raise

    async def _recover(
        self, error: CallError, attempt: int, judged: JudgedCall, request: ToolCall, deadline: float
    ) -> Session:
        """The session for the next attempt; raises the error if there is none."""
        tool, server = judged.tool, judged.server
        assert server is not None
        step = react(error, attempt=attempt, retry_safe=server.is_retry_safe(tool))
        if step.reaction == "give up" or step.wait_seconds >= self._left(deadline):
            raise error
        needs_url = step.reaction == "ask the person to open the URL and retry"
        call = request.related(tool)
        if needs_url and not await self._urls_opened(error, server, call, self._left(deadline)):
            raise error
        if step.wait_seconds:
            await asyncio.sleep(step.wait_seconds)
        try:
            session = await self._session(server, judged, self._left(deadline))
        except NotConnected:
            raise error from None  # it says what became of the call
        if step.reaction == "list again and retry":
            await server.read_tools_again(session, self._left(deadline))
        return session

    async def _urls_opened(self, error: CallError, server: Server, call: RelatedCall, seconds: float) -> bool:
        """Whether the person has opened the URLs that the server sent, within the time of the call."""
        if isinstance(error, RemoteError):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await elicit_urls(self._elicitor, error, call, server.requests.completions)
        return False

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - self._clock.monotonic())


def _takes_task(tool: ServerTool, session: Session, server: Server) -> bool:
    support, driver = tool.task_support, session.driver
    return support is not None and takes_task(support, driver.era, driver.revision, server.capabilities)


def _may_have_run(error: CallError | None) -> bool:
    return isinstance(error, ConnectionLost | HttpError) and error.may_have_run

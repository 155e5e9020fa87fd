"""Delivers one call that was allowed: sends it (`attempts.py`), follows its task, and moves it to the
background where that is wanted.
"""

from __future__ import annotations

from msgspec import structs

from dragoman.calls.attempts import Attempts
from dragoman.calls.background import BackgroundCall
from dragoman.calls.elicitation import Elicitor
from dragoman.calls.invoke import Result, invoke
from dragoman.calls.progress import ProgressRelay
from dragoman.calls.task_following import FollowOptions, MovedToBackground, TaskProgress
from dragoman.calls.task_steps import takes_task, wait_before_moving, wanted_ttl_ms
from dragoman.calls.task_store import LONGEST_SECONDS, RunningTask, new_id
from dragoman.calls.tasks import TaskRunner
from dragoman.calls.tool_call import JudgedCall, ToolCall
from dragoman.catalog.tools import ServerTool
from dragoman.connections.session import Session
from dragoman.errors import CallError, ConnectionLost, HttpError, RemoteError
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server
from dragoman.servers.stored_tools import key_of
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
        """The result of the call; raises `MovedToBackground` if the call continues without it."""
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
            options = self._follow_options(judged, request, started, started + seconds, seconds)
            return await self.tasks.result(task, options, result)
        return result

    async def _deliver_or_move(
        self, tool: ServerTool, judged: JudgedCall, request: ToolCall, started: float, after: float
    ) -> Result:
        """Delivers the call; it continues in the background if that takes longer."""
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
        """Delivers any call: with progress, as a task, or again after a failure. `failed`: the error of the
        first attempt."""
        attempts = Attempts(self._servers, self._elicitor, tool, judged, request, started)
        ttl_ms = relay = progress = None
        if failed is None:
            session = await attempts.connect()
            if request.resumes is not None:  # nothing is sent by `invoke`, which checks it
                judged.check()
            if _takes_task(tool, session, attempts.server):
                ttl_ms = wanted_ttl_ms(attempts.limit_seconds)
        if request.on_progress is not None or self._bus.has_call_listeners:
            relay = ProgressRelay(
                tool.server, tool.name, request.on_progress, self._bus, judged.redactor, request.call_id
            )
            progress = TaskProgress(relay, outlives_reply=ttl_ms is not None)
        try:
            result = None
            if request.resumes is None:
                result = await attempts.send(progress, ttl_ms, failed=failed)
            if result is None or isinstance(result, TaskState):
                task = request.resumes or self._new_task(attempts.session, tool, attempts.server, result)
                options = self._follow_options(
                    judged, request, started, attempts.deadline, attempts.limit_seconds, progress, background
                )
                result = await self.tasks.result(task, options, result)
            if relay is not None:
                await relay.finish()
            return result
        finally:
            if relay is not None:
                relay.stop()
            if progress is not None and ttl_ms is not None and attempts.session is not None:
                attempts.session.forget_progress(progress)

    def _follow_options(
        self,
        judged: JudgedCall,
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
            call=request.related(judged.tool),
            is_denied=lambda: judged.permissions.denies(judged.tool, judged.arguments),
        )

    def _wait_left(self, request: ToolCall, started: float) -> float | None:
        """After how many seconds from now the caller stops waiting; None: it does not."""
        after = request.background_after_seconds
        return None if after is None else max(0.0, after - (self._clock.monotonic() - started))

    def _new_task(
        self, session: Session | None, tool: ServerTool, server: Server, state: TaskState | None
    ) -> RunningTask:
        assert session is not None
        assert state is not None
        config = server.config
        return RunningTask(
            id=new_id(),
            server=tool.server,
            fingerprint=key_of(config) if config.command or config.url else "",
            tool=tool.name,
            wire_name=tool.wire_name,
            task_id=state.task_id,
            era=session.driver.era,
            created=self._clock.now(),
            # A longer time is as good as none for a person.
            ttl_seconds=None if (state.ttl_seconds or 0) > LONGEST_SECONDS else state.ttl_seconds,
        )

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - self._clock.monotonic())


def _takes_task(tool: ServerTool, session: Session, server: Server) -> bool:
    support, driver = tool.task_support, session.driver
    return support is not None and takes_task(support, driver.era, driver.revision, server.capabilities)

"""Sends one call that was allowed until it is answered: waits for the session, and repeats the call where
`recovery.py` decides so.

A call that may have run is not judged again: if it cannot be repeated, its error is raised.
"""

from __future__ import annotations

import asyncio
import contextlib

from dragoman.calls.elicitation import Elicitor
from dragoman.calls.invoke import Result, invoke
from dragoman.calls.recovery import Changed, react
from dragoman.calls.task_following import TaskProgress
from dragoman.calls.tool_call import JudgedCall, ToolCall
from dragoman.calls.url_elicitation import elicit_urls
from dragoman.catalog.tools import ServerTool
from dragoman.connections.session import Session
from dragoman.errors import CallError, ConnectionLost, HttpError, NotConnected, RemoteError
from dragoman.servers.registry import ServerRegistry
from dragoman.wire.client.tasks import TaskState


class Attempts:
    """The attempts to make one call, within its time limit."""

    def __init__(
        self,
        servers: ServerRegistry,
        elicitor: Elicitor | None,
        tool: ServerTool,
        judged: JudgedCall,
        request: ToolCall,
        started: float,
    ) -> None:
        if judged.server is None:
            raise Changed  # it was removed while the call was being checked
        self._servers = servers
        self._clock = servers.clock
        self._elicitor = elicitor
        self._tool = tool
        self._judged = judged
        self._request = request
        self.server = judged.server
        limit = request.timeout_seconds
        self.limit_seconds = self.server.timeout_seconds if limit is None else limit
        self.deadline = started + self.limit_seconds
        self.session: Session | None = None
        """The session of the latest attempt."""
        self._may_have_run: CallError | None = None
        """The error of an attempt after which the call may have run."""

    async def connect(self) -> Session:
        """The session for the first attempt."""
        self.session = self.server.session()
        if self.session is None:
            self.session = await self._wait_for_session()
            self.limit_seconds = self.left_seconds()
        return self.session

    async def send(
        self,
        progress: TaskProgress | None = None,
        task_ttl_ms: int | None = None,
        *,
        failed: CallError | None = None,
    ) -> Result | TaskState:
        """The answer of the server. `failed`: the error of the first attempt, if that was made elsewhere."""
        attempt, seconds = 1, self.limit_seconds
        try:
            while True:
                if failed is not None:
                    if isinstance(failed, ConnectionLost | HttpError) and failed.may_have_run:
                        self._may_have_run = failed
                    self.session = await self._recover(failed, attempt)
                    attempt, seconds = attempt + 1, self.left_seconds()
                assert self.session is not None
                try:
                    return await invoke(
                        self.session,
                        self.server,
                        self._tool,
                        self._judged,
                        self._request,
                        seconds,
                        progress,
                        task_ttl_ms,
                    )
                except (ConnectionLost, RemoteError, HttpError) as error:
                    failed = error
                finally:
                    if self._request.reset_timeout_on_progress:
                        self.deadline = self._clock.monotonic() + self.limit_seconds
        except Changed:
            if self._may_have_run is not None:
                raise self._may_have_run from None
            raise

    def left_seconds(self) -> float:
        return max(0.001, self.deadline - self._clock.monotonic())

    async def _wait_for_session(self) -> Session:
        try:
            return await self.server.wait_for_session(self.left_seconds())
        except NotConnected:
            if self.server.name in self._servers:
                self._judged.check()  # if the entry was replaced, the call starts again with the new one
            raise

    async def _recover(self, error: CallError, attempt: int) -> Session:
        """The session for the next attempt; raises the error if there is none."""
        step = react(error, attempt=attempt, retry_safe=self.server.is_retry_safe(self._tool))
        if step.reaction == "give up" or step.wait_seconds >= self.left_seconds():
            raise error
        needs_url = step.reaction == "ask the person to open the URL and retry"
        if needs_url and not await self._urls_opened(error):
            raise error
        if step.wait_seconds:
            await asyncio.sleep(step.wait_seconds)
        try:
            session = await self._wait_for_session()
        except NotConnected:
            raise error from None  # it states whether the call may have run
        if step.reaction == "list again and retry":
            await self.server.read_tools_again(session, self.left_seconds())
        return session

    async def _urls_opened(self, error: CallError) -> bool:
        """Whether the person has opened the URLs that the server sent, within the time of the call."""
        if isinstance(error, RemoteError):
            call = self._request.related(self._tool)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.left_seconds()):
                    return await elicit_urls(self._elicitor, error, call, self.server.requests.completions)
        return False

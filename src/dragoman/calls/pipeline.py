"""The story of one call, from name to outcome.

I own: the order of its steps. The order is the security model, so it stays in one function: every
front end goes through it, and there is no second way to a server. Each step is someone else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from dragoman.calls.invoke import invoke
from dragoman.calls.outcome import CallOutcome, outcome_of, outcome_of_error
from dragoman.calls.progress import OnProgress, ProgressRelay
from dragoman.calls.recovery import react
from dragoman.calls.rounds import Answerer
from dragoman.calls.validate import ArgumentChecker
from dragoman.catalog.pool import Catalog
from dragoman.catalog.tools import BuiltinResult, BuiltinTool, ServerTool, Tool
from dragoman.clock import Clock
from dragoman.connections.session import Session
from dragoman.content.blocks import Block, TextBlock
from dragoman.content.result import ToolResult
from dragoman.errors import (
    CallError,
    ConnectionLost,
    InvalidArguments,
    NotConnected,
    PermissionRefused,
    RemoteError,
    UnknownTool,
)
from dragoman.events import CallFinished, CallStarted, EventBus
from dragoman.hooks.points import Hooks
from dragoman.names import ServerName
from dragoman.permissions.gate import Gate


class ToolCall(Struct, frozen=True):
    name: str
    arguments: Mapping[str, Any]
    timeout_seconds: float | None = None
    on_progress: OnProgress | None = None
    own: Mapping[str, BuiltinTool] | None = None
    """The caller's built-in tools; they are found before those of servers."""


class Links(Protocol):
    """The way to servers, as far as a call needs it."""

    def session_of(self, server: ServerName) -> Session | None: ...
    async def awaited_session(self, server: ServerName, seconds: float) -> Session: ...
    def timeout_of(self, server: ServerName) -> float: ...
    def answerer_of(self, server: ServerName) -> Answerer: ...
    def is_harmless(self, tool: Tool) -> bool: ...
    async def list_again(self, server: ServerName, session: Session, seconds: float) -> None: ...


class Pipeline:
    def __init__(
        self,
        *,
        catalog: Catalog,
        hooks: Hooks,
        permissions: Gate,
        links: Links,
        bus: EventBus,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._hooks = hooks
        self._permissions = permissions
        self._links = links
        self._bus = bus
        self._clock = clock
        self._checker = ArgumentChecker()

    async def call(self, request: ToolCall) -> CallOutcome:
        """What the call comes to. Raises only when the plumbing fails."""
        try:
            tool = self._resolve(request)
            self._checker.check(tool, request.arguments)
        except (UnknownTool, InvalidArguments) as error:
            return outcome_of_error(error.server or "", request.name, error)
        arguments = await self._hooks.before_call(tool, request.arguments)
        if arguments is not request.arguments:
            try:
                self._checker.check(tool, arguments)
            except InvalidArguments as error:
                return outcome_of_error(tool.server, tool.name, error)
        decision = await self._permissions.decide(tool, arguments)
        if not decision.allowed:
            return outcome_of_error(
                tool.server, tool.name, PermissionRefused(tool.server, tool.name, decision.reason)
            )
        if isinstance(tool, BuiltinTool):
            outcome = await self._run(tool, arguments, request.timeout_seconds)
        else:
            outcome = await self._deliver(tool, arguments, request)
        return await self._hooks.after_call(tool, outcome)

    def _resolve(self, request: ToolCall) -> ServerTool | BuiltinTool:
        own = request.own.get(request.name) if request.own is not None else None
        return self._catalog.resolve(request.name) if own is None else own

    async def _run(
        self, tool: BuiltinTool, arguments: Mapping[str, Any], seconds: float | None
    ) -> CallOutcome:
        started = self._tell_start(tool)
        is_error, error_code = True, "cancelled"
        try:
            result = await _in_time(tool, arguments, seconds)
            is_error, error_code = False, None
        except CallError as error:
            error_code = error.code
            return outcome_of_error(tool.server, tool.name, error, self._clock.monotonic() - started)
        finally:
            self._tell_end(tool, started, is_error, error_code)
        content = (TextBlock(result),) if isinstance(result, str) else result
        took = self._clock.monotonic() - started
        return CallOutcome(server=tool.server, tool=tool.name, content=content, duration_seconds=took)

    async def _deliver(
        self, tool: ServerTool, arguments: Mapping[str, Any], request: ToolCall
    ) -> CallOutcome:
        links = self._links
        seconds = request.timeout_seconds
        if seconds is None:
            seconds = links.timeout_of(tool.server)
        deadline = self._clock.monotonic() + seconds
        session = links.session_of(tool.server)
        if session is None:
            session = await links.awaited_session(tool.server, seconds)
            seconds = self._left(deadline)
        relay = self._relay(tool, request)
        started = self._tell_start(tool)
        is_error, error_code = True, "cancelled"
        try:
            result, content = await self._invoke(session, tool, arguments, seconds, deadline, relay)
            outcome = outcome_of(tool.server, tool.name, result, content, self._clock.monotonic() - started)
            is_error, error_code = outcome.is_error, None
        except (RemoteError, InvalidArguments, UnknownTool) as error:
            error_code = error.code
            outcome = outcome_of_error(tool.server, tool.name, error, self._clock.monotonic() - started)
        except CallError as error:
            error_code = error.code
            raise
        else:
            if relay is not None:
                await relay.finish()
        finally:
            if relay is not None:
                relay.stop()
            self._tell_end(tool, started, is_error, error_code)
        return outcome

    def _tell_start(self, tool: Tool) -> float:
        """Tells that a call begins; returns when."""
        if self._bus.has_listeners:
            self._bus.publish(CallStarted(server=tool.server, tool=tool.name))
        return self._clock.monotonic()

    def _tell_end(self, tool: Tool, started: float, is_error: bool, error_code: str | None) -> None:
        if self._bus.has_listeners:
            self._bus.publish(
                CallFinished(
                    server=tool.server,
                    tool=tool.name,
                    duration_seconds=self._clock.monotonic() - started,
                    is_error=is_error,
                    error_code=error_code,
                )
            )

    async def _invoke(
        self,
        session: Session,
        tool: ServerTool,
        arguments: Mapping[str, Any],
        seconds: float,
        deadline: float,
        relay: ProgressRelay | None,
    ) -> tuple[ToolResult, tuple[Block, ...]]:
        """Hands the call over, and once more where `recovery` finds that safe."""
        attempt = 1
        while True:
            try:
                return await invoke(
                    session,
                    tool,
                    arguments,
                    timeout_seconds=seconds,
                    on_progress=relay,
                    answerer=self._links.answerer_of(tool.server),
                )
            except (ConnectionLost, RemoteError) as error:
                reaction = react(error, attempt=attempt, harmless=self._links.is_harmless(tool))
                if reaction == "give up":
                    raise
                attempt += 1
                try:
                    session = await self._links.awaited_session(tool.server, self._left(deadline))
                except NotConnected:
                    raise error from None  # it says what became of the call
                if reaction == "list again and repeat":
                    await self._links.list_again(tool.server, session, self._left(deadline))
                    tool = self._catalog.resolve(tool.name)
                seconds = self._left(deadline)

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - self._clock.monotonic())

    def _relay(self, tool: Tool, request: ToolCall) -> ProgressRelay | None:
        if request.on_progress is None and not self._bus.has_listeners:
            return None
        return ProgressRelay(tool.server, tool.name, request.on_progress, self._bus)


async def _in_time(tool: BuiltinTool, arguments: Mapping[str, Any], seconds: float | None) -> BuiltinResult:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await tool.run(arguments)
    except TimeoutError:
        if not limit.expired():
            raise  # the tool's own
        raise CallError(tool.server, f"{tool.name} took longer than {seconds:g} s") from None

"""The story of one call, from name to outcome.

I own: the order of its steps. The order is the security model, so it stays in one function: every
front end goes through it, and there is no second way to a server. Each step is someone else's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from dragoman.calls.invoke import invoke
from dragoman.calls.outcome import CallOutcome, outcome_of, outcome_of_error
from dragoman.calls.progress import OnProgress, ProgressRelay
from dragoman.calls.validate import ArgumentChecker
from dragoman.catalog.tools import Catalog, Tool
from dragoman.clock import Clock
from dragoman.connections.session import Session
from dragoman.errors import CallError, InvalidArguments, PermissionRefused, RemoteError, UnknownTool
from dragoman.events import CallFinished, CallStarted, EventBus
from dragoman.hooks.points import Hooks
from dragoman.names import ServerName
from dragoman.permissions.gate import Gate


class ToolCall(Struct, frozen=True):
    name: str
    arguments: Mapping[str, Any]
    timeout_seconds: float | None = None
    on_progress: OnProgress | None = None


class Pipeline:
    def __init__(
        self,
        *,
        catalog: Catalog,
        hooks: Hooks,
        permissions: Gate,
        session_of: Callable[[ServerName], Session],
        timeout_of: Callable[[ServerName], float],
        bus: EventBus,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._hooks = hooks
        self._permissions = permissions
        self._session_of = session_of
        self._timeout_of = timeout_of
        self._bus = bus
        self._clock = clock
        self._checker = ArgumentChecker()

    async def call(self, request: ToolCall) -> CallOutcome:
        """What the call comes to. Raises only when the plumbing fails."""
        try:
            tool = self._catalog.resolve(request.name)
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
        outcome = await self._deliver(tool, arguments, request)
        return await self._hooks.after_call(tool, outcome)

    async def _deliver(self, tool: Tool, arguments: Mapping[str, Any], request: ToolCall) -> CallOutcome:
        session = self._session_of(tool.server)
        seconds = request.timeout_seconds
        relay = self._relay(tool, request)
        started = self._clock.monotonic()
        if self._bus.has_listeners:
            self._bus.publish(CallStarted(server=tool.server, tool=tool.name))
        is_error, error_code = True, "cancelled"
        try:
            result, content = await invoke(
                session,
                tool.wire_name,
                arguments,
                timeout_seconds=self._timeout_of(tool.server) if seconds is None else seconds,
                on_progress=relay,
            )
            outcome = outcome_of(tool.server, tool.name, result, content, self._clock.monotonic() - started)
            is_error, error_code = outcome.is_error, None
        except (RemoteError, InvalidArguments) as error:
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
        return outcome

    def _relay(self, tool: Tool, request: ToolCall) -> ProgressRelay | None:
        if request.on_progress is None and not self._bus.has_listeners:
            return None
        return ProgressRelay(tool.server, tool.name, request.on_progress, self._bus)

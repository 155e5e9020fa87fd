"""One call or request, from name to outcome.

The order of the steps is the security model, so it stays in one function, `_make`. Every call of a tool and
every request for a list, a resource, a prompt or a completion goes through it, whoever makes it; there is no
second way to a server. (The handshake and the lists that the host reads ahead for itself are no requests.)
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from msgspec import UNSET, Struct, field, structs

from dragoman.calls.audit import AuditLog, Entry
from dragoman.calls.input_rounds import Answerer
from dragoman.calls.invoke import Result, invoke
from dragoman.calls.outcome import CallOutcome, covered, outcome_of, outcome_of_error, with_context
from dragoman.calls.progress import OnProgress, ProgressRelay
from dragoman.calls.recovery import Changed, react
from dragoman.calls.url_elicitation import send_to_pages
from dragoman.calls.validate import Checker, is_large
from dragoman.catalog.pool import Catalog
from dragoman.catalog.tools import BuiltinTool, Complete, Run, ServerTool, Tool
from dragoman.cleaning import one_line
from dragoman.clock import Clock
from dragoman.connections.session import Session
from dragoman.content.blocks import Block, TextBlock
from dragoman.content.prepare import Prepared, Preparer
from dragoman.content.redact import Redactor
from dragoman.content.result import ToolResult
from dragoman.copying import copied
from dragoman.errors import (
    CallError,
    ConnectionLost,
    DragomanError,
    HttpError,
    InputUnavailable,
    InvalidArguments,
    NotConnected,
    PermissionRefused,
    RemoteError,
    UnknownTool,
)
from dragoman.events import CallFinished, CallStarted, EventBus
from dragoman.hooks.points import Hooks
from dragoman.hooks.verdicts import HookWord
from dragoman.interaction import ElicitsUrls
from dragoman.names import ServerName
from dragoman.permissions.checker import Decision
from dragoman.wire.messages import ABSENT

SETTLING_LIMIT: Final = 3
"""How often a call starts again because its tool changed before it was sent."""


_HOST: Final = os.urandom(4).hex()
_numbers: Final = itertools.count(1)


def new_call_id() -> str:
    """Another one each time, also in another process."""
    return f"call_{_HOST}_{next(_numbers)}"


class ToolCall(Struct, frozen=True):
    name: str
    arguments: Mapping[str, Any]
    timeout_seconds: float | None = None
    on_progress: OnProgress | None = None
    own: Mapping[str, BuiltinTool] | None = None
    """The caller's built-in tools; they are found before those of servers."""
    reset_timeout_on_progress: bool = False
    """Whether the time limit starts again with each progress notification."""
    raw: bool = False
    """Whether the result is wanted as the server sent it, whatever its size: for people and programs."""
    perform: Run | None = None
    """Carries out a request that a program or person makes itself, in place of the built-in tool that it is
    judged as (see `requests.py`)."""
    call_id: str = field(default_factory=new_call_id)
    """By which events and hooks tell this call from others."""


class PermissionChecker(Protocol):
    """Who decides whether a call may be made."""

    async def decide(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        word: HookWord | None = None,
        *,
        is_own_request: bool = False,
        call_id: str = "",
    ) -> Decision: ...


class _Judged(NamedTuple):
    """A call that was allowed, and with it what must not have changed when it is sent."""

    tool: ServerTool | BuiltinTool
    server: ServerName
    """The tool's server, or the one that a built-in tool deals with; empty if there is none."""
    link: object
    """The connection of the entry it was allowed for."""
    arguments: Mapping[str, Any]
    redactor: Redactor | None
    """Of the same entry: another one may have its name by the time the answer arrives."""


class Links(Protocol):
    """The way to servers, as far as a call needs it."""

    def server_in(self, name: str) -> ServerName | None: ...
    def link_of(self, server: ServerName) -> object: ...
    def session_of(self, server: ServerName) -> Session | None: ...
    async def awaited_session(self, server: ServerName, seconds: float) -> Session: ...
    def timeout_of(self, server: ServerName) -> float: ...
    def answerer_of(self, server: ServerName) -> Answerer: ...
    def redactor_of(self, server: ServerName) -> Redactor | None: ...
    def is_harmless(self, tool: Tool) -> bool: ...
    async def list_again(self, server: ServerName, session: Session, seconds: float) -> None: ...


class Pipeline:
    def __init__(
        self,
        *,
        catalog: Catalog,
        hooks: Hooks,
        permissions: PermissionChecker,
        links: Links,
        preparer: Preparer,
        bus: EventBus,
        clock: Clock,
        audit: AuditLog | None = None,
        pages: ElicitsUrls | None = None,
    ) -> None:
        self._catalog = catalog
        self._hooks = hooks
        self._permissions = permissions
        self._links = links
        self._preparer = preparer
        self._bus = bus
        self._clock = clock
        self._audit = audit
        self._pages = pages
        self._checker = Checker()

    def call(self, request: ToolCall) -> Awaitable[CallOutcome]:
        """The outcome of the call. Raises only when the connection or the host fails."""
        entry = Entry(tool=request.name)
        audit = self._audit
        return self._settled(request, entry) if audit is None else self._audited(request, entry, audit)

    async def _audited(self, request: ToolCall, entry: Entry, audit: AuditLog) -> CallOutcome:
        """Like `_settled`; the end of the call is written to the audit log in every case."""
        began, started = time.time(), self._clock.monotonic()
        entry.outcome = "cancelled"
        try:
            outcome = await self._settled(request, entry)
            entry.outcome = _in_a_word(outcome)
            return outcome
        except DragomanError as error:
            entry.outcome = error.code
            raise
        finally:
            entry.duration_ms = round((self._clock.monotonic() - started) * 1000, 3)
            audit.write(entry, request.arguments, began)

    async def _settled(self, request: ToolCall, entry: Entry) -> CallOutcome:
        """Makes the call; again from the beginning if the tool changed before it was sent."""
        for _ in range(SETTLING_LIMIT):
            try:
                return await self._make(request, entry)
            except Changed:
                continue
        why = "it, or the entry of its server, changed while it was being allowed"
        entry.decision, entry.reason = "deny", why
        refused = PermissionRefused(entry.server, request.name, why)
        return outcome_of_error(entry.server, request.name, refused)

    async def _make(self, request: ToolCall, entry: Entry) -> CallOutcome:
        hooks, word, context = self._hooks, None, ()
        try:
            tool = await self._find(request)
            # A copy: what was judged is what is sent, whatever the caller does with its own.
            arguments = _copied(tool, request.arguments)
            entry.server = server = _server_of(tool, arguments)
            link = self._links.link_of(server) if server else None
            if is_large(arguments):
                await self._checker.check_large(tool, arguments)
            else:
                self._checker.check(tool, arguments)
            if isinstance(tool, BuiltinTool) and tool.complete is not None:
                arguments = await _completed(tool, tool.complete, arguments, request.timeout_seconds)
                entry.server = server = _server_of(tool, arguments)
                link = self._links.link_of(server) if server else None
            if hooks.wants("PreToolUse", tool, arguments):
                before = await hooks.before_call(tool, arguments, call_id=request.call_id)
                word, context = before.word, before.context
                if before.arguments is not arguments:
                    arguments = _copied(tool, before.arguments)
                    await self._checker.check_large(tool, arguments)
                    if isinstance(tool, BuiltinTool) and tool.complete is not None:
                        arguments = await _completed(tool, tool.complete, arguments, request.timeout_seconds)
                    if (named := _server_of(tool, arguments)) != server:
                        entry.server = server = named
                        link = self._links.link_of(server) if server else None
        except (UnknownTool, InvalidArguments) as error:
            return outcome_of_error(error.server or "", request.name, error)
        decision = await self._permissions.decide(
            tool,
            arguments,
            word,
            is_own_request=request.perform is not None,
            call_id=request.call_id,
        )
        _note(entry, decision, tool)
        if not decision.allowed:
            refused = PermissionRefused(server, tool.name, decision.reason)
            return with_context(outcome_of_error(tool.server, tool.name, refused), context)
        redactor = self._links.redactor_of(server) if server else None
        judged = _Judged(tool, server, link, arguments, redactor)
        outcome = await self._carry_out(judged, request)
        if hooks.wants("PostToolUseFailure" if outcome.is_error else "PostToolUse", tool, arguments):
            outcome = await self._look_over(tool, arguments, outcome, request.call_id)
        return with_context(outcome, context) if context else outcome

    async def _find(self, request: ToolCall) -> ServerTool | BuiltinTool:
        """The tool. A server that is still connecting is waited for; `NotConnected` if it is not."""
        try:
            return self._resolve(request)
        except UnknownTool:
            server = self._links.server_in(request.name)
            if server is None or self._links.session_of(server) is not None:
                raise
            seconds = request.timeout_seconds
            await self._links.awaited_session(
                server, self._links.timeout_of(server) if seconds is None else seconds
            )
            return self._resolve(request)

    def _resolve(self, request: ToolCall) -> ServerTool | BuiltinTool:
        own = request.own.get(request.name) if request.own is not None else None
        return self._catalog.resolve(request.name) if own is None else own

    # The call itself, allowed by now.

    async def _carry_out(self, judged: _Judged, request: ToolCall) -> CallOutcome:
        """Reports the start and the end of the call. A failed connection is passed to hooks, and raised."""
        tool, arguments, redact = judged.tool, judged.arguments, judged.redactor
        if self._bus.has_listeners and request.perform is None:
            self._bus.publish(CallStarted(server=tool.server, tool=tool.name, call_id=request.call_id))
        started = self._clock.monotonic()
        is_error, error_code = True, "cancelled"
        try:
            if isinstance(tool, BuiltinTool):
                if judged.server and self._links.link_of(judged.server) is not judged.link:
                    raise Changed
                result, content = await _run(tool, request.perform, arguments, request.timeout_seconds)
                if request.perform is not None:  # the caller has the result; this is what hooks see of it
                    is_error, error_code = False, None
                    return CallOutcome(server=judged.server, tool=tool.name, content=content)
            else:
                result, content = await self._deliver(tool, judged, request)
            prepared = self._prepared(judged, result, content, request)
            if not isinstance(prepared, Prepared):
                prepared = await prepared
            took = self._clock.monotonic() - started
            outcome = outcome_of(tool.server, tool.name, result, prepared, took, redact, raw=request.raw)
            is_error, error_code = outcome.is_error, None
            return outcome
        except CallError as failed:
            error_code = failed.code
            if isinstance(tool, BuiltinTool) or isinstance(failed, _ANSWERS):
                took = self._clock.monotonic() - started
                return outcome_of_error(judged.server, tool.name, failed, took, redact)
            error = covered(failed, redact)
            if self._hooks.wants("PostToolUseFailure", tool, arguments):
                await self._hooks.after_call(
                    tool,
                    arguments,
                    str(error),
                    is_error=True,
                    error_code=error.code,
                    call_id=request.call_id,
                )
            raise error from None
        except Changed:
            error_code = "changed"
            raise
        finally:
            if request.perform is None:
                self._tell_end(tool, request.call_id, started, is_error, error_code)

    def _tell_end(
        self, tool: Tool, call_id: str, started: float, is_error: bool, error_code: str | None
    ) -> None:
        if self._bus.has_listeners:
            self._bus.publish(
                CallFinished(
                    server=tool.server,
                    tool=tool.name,
                    call_id=call_id,
                    duration_seconds=self._clock.monotonic() - started,
                    is_error=is_error,
                    error_code=error_code,
                )
            )

    async def _deliver(self, tool: ServerTool, judged: _Judged, request: ToolCall) -> Result:
        """Gets the session, sends the call and waits for the answer."""
        links = self._links
        seconds = request.timeout_seconds
        if seconds is None:
            seconds = links.timeout_of(tool.server)
        deadline = self._clock.monotonic() + seconds
        session = links.session_of(tool.server)
        if session is None:
            session = await links.awaited_session(tool.server, seconds)
            seconds = self._left(deadline)
        self._check_unchanged(tool, judged.link)
        relay = self._relay(tool, request, judged.redactor)
        if relay is None:
            return await self._invoke(session, tool, judged, request, seconds, deadline, None)
        try:
            result = await self._invoke(session, tool, judged, request, seconds, deadline, relay)
            await relay.finish()
            return result
        finally:
            relay.stop()

    async def _invoke(
        self,
        session: Session,
        tool: ServerTool,
        judged: _Judged,
        request: ToolCall,
        seconds: float,
        deadline: float,
        relay: ProgressRelay | None,
    ) -> Result:
        """Sends the call, and again where `recovery` decides so."""
        attempt, limit_seconds = 1, seconds
        check = partial(self._check_unchanged, tool, judged.link)
        while True:
            try:
                return await invoke(
                    session,
                    tool,
                    judged.arguments,
                    timeout_seconds=seconds,
                    on_progress=relay,
                    answerer=self._links.answerer_of(tool.server),
                    reset_timeout_on_progress=request.reset_timeout_on_progress,
                    check=check,
                )
            except (ConnectionLost, RemoteError, HttpError) as error:
                if (
                    request.reset_timeout_on_progress
                ):  # progress has moved it; there are only so many attempts
                    deadline = self._clock.monotonic() + limit_seconds
                session, tool = await self._recover(error, attempt, tool, judged.link, deadline)
                attempt, seconds = attempt + 1, self._left(deadline)

    async def _recover(
        self, error: CallError, attempt: int, tool: ServerTool, link: object, deadline: float
    ) -> tuple[Session, ServerTool]:
        """The session and tool for the next attempt; raises the error if there is none.

        After every wait, entry and tool are compared with what was judged.
        """
        step = react(error, attempt=attempt, harmless=self._links.is_harmless(tool))
        if step.reaction == "give up" or step.wait_seconds >= self._left(deadline):
            raise error
        pages_first = step.reaction == "ask the person to open the URL and retry"
        if pages_first and not await self._visited(error, self._left(deadline)):
            raise error
        if step.wait_seconds:
            await asyncio.sleep(step.wait_seconds)
        self._check_after(error, tool, link)
        try:
            session = await self._links.awaited_session(tool.server, self._left(deadline))
        except NotConnected:
            self._check_after(error, tool, link)
            raise error from None  # it says what became of the call
        if step.reaction == "list again and retry":
            await self._links.list_again(tool.server, session, self._left(deadline))
        self._check_after(error, tool, link)
        return session, self._catalog.resolve(tool.name)

    def _check_after(self, error: CallError, tool: ServerTool, link: object) -> None:
        """Like `_check_unchanged`; a call that may have run is not made again for what changed."""
        try:
            self._check_unchanged(tool, link)
        except Changed:
            if isinstance(error, ConnectionLost | HttpError) and error.may_have_run:
                raise error from None
            raise

    def _check_unchanged(self, tool: ServerTool, link: object) -> None:
        """Raises `Changed` unless the tool has the definition, and its server the entry, that was judged."""
        if self._links.link_of(tool.server) is not link:
            raise Changed
        if (now := self._catalog.find(tool.name)) is tool:
            return
        if now is None or (now.server, now.digest) != (tool.server, tool.digest):
            raise Changed

    # What it came to.

    def _prepared(
        self, judged: _Judged, result: ToolResult, content: tuple[Block, ...], request: ToolCall
    ) -> Prepared | Awaitable[Prepared]:
        """The result as a model can use it; what is large takes a while."""
        tool, redactor, check = judged.tool, judged.redactor, None
        if result.structured is not UNSET and tool.definition.output_schema is not ABSENT:
            check = partial(self._checker.output_problems, tool)
        if request.raw:
            return self._preparer.prepare_whole(result, content, redact=redactor, output_check=check)
        prepared = self._preparer.prepare_quickly(result, content, redact=redactor, output_check=check)
        if prepared is not None:
            return prepared
        return self._preparer.prepare(
            result, content, redact=redactor, output_check=check, owner=judged.server
        )

    async def _look_over(
        self, tool: Tool, arguments: Mapping[str, Any], outcome: CallOutcome, call_id: str
    ) -> CallOutcome:
        """Hooks are given the text that the model will see, and may replace it or add to it."""
        code = outcome.error.code if outcome.error is not None else None
        after = await self._hooks.after_call(
            tool, arguments, outcome.text, is_error=outcome.is_error, error_code=code, call_id=call_id
        )
        if after.replacement is not None:
            # Nothing of the replaced result stays beside it.
            outcome = structs.replace(
                outcome,
                content=(TextBlock(after.replacement),),
                structured_content=UNSET,
                meta=None,
                saved=(),
            )
        return with_context(outcome, after.context)

    async def _visited(self, error: CallError, seconds: float) -> bool:
        """Whether the person has opened the URLs that the server sent, within the time of the call."""
        if isinstance(error, RemoteError):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    return await send_to_pages(self._pages, error)
        return False

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - self._clock.monotonic())

    def _relay(self, tool: Tool, request: ToolCall, redact: Redactor | None) -> ProgressRelay | None:
        if request.on_progress is None and not self._bus.has_listeners:
            return None
        return ProgressRelay(tool.server, tool.name, request.on_progress, self._bus, redact, request.call_id)


def _copied(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return copied(arguments)
    except RecursionError:
        raise InvalidArguments(tool.server, tool.name, ("they are nested too deeply",)) from None


_ANSWERS: Final = (RemoteError, InputUnavailable, InvalidArguments, UnknownTool)
"""Errors that are a result for the model."""


def _server_of(tool: ServerTool | BuiltinTool, arguments: Mapping[str, Any]) -> ServerName:
    return tool.touched(arguments)[0] if isinstance(tool, BuiltinTool) else tool.server


async def _completed(
    tool: BuiltinTool, complete: Complete, arguments: Mapping[str, Any], seconds: float | None
) -> Mapping[str, Any]:
    """The arguments with what the caller left out and the tool can find."""
    try:
        async with asyncio.timeout(seconds):
            return await complete(arguments)
    except TimeoutError:
        why = "those that were left out could not be found in time"
        raise InvalidArguments(tool.server, tool.name, (why,)) from None


async def _run(
    tool: BuiltinTool, perform: Run | None, arguments: Mapping[str, Any], seconds: float | None
) -> Result:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            found = await (perform or tool.run)(arguments)
    except TimeoutError:
        if not limit.expired():
            raise  # the tool's own
        raise CallError(tool.server, f"{tool.name} took longer than {seconds:g} s") from None
    except (DragomanError, Changed, asyncio.CancelledError):
        raise
    except Exception as error:  # border: a program's own tool
        failed = f"{tool.name} failed: {type(error).__name__}: {one_line(str(error), 500)}"
        raise CallError(tool.server, failed) from error
    return ToolResult(), (TextBlock(found),) if isinstance(found, str) else found


def _note(entry: Entry, decision: Decision, tool: Tool) -> None:
    entry.decision, entry.by, entry.reason = _WORDS[decision.allowed], decision.by, decision.reason
    if decision.rule is not None:
        entry.rule, entry.rule_source = decision.rule.text, decision.rule.source
    if isinstance(tool, BuiltinTool) and tool.shell_argument is not None:
        # Reasons and rules about commands repeat them, and they may hold secrets.
        entry.reason, entry.rule = "", tool.name if entry.rule else ""


_WORDS: Final = {True: "allow", False: "deny"}


def _in_a_word(outcome: CallOutcome) -> str:
    if outcome.error is not None:
        return outcome.error.code
    return "tool-error" if outcome.is_error else "ok"

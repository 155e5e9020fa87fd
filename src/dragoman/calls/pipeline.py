"""One call or request, from name to outcome.

The order of the steps is the security model, so it stays in one function, `_make`. Every call of a tool and
every request for a list, a resource, a prompt or a completion goes through it, from every caller; there is no
second way to a server. (The handshake and the lists that the host reads ahead for itself are no requests.)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from functools import partial
from threading import get_ident
from typing import Any, Final

from msgspec import UNSET, DecodeError, structs

from dragoman import tracing
from dragoman.calls.audit import AuditEntry, AuditLog, without_values
from dragoman.calls.delivery import Delivery
from dragoman.calls.elicitation import Elicitor
from dragoman.calls.invoke import Result, read_complete
from dragoman.calls.outcome import (
    CallOutcome,
    outcome_in_background,
    outcome_of,
    outcome_of_error,
    with_context,
    with_replacement,
)
from dragoman.calls.recovery import Changed
from dragoman.calls.sending import still_allowed
from dragoman.calls.task_following import MovedToBackground
from dragoman.calls.tool_call import JudgedCall, ToolCall
from dragoman.calls.validate import Checker
from dragoman.catalog.tools import BuiltinTool, Complete, Run, ServerTool, Tool
from dragoman.cleaning import one_line
from dragoman.content.blocks import Block, TextBlock
from dragoman.content.prepare import Prepared, Preparer
from dragoman.content.redact import Redactor
from dragoman.content.result import ForwardedResult, ToolResult
from dragoman.errors import (
    CallError,
    DragomanError,
    InputUnavailable,
    InvalidArguments,
    PermissionRefused,
    RemoteError,
    TaskCancelled,
    TaskNotFound,
    UnknownTool,
    UrlNotOpened,
    WrongLoop,
)
from dragoman.events import CallFinished, CallStarted
from dragoman.hooks.active import ActiveHooks
from dragoman.json_values import copied
from dragoman.permissions.checker import Decision, PermissionChecker
from dragoman.servers.registry import ServerRegistry
from dragoman.wire.messages import ABSENT

ATTEMPT_LIMIT: Final = 3
"""How often a call starts at most, if its tool or server changes each time before it is sent."""
_KEEPS_CHANGING: Final = "it, or the entry of its server, changed while permission was being decided"


_UNWRITTEN: Final = AuditEntry(tool="", caller="")
"""The entry that is filled in, and not written, where there is no audit log."""


def _always() -> bool:
    return True


class Pipeline:
    def __init__(
        self,
        servers: ServerRegistry,
        hooks: ActiveHooks,
        permissions: PermissionChecker,
        preparer: Preparer,
        audit: AuditLog | None = None,
        elicitor: Elicitor | None = None,
    ) -> None:
        self._servers = servers
        self._catalog = servers.catalog
        self._bus = servers.bus
        self._clock = servers.clock
        self._hooks = hooks
        self._permissions = permissions
        self._preparer = preparer
        self._audit = audit
        self._checker = Checker()
        self._delivery = Delivery(servers, elicitor)
        self.tasks = self._delivery.tasks
        self._thread, self._loop_runs = get_ident(), _always
        """The thread of the host's event loop, and whether that loop runs; see `open_in`."""

    def open_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on, calls are refused outside of this loop, which runs in the current thread."""
        self._thread, self._loop_runs = get_ident(), loop.is_running

    def call(self, request: ToolCall) -> Coroutine[Any, Any, CallOutcome]:
        """The outcome of the call. Raises only when the connection or the host fails."""
        if self._audit is None:
            return self._make(request, _UNWRITTEN)
        return self._audited(request, AuditEntry(tool=request.name, caller=request.caller.id), self._audit)

    async def _audited(self, request: ToolCall, entry: AuditEntry, audit: AuditLog) -> CallOutcome:
        """Like `_make`; the end of the call is written to the audit log in every case."""
        began, started = time.time(), self._clock.monotonic()
        entry.outcome = "cancelled"
        try:
            outcome = await self._make(request, entry)
            entry.outcome = _audit_outcome(outcome)
            return outcome
        except DragomanError as error:
            entry.outcome = error.code
            raise
        finally:
            entry.duration_ms = int((self._clock.monotonic() - started) * 1e6) / 1000
            audit.write(entry, request.arguments, began)

    async def _make(self, request: ToolCall, entry: AuditEntry, attempt: int = 1) -> CallOutcome:
        """The order of one call: find, validate, hooks, permission, send, prepare, hooks.

        `JudgedCall.check` runs before each sending: if the tool or its server has been replaced by then, the
        call starts again from the beginning.
        """
        # Not compared with `get_running_loop`, which in Python 3.11 asks the system for the pid each time.
        if get_ident() != self._thread or not self._loop_runs():
            raise WrongLoop  # the server would get the call, and the caller no answer
        hooks, hook_decision, context = self._hooks, None, ()
        servers, permissions = self._servers, self._permissions
        try:
            tool = self._known(request) or await self._find(request)
            is_new = request.resumes is None  # the arguments of a running task were checked when it began
            # A copy: what was judged is what is sent, whatever the caller does with its own.
            arguments = self._checker.quick_copy(tool, request.arguments)
            if arguments is None:
                arguments = _copied(tool, request.arguments)
                if is_new and not self._checker.check(tool, arguments):
                    arguments = await self._checked(tool, arguments, request)
            entry.server = name = tool.server or _server_of(tool, arguments)
            server = servers.find(name)
            if "PreToolUse" in hooks.of_event and hooks.wants("PreToolUse", tool, arguments):
                before = await hooks.before_call(tool, arguments, call_id=request.call_id)
                hook_decision, context = before.hook_decision, before.context
                if is_new and before.arguments is not arguments:
                    arguments = await self._checked(tool, _copied(tool, before.arguments), request)
                    if (named := _server_of(tool, arguments)) != name:
                        entry.server = name = named
                        server = servers.find(name)
        except (UnknownTool, InvalidArguments, TaskNotFound) as error:
            return outcome_of_error(error.server or "", request.name, error)
        version = permissions.version
        decision = permissions.decide_by_rules_alone(tool, hook_decision) or await permissions.decide(
            tool,
            arguments,
            hook_decision,
            is_own_request=request.perform is not None,
            call_id=request.call_id,
            caller=request.caller,
        )
        if self._audit is not None:
            _note(entry, decision, tool, arguments)
        if not decision.allowed:
            refused = PermissionRefused(name, tool.name, decision.reason)
            return with_context(outcome_of_error(tool.server, tool.name, refused), context)
        redactor = server.redactor if server is not None else None
        if request.resumes is not None and (moved := self.tasks.calls.find(request.resumes.id)):
            redactor = moved.redactor
        judged = JudgedCall(servers, tool, server, name, arguments, redactor, permissions, version)
        try:
            if tracing.is_on():
                outcome = await self._traced(judged, request)
            elif self._bus.has_call_listeners:
                outcome = await self._reported(judged, request)
            else:
                outcome = await self._carry_out(judged, request)
        except Changed:
            if attempt < ATTEMPT_LIMIT:
                return await self._make(request, entry, attempt + 1)
            entry.decision, entry.reason = "deny", _KEEPS_CHANGING
            return outcome_of_error(name, tool.name, PermissionRefused(name, tool.name, _KEEPS_CHANGING))
        if outcome.task is not None:  # hooks are given the result, once it is there
            return with_context(outcome, context)
        event = "PostToolUseFailure" if outcome.is_error else "PostToolUse"
        if event in hooks.of_event and hooks.wants(event, tool, arguments):
            outcome = await self._after_hooks(tool, arguments, outcome, request.call_id)
        if outcome.error is not None and _is_raised(tool, outcome.error):
            raise outcome.error from None
        return with_context(outcome, context) if context else outcome

    async def _checked(
        self, tool: ServerTool | BuiltinTool, arguments: Mapping[str, Any], request: ToolCall
    ) -> Mapping[str, Any]:
        """The arguments, valid, and with what the caller left out and the tool can find."""
        await self._checker.check_large(tool, arguments)
        if isinstance(tool, BuiltinTool) and tool.complete is not None:
            return await _completed(tool, tool.complete, arguments, request.timeout_seconds)
        return arguments

    def _known(self, request: ToolCall) -> ServerTool | BuiltinTool | None:
        if (task := request.resumes) is not None:  # its name may be another tool's by now
            return self._catalog.tool_of(task.server, task.wire_name)
        builtins, name = request.builtin_tools, request.name
        return (builtins.get(name) if builtins else None) or self._catalog.find(name)

    async def _find(self, request: ToolCall) -> ServerTool:
        """A tool that is not known. A server that is still connecting is waited for; `NotConnected` if it is
        not."""
        task = request.resumes
        server = self._servers.server_in(request.name) if task is None else self.tasks.server_of(task)
        if server is not None and server.session() is None:
            seconds = request.timeout_seconds
            if seconds is None:
                seconds = server.timeout_seconds
            server = await self._servers.successor_of(server, seconds)
            await server.wait_for_session(seconds)
        if task is None:
            return self._catalog.resolve(request.name, self._permissions.denied)
        if (tool := self._catalog.tool_of(task.server, task.wire_name)) is None:
            raise TaskNotFound(task.server, task.id, "its tool is not offered any more")
        return tool

    # The call itself, allowed by now.

    async def _traced(self, judged: JudgedCall, request: ToolCall) -> CallOutcome:
        """The same in a span, whose context the server is sent."""
        tool = judged.tool
        if not isinstance(tool, ServerTool):
            return await self._reported(judged, request)
        with tracing.span(
            f"tools/call {tool.wire_name}",
            request.meta,
            mcp__method__name="tools/call",
            gen_ai__tool__name=tool.wire_name,
            dragoman__server=tool.server,
        ) as span:
            meta = {**(request.meta or {}), **tracing.current_context()}
            outcome = await self._reported(judged, structs.replace(request, meta=meta))
            if outcome.is_error:
                span.fail("tool_error" if outcome.error is None else outcome.error.code)
            return outcome

    async def _reported(self, judged: JudgedCall, request: ToolCall) -> CallOutcome:
        """Makes the call, with an event at its start and one at its end, however it ends."""
        if request.perform is not None:
            return await self._carry_out(judged, request)
        server, tool, call_id = judged.tool.server, judged.tool.name, request.call_id
        self._bus.publish(CallStarted(server=server, tool=tool, call_id=call_id))
        started, is_error, error_code = self._clock.monotonic(), True, "cancelled"
        try:
            outcome = await self._carry_out(judged, request)
            is_error, error_code = outcome.is_error, outcome.error.code if outcome.error else None
            return outcome
        except Changed:
            error_code = "changed"
            raise
        except DragomanError as failed:  # the host was closed
            error_code = failed.code
            raise
        finally:
            took = self._clock.monotonic() - started
            self._bus.publish(
                CallFinished(
                    server=server,
                    tool=tool,
                    call_id=call_id,
                    duration_seconds=took,
                    is_error=is_error,
                    error_code=error_code,
                )
            )

    async def _carry_out(self, judged: JudgedCall, request: ToolCall) -> CallOutcome:
        """Makes the call. A failed connection is an outcome, too."""
        tool, redact, clock = judged.tool, judged.redactor, self._clock
        started = clock.monotonic()
        try:
            if isinstance(tool, BuiltinTool):
                result, content = await _run(tool, request.perform, judged, request.timeout_seconds)
                if request.perform is not None:  # the caller has the result; this is what hooks see of it
                    return CallOutcome(server=judged.server_name, tool=tool.name, content=content)
            else:
                result, content = await self._delivery.deliver(tool, judged, request, started)
            forwarded = None
            if request.forward and isinstance(result, ForwardedResult):
                if self._is_passed_on(judged, result, redact):
                    forwarded = result.raw
                else:
                    result, content = await read_complete(result.raw)
            # Asked now: secrets may have become known during the call.
            is_plain = not request.raw and (redact is None or redact.is_empty)
            if forwarded is not None or (is_plain and self._preparer.is_ready(result, content)):
                return CallOutcome(
                    server=tool.server,
                    tool=tool.name,
                    content=content,
                    is_error=result.is_error,
                    duration_seconds=clock.monotonic() - started,
                    forwarded=forwarded,
                )
            prepared = await self._prepared(judged, result, content, request)
            took = clock.monotonic() - started
            return outcome_of(tool.server, tool.name, result, prepared, took, redact, raw=request.raw)
        except MovedToBackground as moved:
            message = redact.text(moved.state.message) if redact else moved.state.message
            return outcome_in_background(moved.task, message, clock.monotonic() - started)
        except CallError as failed:
            took = clock.monotonic() - started
            return outcome_of_error(judged.server_name, tool.name, failed, took, redact)

    def _is_passed_on(self, judged: JudgedCall, result: ForwardedResult, redact: Redactor | None) -> bool:
        """Whether the result can stay undecoded: no hook wants it, and it can have no secret of the entry."""
        event = "PostToolUseFailure" if result.is_error else "PostToolUse"
        if self._hooks.wants(event, judged.tool, judged.arguments):
            return False
        return not redact or not redact.may_be_in_result(bytes(result.raw))

    # Results.

    async def _prepared(
        self, judged: JudgedCall, result: ToolResult, content: tuple[Block, ...], request: ToolCall
    ) -> Prepared:
        """The result as a model can use it; what is large takes a while."""
        tool, redactor, check = judged.tool, judged.redactor, None
        if result.structured is not UNSET and tool.definition.output_schema is not ABSENT:
            check = partial(self._checker.output_problems, tool)
        if request.raw:
            return await self._preparer.prepare_whole(result, content, redact=redactor, output_check=check)
        prepared = self._preparer.prepare_quickly(result, content, redactor, check)
        if prepared is not None:
            return prepared
        return await self._preparer.prepare(
            result, content, redact=redactor, output_check=check, owner=judged.server_name
        )

    async def _after_hooks(
        self, tool: Tool, arguments: Mapping[str, Any], outcome: CallOutcome, call_id: str
    ) -> CallOutcome:
        """Hooks are given the text that the model will see, and may replace it or add to it."""
        code = outcome.error.code if outcome.error is not None else None
        after = await self._hooks.after_call(
            tool, arguments, outcome.text, is_error=outcome.is_error, error_code=code, call_id=call_id
        )
        if after.replacement is not None:
            outcome = with_replacement(outcome, after.replacement)
        return with_context(outcome, after.context) if after.context else outcome


def _copied(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return copied(arguments)
    except RecursionError:
        raise InvalidArguments(tool.server, tool.name, ("they are nested too deeply",)) from None
    except DecodeError:
        raise InvalidArguments(tool.server, tool.name, ("a msgspec.Raw in them is not JSON",)) from None


_ANSWERS: Final = (
    RemoteError,
    InputUnavailable,
    InvalidArguments,
    PermissionRefused,
    UnknownTool,
    UrlNotOpened,
    TaskNotFound,
    TaskCancelled,
)
"""Errors that are a result for the model."""


def _is_raised(tool: Tool, error: CallError) -> bool:
    """Whether the caller gets an exception instead of an outcome: the connection or the host failed."""
    return not isinstance(tool, BuiltinTool) and not isinstance(error, _ANSWERS)


def _server_of(tool: ServerTool | BuiltinTool, arguments: Mapping[str, Any]) -> str:
    return tool.target(arguments)[0] if isinstance(tool, BuiltinTool) else tool.server


async def _completed(
    tool: BuiltinTool, complete: Complete, arguments: Mapping[str, Any], seconds: float | None
) -> Mapping[str, Any]:
    """The arguments with what the caller left out and the tool can find."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await complete(arguments)
    except TimeoutError:
        if not limit.expired():
            raise InvalidArguments(
                tool.server, tool.name, ("finding those that were left out failed",)
            ) from None
        why = "those that were left out could not be found in time"
        raise InvalidArguments(tool.server, tool.name, (why,)) from None


async def _run(tool: BuiltinTool, perform: Run | None, judged: JudgedCall, seconds: float | None) -> Result:
    judged.check()
    limit, token = asyncio.timeout(seconds), still_allowed.set(judged.check)
    try:
        async with limit:
            found = await (perform or tool.run)(judged.arguments)
    except (DragomanError, Changed, asyncio.CancelledError):
        raise
    except Exception as error:  # border: a program's own tool
        if limit.expired():
            raise CallError(tool.server, f"{tool.name} took longer than {seconds:g} s") from None
        failed = f"{tool.name} failed: {type(error).__name__}: {one_line(str(error), 500)}"
        raise CallError(tool.server, failed) from error
    finally:
        still_allowed.reset(token)
    return ToolResult(), (TextBlock(found),) if isinstance(found, str) else found


def _note(entry: AuditEntry, decision: Decision, tool: Tool, arguments: Mapping[str, Any]) -> None:
    entry.decision, entry.by, entry.reason = _DECISIONS[decision.allowed], decision.by, decision.reason
    if decision.rule is not None:
        entry.rule, entry.rule_source = decision.rule.text, decision.rule.source
    if isinstance(tool, BuiltinTool) and tool.shell_argument is not None:
        # Reasons and rules about commands repeat them, and they may hold secrets.
        entry.reason, entry.rule = "", tool.name if entry.rule else ""
    elif decision.rule is None and (not decision.allowed or decision.by in _GIVE_REASONS):
        entry.reason = without_values(entry.reason, arguments)


_GIVE_REASONS: Final = ("classifier", "hook", "person")
"""Their reasons are free text, which may repeat values of arguments."""
_DECISIONS: Final = {True: "allow", False: "deny"}


def _audit_outcome(outcome: CallOutcome) -> str:
    if outcome.error is not None:
        return outcome.error.code
    if outcome.task is not None:
        return "background"
    return "tool-error" if outcome.is_error else "ok"

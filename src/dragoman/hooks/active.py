"""The hooks of a host: finds the hooks for an event (once for each name), passes them the event's data, and
reports those that fail.

A hook finds a tool by every name by which a deny rule finds it, and the server of a question likewise. If its
matcher does not match the current name, the hook can only restrict: its allow, or its accept, is ignored.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from msgspec import structs

from dragoman.catalog.tools import BuiltinTool, ServerTool, Tool
from dragoman.events import HookReported
from dragoman.hooks import merging
from dragoman.hooks.declared import Hook
from dragoman.hooks.events import ANSWERING_EVENTS, EVENTS
from dragoman.hooks.matchers import EVERYTHING
from dragoman.hooks.merging import After, Before, Submitted
from dragoman.hooks.runner import EventInput, Runner
from dragoman.hooks.verdicts import HookAnswer, HookDecision
from dragoman.interaction import FormAnswer
from dragoman.names import names_of_server

NO_ARGUMENTS: Final[Mapping[str, Any]] = {}
REMEMBERED_NAMES: Final = 20_000
"""The maximum number of names whose hooks are cached; servers choose the names, so there is a limit."""

NamesOf = Callable[[Tool, Mapping[str, Any]], Collection[str]]
"""All names by which deny rules find a call, folded."""
Key = tuple[str, ...]

_NONE: Final[tuple[Hook, ...]] = ()

DEPTH_LIMIT: Final = 16
"""The maximum nesting of hooks: a hook that calls tools runs further hooks."""
_TOO_DEEP: Final = HookDecision("deny", "hooks that call tools that have hooks: too deep", "hooks")
_depth: ContextVar[int] = ContextVar("dragoman hooks within hooks", default=0)


class HookSession(NamedTuple):
    """The data that every hook of a host is given."""

    session_id: str
    cwd: str
    permission_mode: Callable[[], str]
    environ: Mapping[str, str] = os.environ
    """The environment for hooks that are programs."""
    transcript_path: str = ""


class ActiveHooks:
    """Runs hooks. Made once for a host, on its loop. No method raises because of a hook: a hook that fails is
    reported, and blocks if it is configured to."""

    def __init__(
        self,
        hooks: Sequence[Hook],
        session: HookSession,
        names_of: NamesOf,
        report: Callable[[HookReported], None],
    ) -> None:
        """`report`: is called with each failure, and with the messages of hooks to the person."""
        self._session = session
        self._report = report
        self._names_of = names_of
        self._runner = Runner(session.cwd, session.environ)
        self._concerned: dict[Key, tuple[Hook, ...]] = {}
        self.of_event: dict[str, list[Hook]] = {}
        """The hooks by event; an event that has none is missing."""
        self._notices: set[asyncio.Task[tuple[str, ...]]] = set()
        self.replace(hooks)

    def replace(self, hooks: Sequence[Hook]) -> None:
        """Replaces the hooks; running ones are not affected."""
        self.of_event = {}
        for hook in hooks:
            if not EVENTS[hook.event]:
                hook = structs.replace(hook, matches=EVERYTHING)
            self.of_event.setdefault(hook.event, []).append(hook)
        self._concerned.clear()

    def enter_conversation(self, session_id: str, transcript_path: str) -> None:
        """Sets the session id and the transcript file that hooks are given."""
        self._session = self._session._replace(session_id=session_id, transcript_path=transcript_path)

    def wants(self, event: str, subject: str | Tool, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> bool:
        """Whether any hook would run; cheap, and usually false. The subject of call events is the tool (and
        the arguments, which may name a server); for other events it is the field that `events.EVENTS`
        names."""
        return event in self.of_event and bool(self._hooks_for(event, subject, arguments))

    def names(
        self, event: str, subject: str | Tool, arguments: Mapping[str, Any] = NO_ARGUMENTS
    ) -> tuple[str, ...]:
        """The names of the hooks for an event."""
        return tuple(hook.name for hook in self._hooks_for(event, subject, arguments))

    async def before_call(self, tool: Tool, arguments: Mapping[str, Any], *, call_id: str = "") -> Before:
        """Runs the hooks of PreToolUse."""
        hooks = self._hooks_for("PreToolUse", tool, arguments)
        if not hooks:
            return Before(arguments)
        depth = _depth.get()
        if depth >= DEPTH_LIMIT:
            return Before(arguments, _TOO_DEEP)
        token = _depth.set(depth + 1)
        try:
            answers = await self._ask(hooks, "PreToolUse", _of_call(tool, arguments, call_id))
            if not answers:
                return Before(arguments)
            before, conflicts = merging.before(arguments, answers)
            managed = [hook for hook in hooks if hook.is_managed]
            if managed and merging.is_changed_by_person(arguments, answers):
                answers = await self._ask(managed, "PreToolUse", _of_call(tool, before.arguments, call_id))
                before, more = merging.merge_second_run(before, answers)
                conflicts += more
        finally:
            _depth.reset(token)
        self._report_conflicts("PreToolUse", conflicts)
        return before

    async def after_call(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        text: str,
        *,
        is_error: bool,
        error_code: str | None = None,
        call_id: str = "",
    ) -> After:
        """Runs the hooks of PostToolUse, or of PostToolUseFailure for an error."""
        event = "PostToolUseFailure" if is_error else "PostToolUse"
        hooks = self._hooks_for(event, tool, arguments)
        if not hooks:
            return _UNCHANGED
        facts = _of_call(tool, arguments, call_id)
        facts |= {"error": text, "error_code": error_code} if is_error else {"tool_response": text}
        answers = await self._ask(hooks, event, facts)
        if not answers:
            return _UNCHANGED
        after, conflicts = merging.after(answers)
        self._report_conflicts(event, conflicts)
        return after

    async def permission_requested(
        self, tool: Tool, arguments: Mapping[str, Any], *, call_id: str = ""
    ) -> HookDecision | None:
        """Runs the hooks of PermissionRequest. They allow or deny instead of the person; None: ask the
        person."""
        hooks = self._hooks_for("PermissionRequest", tool, arguments)
        if not hooks:
            return None
        facts = _of_call(tool, arguments, call_id)
        return merging.permission(await self._ask(hooks, "PermissionRequest", facts))

    async def elicited(
        self,
        server: str,
        message: str,
        schema: Mapping[str, Any],
        *,
        mode: str = "form",
        url: str = "",
        elicitation_id: str = "",
        call_id: str = "",
    ) -> FormAnswer | None:
        """Runs the hooks of Elicitation. Returns an answer instead of the person's; None: ask the person."""
        hooks = self._hooks_for("Elicitation", server)
        if not hooks:
            return None
        facts = _of_elicitation(server, mode, url, elicitation_id, call_id)
        facts |= {"message": message, "requested_schema": dict(schema)}
        answer, conflicts = merging.elicited(await self._ask(hooks, "Elicitation", facts))
        self._report_conflicts("Elicitation", conflicts)
        return answer

    async def elicitation_answered(
        self,
        server: str,
        answer: FormAnswer,
        *,
        mode: str = "form",
        url: str = "",
        elicitation_id: str = "",
        call_id: str = "",
    ) -> FormAnswer:
        """Runs the hooks of ElicitationResult. Returns the answer to send."""
        hooks = self._hooks_for("ElicitationResult", server)
        if not hooks:
            return answer
        facts = _of_elicitation(server, mode, url, elicitation_id, call_id)
        facts |= {"action": answer.action, "content": dict(answer.content)}
        answers = await self._ask(hooks, "ElicitationResult", facts)
        changed, conflicts = merging.elicitation_answered(answer, answers)
        self._report_conflicts("ElicitationResult", conflicts)
        return changed

    async def prompt_submitted(self, prompt: str) -> Submitted:
        """Runs the hooks of UserPromptSubmit. They decide whether the model is given a prompt, and may add
        context."""
        return merging.submitted(await self._answers("UserPromptSubmit", {"prompt": prompt}))

    async def stopping(self, event: str, facts: Mapping[str, Any]) -> str | None:
        """Runs the hooks of Stop or SubagentStop. Returns why the model must continue; None: it may stop."""
        return merging.reason_to_continue(await self._answers(event, facts))

    async def notify(self, event: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
        """Runs the hooks of any other event; returns when every hook has ended. Returns context for the
        model, which only `SessionStart` has. A refusal has no effect; its reason is shown to the person."""
        answers = await self._answers(event, facts)
        for answer in answers:
            if answer.behaviour == "deny" and answer.reason and not answer.has_failed:
                self._report(
                    HookReported(event=event, hook=answer.hook, text=answer.reason, is_failure=False)
                )
        return merging.contexts(answers)

    def notice(self, kind: str, title: str, message: str) -> None:
        """`Notification`, in a task of its own, so that nothing waits for its hooks."""
        if self.wants("Notification", kind):
            facts = {"message": message, "title": title, "notification_type": kind}
            task = asyncio.create_task(self.notify("Notification", facts))
            self._notices.add(task)
            task.add_done_callback(self._notices.discard)

    async def _answers(self, event: str, facts: Mapping[str, Any]) -> list[HookAnswer]:
        hooks = self._hooks_for(event, str(facts.get(EVENTS[event], "")))
        return await self._ask(hooks, event, facts) if hooks else []

    async def close(self) -> None:
        """Ends every hook that runs; none is started after that."""
        await self._runner.close()

    def _hooks_for(
        self, event: str, subject: str | Tool, arguments: Mapping[str, Any] = NO_ARGUMENTS
    ) -> tuple[Hook, ...]:
        if isinstance(subject, ServerTool):  # the common case, found quickly
            key = (event, subject.name, subject.server, subject.definition.name, "")
        else:
            key = (event, subject) if isinstance(subject, str) else (event, *_identity(subject, arguments))
        found = self._concerned.get(key)
        if found is None:
            if len(self._concerned) >= REMEMBERED_NAMES:
                self._concerned.clear()
            declared = self.of_event.get(event)
            found = _NONE if declared is None else self._matching(declared, subject, arguments)
            self._concerned[key] = found
        return found

    def _matching(
        self, declared: Sequence[Hook], subject: str | Tool, arguments: Mapping[str, Any]
    ) -> tuple[Hook, ...]:
        if isinstance(subject, str):
            name = subject
            names = names_of_server(name) if declared[0].event in ANSWERING_EVENTS else ()
        else:
            name, names = subject.name, self._names_of(subject, arguments)
        found: list[Hook] = []
        for hook in declared:
            if hook.matches(name):
                found.append(hook)
            elif hook.matches.may_mean(names):
                found.append(structs.replace(hook, only_restricts=True))
        return _distinct(found)

    async def _ask(self, hooks: Sequence[Hook], event: str, facts: Mapping[str, Any]) -> list[HookAnswer]:
        given = {
            "session_id": self._session.session_id,
            "transcript_path": self._session.transcript_path,
            "cwd": self._session.cwd,
            "hook_event_name": event,
            "permission_mode": self._session.permission_mode(),
            **facts,
        }
        answers = self._runner.run(hooks, EventInput(event, given))
        if not isinstance(answers, list):
            answers = await answers
        for answer in answers:
            for problem in answer.problems:
                self._report_failure(answer.hook, event, problem)
            if answer.message:
                report = HookReported(event=event, hook=answer.hook, text=answer.message, is_failure=False)
                self._report(report)
        return answers

    def _report_conflicts(self, event: str, conflicts: Sequence[merging.Conflict]) -> None:
        for conflict in conflicts:
            self._report_failure(conflict.hook, event, conflict.problem)

    def _report_failure(self, hook: str, event: str, problem: str) -> None:
        self._report(HookReported(event=event, hook=hook, text=problem, is_failure=True))


_UNCHANGED: Final = After()


def _of_call(tool: Tool, arguments: Mapping[str, Any], call_id: str) -> dict[str, Any]:
    if isinstance(tool, BuiltinTool):
        server, wire_name = tool.target(arguments)[0], ""
    else:
        server, wire_name = tool.server, tool.definition.name
    return {
        "tool_name": tool.name,
        "tool_input": arguments,
        "mcp_server_name": server,
        "mcp_tool_name": wire_name,
        "tool_use_id": call_id,
    }


def _of_elicitation(server: str, mode: str, url: str, elicitation_id: str, call_id: str) -> dict[str, Any]:
    return {
        "mcp_server_name": server,
        "mode": mode,
        "url": url,
        "elicitation_id": elicitation_id,
        "tool_use_id": call_id,
    }


def _identity(tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """The tool's name, its server and its wire name; for a built-in tool the server that it deals with, and
    the name of the resource or prompt there."""
    if isinstance(tool, BuiltinTool):
        server, thing = tool.target(arguments)
        return tool.name, server, "", thing
    return tool.name, tool.server, tool.definition.name, ""


def _distinct(hooks: Sequence[Hook]) -> tuple[Hook, ...]:
    """Each hook once. Of two that do the same, the stricter settings apply; an administrator's hook keeps its
    place after all others, its name and its time limit."""
    kept: list[Hook] = []
    for hook in hooks:
        place = next((number for number, each in enumerate(kept) if each.is_same(hook)), None)
        if place is None:
            kept.append(hook)
            continue
        both = (kept[place], hook)
        merged = structs.replace(
            hook if hook.is_managed else kept[place],
            blocks_on_error=any(each.blocks_on_error for each in both),
            only_restricts=all(each.only_restricts for each in both),
        )
        if hook.is_managed and not kept[place].is_managed:
            del kept[place]
            kept.append(merged)
        else:
            kept[place] = merged
    return tuple(kept)

"""Decides whether one call is allowed, with the reason and the source of the decision.

Order: rules and mode (`decide.py`), the classifier, a `PermissionRequest` hook, the person (one question at a
time). An approval for the session is bound to the tool's definition. If no person can be asked, the call is
refused.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from msgspec import Struct, structs

from dragoman.catalog.annotations import Hints
from dragoman.catalog.naming import qualify
from dragoman.catalog.tools import RESOURCES, BuiltinTool, ServerTool, Tool
from dragoman.cleaning import one_line
from dragoman.errors import HostClosed
from dragoman.events import EventBus, PermissionAsked
from dragoman.hooks.active import ActiveHooks
from dragoman.hooks.verdicts import HookDecision
from dragoman.interaction import (
    LOCAL_CALLER,
    Caller,
    Interaction,
    NoInteraction,
    PermissionAnswer,
    PermissionQuestion,
    current_agent,
)
from dragoman.json_values import copied
from dragoman.permissions.classifier import Classification, Classifier, conversation_so_far
from dragoman.permissions.decide import Verdict, decide, is_heavy, rule_for, server_rule_for
from dragoman.permissions.grants import Granted, SessionGrants
from dragoman.permissions.modes import PermissionMode
from dragoman.permissions.rules import Call, Rule, Rulebook
from dragoman.permissions.subjects import all_names
from dragoman.questions import Questions

Decider = Literal["rule", "grant", "hook", "mode", "classifier", "person", "host", "caller"]
Keep = Callable[[str, str], Awaitable[None]]
"""Writes an allow rule to a scope, and applies it."""


ADVICE_CHARACTERS: Final = 300


class Decision(Struct, frozen=True):
    allowed: bool
    reason: str
    by: Decider = "mode"
    rule: Rule | None = None


_YES_OR_NO: Final = ("allowed", "for_session", "whole_server")
_READS: Final = Hints(read_only=True, destructive=False, idempotent=True)
_BYPASSED = Decision(True, "permission mode bypassPermissions")


class Deciders(NamedTuple):
    """What decides about a call that rules and mode do not decide, in this order."""

    classifier: Classifier
    hooks: ActiveHooks
    questions: Questions


class PermissionChecker:
    def __init__(
        self,
        book: Rulebook,
        mode: PermissionMode,
        deciders: Deciders,
        bus: EventBus,
        keep: Keep | None,
    ) -> None:
        """`keep`: None if a rule that is written would not be read by this host."""
        self._classifier, self._hooks, self._questions = deciders
        self._bus = bus
        self._keep = keep
        self.grants = SessionGrants()
        self._replacements: dict[str, int] = {}
        """A counter for each server of the changes and removals of its entry."""
        self.version = 0
        """A counter of the changes of rules or mode."""
        self.adopt(book, mode)

    def adopt(self, book: Rulebook, mode: PermissionMode) -> None:
        """Replaces the rules."""
        self.version += 1
        self._book = book
        self.mode: PermissionMode = mode
        self._decides_nothing = mode == "bypassPermissions" and not book.rules
        denies = [rule for rule in book.rules if rule.behaviour == "deny"]
        self._may_deny_tools = any(rule.ignores_arguments for rule in denies)
        self._may_deny_servers = any(rule.is_bare for rule in denies)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(self._book.rules)

    def forget(self, server: str) -> None:
        """Ends all grants for a server whose entry was changed or removed, and invalidates questions about it
        that are still open."""
        self.grants.forget(server)
        self._replacements[server] = self._replacements.get(server, 0) + 1

    def decide_by_rules_alone(self, tool: Tool, hook_decision: HookDecision | None) -> Decision | None:
        """The result of `decide`, if it is the same for every call of the tool; None if `decide` has to be
        called. Quick: it reads no arguments and does not wait."""
        if hook_decision is not None:
            return None
        if self._decides_nothing:
            return _BYPASSED
        if self.mode == "plan" or not isinstance(tool, ServerTool):
            return None
        rule = self._book.about_tool(tool.name, tool.server, tool.definition.name).always_allows
        return None if rule is None else Decision(True, rule.description, "rule", rule)

    async def decide(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        hook_decision: HookDecision | None = None,
        *,
        is_own_request: bool = False,
        call_id: str = "",
        caller: Caller = LOCAL_CALLER,
    ) -> Decision:
        """Decides about one call. `is_own_request`: a program or person makes the call, not a model; see
        `decide.py`. `call_id`: for hooks and events."""
        decision = self.decide_by_rules_alone(tool, hook_decision)
        if decision is not None:
            return decision
        call = call_of(tool, arguments)
        if is_own_request or caller is not LOCAL_CALLER:
            call = structs.replace(call, is_own_request=is_own_request, caller=caller)
        verdict = await self._judged(call, hook_decision)
        if verdict.behaviour == "ask":
            return await self._ask(tool, call, verdict, hook_decision, call_id)
        return self._decided(call, verdict, hook_decision)

    def preview(self, tool: BuiltinTool, arguments: Mapping[str, Any]) -> Verdict:
        """The decision of rules and mode about a program's own request; no person is asked."""
        return self._judge(structs.replace(call_of(tool, arguments), is_own_request=True), None)

    def denies(self, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether a deny rule applies to the call."""
        rule = self._judge(call_of(tool, arguments), None).rule
        return rule is not None and rule.behaviour == "deny"

    def denied(self, tools: Iterable[Tool]) -> frozenset[str]:
        """The names of the tools for which a rule denies every call; models need not be shown them."""
        if not self._may_deny_tools:
            return frozenset()
        return frozenset(tool.name for tool in tools if self._is_denied(tool))

    def denies_server(self, server: str) -> bool:
        """Whether a rule denies everything of the server."""
        return self._may_deny_servers and any(
            rule.is_bare for rule in self._book.about(_server_call(server)).deny
        )

    def _is_denied(self, tool: Tool) -> bool:
        call = Call(tool=tool.name, server=tool.server, wire_name=_wire_name(tool), hints=tool.hints)
        return any(rule.ignores_arguments and rule.applies(call) for rule in self._book.about(call).deny)

    async def _judged(self, call: Call, hook_decision: HookDecision | None) -> Verdict:
        """The decision of rules and mode; computed in a thread if it would block the event loop."""
        served = _as_server_call(call) if call.target_server else None
        if is_heavy(call, self._book.about(call)) or (
            served is not None and is_heavy(served, self._book.about(served))
        ):
            return await asyncio.to_thread(self._judge, call, hook_decision)
        return self._judge(call, hook_decision)

    def _judge(self, call: Call, hook_decision: HookDecision | None) -> Verdict:
        return judge(
            call, self._book, self.mode, granted=self.grants.state(call), hook_decision=hook_decision
        )

    def _decided(self, call: Call, verdict: Verdict, hook_decision: HookDecision | None) -> Decision:
        """The decision of rules, mode and hooks, and which of them decided."""
        allowed, reason = verdict.behaviour == "allow", verdict.reason
        if verdict.rule is not None:
            return Decision(allowed, reason, "rule", verdict.rule)
        if hook_decision is not None and hook_decision.behaviour == verdict.behaviour:
            return Decision(allowed, reason, "hook")
        if not allowed:
            # A refusal because no rule allows the call names the rule that would.
            return Decision(False, f"{reason}; {_advice(call)}" if self.mode == "dontAsk" else reason)
        if call.is_own:
            return Decision(True, reason, "host")
        if self.grants.state(call) == "yes":
            return Decision(True, reason, "grant")
        if call.reads_workspace:
            return Decision(True, reason, "host")
        return Decision(True, reason, "caller" if call.is_own_request else "mode")

    async def _ask(
        self, tool: Tool, call: Call, verdict: Verdict, hook_decision: HookDecision | None, call_id: str
    ) -> Decision:
        if verdict.asks == "classifier":
            classification = await self._classify(call)
            verdict = await self._judged(call, hook_decision)  # rules and mode may have changed
            if verdict.behaviour != "ask":
                return self._decided(call, verdict, hook_decision)
            if verdict.asks == "classifier" and classification.behaviour != "ask":
                return Decision(classification.behaviour == "allow", classification.reason, "classifier")
        if self._hooks.wants("PermissionRequest", tool, call.arguments):
            by_hook = await self._hooks.permission_requested(tool, copied(call.arguments), call_id=call_id)
            if by_hook is not None and by_hook.behaviour == "deny":
                return Decision(False, by_hook.reason, "hook")
            verdict = await self._judged(call, hook_decision)
            if verdict.behaviour != "ask":
                return self._decided(call, verdict, hook_decision)
            # Where an administrator's rule requires a person, a hook cannot allow the call instead.
            is_wanted = _is_managed(verdict) or _is_managed_ask(hook_decision)
            if by_hook is not None and by_hook.behaviour == "allow" and not is_wanted:
                return Decision(True, by_hook.reason, "hook")
        interaction = self._questions.interaction
        if interaction is None:
            return Decision(False, self._without_person(call, verdict), "mode", verdict.rule)
        async with self._questions.turn(call.server):
            # The answer to the previous question may apply to this call, too.
            verdict = await self._judged(call, hook_decision)
            if verdict.behaviour != "ask":
                return self._decided(call, verdict, hook_decision)
            decision = await self._put(interaction, tool, call, verdict, call_id)
            return await self._confirmed(call, hook_decision, decision)

    async def _confirmed(
        self, call: Call, hook_decision: HookDecision | None, decision: Decision
    ) -> Decision:
        """The decision, unless a rule that was added meanwhile denies the call."""
        if decision.allowed:
            verdict = await self._judged(call, hook_decision)
            if verdict.behaviour == "deny":
                return self._decided(call, verdict, hook_decision)
        return decision

    async def _put(
        self, interaction: Interaction, tool: Tool, call: Call, verdict: Verdict, call_id: str
    ) -> Decision:
        """Asks the person, stores the answer, and publishes the event."""
        question = question_about(tool, call, verdict, can_keep=self._keep is not None, call_id=call_id)
        self._hooks.notice("permission_prompt", "Permission needed", f"{question.tool} needs permission")
        replacements = self._replacements.get(call.server, 0)
        try:
            answer = await self._questions.show(interaction.allow(question))
            if (wrong := _wrong_answer(answer)) is not None:
                answer = PermissionAnswer(False, f"asking failed: {wrong}")
        except HostClosed:
            raise
        except NoInteraction as why:
            return Decision(False, f"{verdict.reason}; {why}", "mode", verdict.rule)
        except Exception as error:  # border: a front end's code
            answer = PermissionAnswer(False, f"asking failed: {type(error).__name__}: {one_line(str(error))}")
        if self._replacements.get(call.server, 0) == replacements:
            await self._remember(call, question, answer)  # otherwise the answer would apply to another server
        verb = "allowed by the person" if answer.allowed else "denied by the person"
        decision = Decision(answer.allowed, f"{verb}: {answer.message}" if answer.message else verb, "person")
        self._bus.publish(
            PermissionAsked(
                server=tool.server,
                tool=tool.name,
                call_id=call_id,
                allowed=decision.allowed,
                reason=decision.reason,
            )
        )
        return decision

    async def _remember(self, call: Call, question: PermissionQuestion, answer: PermissionAnswer) -> None:
        lasts = answer.allowed and question.is_rememberable
        # No grant in addition to a rule: it would still apply after the person removes the rule.
        is_kept = lasts and await self._is_kept(call, question, answer)
        if lasts and not is_kept and (answer.for_session or answer.always):
            self.grants.remember(call)
        else:
            self.grants.revoke(call)

    async def _is_kept(self, call: Call, question: PermissionQuestion, answer: PermissionAnswer) -> bool:
        """Writes the rule of a permanent approval; returns whether rules allow the call then."""
        rule = question.server_rule if answer.whole_server else question.rule
        if answer.always is None or self._keep is None or not rule:
            return False
        await self._keep(answer.always, rule)
        verdict = await self._judged(call, None)
        return verdict.behaviour == "allow" and verdict.rule is not None

    async def _classify(self, call: Call) -> Classification:
        try:
            return await self._questions.wait_for(self._classifier.judge(call, conversation_so_far()))
        except HostClosed:
            raise
        except Exception as error:  # border: a model, or a program's own
            return Classification("ask", f"the classifier failed: {type(error).__name__}")

    def _without_person(self, call: Call, verdict: Verdict) -> str:
        if verdict.rule is not None:
            return f"{verdict.reason}, and no person can be asked"
        return f"no rule allows it, and no person can be asked; {_advice(call)}"


def judge(
    call: Call,
    book: Rulebook,
    mode: PermissionMode,
    *,
    granted: Granted = "no",
    hook_decision: HookDecision | None = None,
) -> Verdict:
    """The decision of rules and mode. Where a built-in tool deals with a server, a rule that denies or asks
    about that server applies as well; so does one about another name of the same file."""
    verdict = decide(call, book.about(call), mode, granted=granted, hook_decision=hook_decision)
    for each, rules in _other_calls(call, book):
        if verdict.behaviour == "deny":
            break
        other = decide(each, rules, mode)
        if other.rule is None or other.behaviour == "allow":
            continue
        # Of two rules that ask, an administrator's is used first, as in `decide`.
        is_asked = verdict.behaviour == other.behaviour == "ask" and verdict.rule is not None
        if is_asked and (_is_managed(verdict) or not _is_managed(other)):
            continue
        verdict = structs.replace(other, call=call)
    return verdict


def _other_calls(call: Call, book: Rulebook) -> Iterator[tuple[Call, Sequence[Rule]]]:
    """Other forms of the call, and the rules that apply to each. What a rule excludes by one name of a file
    is not meant by its other names."""
    if call.by_other_names is not None:
        rules: Sequence[Rule] = book.about(call)
        if any(rule.excludes_arguments for rule in rules):
            rules = [rule for rule in rules if not rule.excludes_arguments]
        yield structs.replace(call, arguments=call.by_other_names), rules
    if call.target_server:
        served = _as_server_call(call)
        yield served, book.about(served)


def _as_server_call(call: Call) -> Call:
    """The request that a built-in tool makes to a server, as a call that rules can judge. The arguments of a
    prompt are included with those of the request."""
    thing = _server_call(call.target_server, call.target_name, call.hints)
    given = call.arguments.get("arguments")
    own: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    return structs.replace(thing, arguments={**call.arguments, **own})


def _server_call(server: str, name: str = RESOURCES, hints: Hints = _READS) -> Call:
    return Call(tool=qualify(server, name), server=server, wire_name=name, hints=hints)


def _wire_name(tool: Tool) -> str:
    return tool.definition.name if tool.server else ""


def names_of(tool: Tool, arguments: Mapping[str, Any]) -> frozenset[str]:
    """Every name, folded, by which deny rules and hooks find a call: the names of the tool, and for a
    built-in tool that deals with a server also the names of the resource or prompt there."""
    names = all_names(tool.name, tool.server, _wire_name(tool))
    if not isinstance(tool, BuiltinTool):
        return names
    server, thing = tool.target(arguments)
    return names | all_names(qualify(server, thing), server, thing) if server else names


def call_of(tool: Tool, arguments: Mapping[str, Any]) -> Call:
    if isinstance(tool, BuiltinTool):
        command = arguments.get(tool.shell_argument) if tool.shell_argument is not None else None
        server, thing = tool.target(arguments)
        return Call(
            tool=tool.name,
            arguments=arguments,
            by_other_names=None if tool.by_other_names is None else tool.by_other_names(arguments),
            hints=tool.hints,
            digest=tool.digest,
            command=command if isinstance(command, str) else None,
            folder=tool.shell_folder() if tool.shell_folder is not None else "",
            is_own=not tool.needs_permission,
            reads_workspace=tool.needs_no_rule is not None and tool.needs_no_rule(arguments),
            target_server=server,
            target_name=thing,
        )
    return Call(
        tool=tool.name,
        server=tool.server,
        wire_name=tool.definition.name,
        arguments=arguments,
        hints=tool.hints,
        digest=tool.digest,
    )


def question_about(
    tool: Tool, call: Call, verdict: Verdict, *, can_keep: bool = True, call_id: str = ""
) -> PermissionQuestion:
    return PermissionQuestion(
        server=tool.server,
        tool=tool.name,
        title=tool.title,
        arguments=copied(call.arguments),
        folder=call.folder,
        risk=tool.hints.risk,
        open_world=tool.hints.open_world,
        reason=verdict.reason,
        rule=rule_for(call) if can_keep else "",
        server_rule=server_rule_for(call) if can_keep else "",
        is_rememberable=verdict.is_rememberable,
        has_changed=verdict.has_changed,
        caller=call.caller,
        call_id=call_id,
        agent=current_agent(),
    )


def _wrong_answer(answer: object) -> str | None:
    """Why a program's answer is not used: a text such as "no" in place of a bool would count as a yes."""
    if not isinstance(answer, PermissionAnswer):
        returned = "None" if answer is None else f"a value of type {type(answer).__name__}"
        return f"`allow` of the Interaction returned {returned}, and not a PermissionAnswer"
    for field in _YES_OR_NO:
        if not isinstance(getattr(answer, field), bool):
            return f"`{field}` of the PermissionAnswer is neither True nor False"
    return None


def _advice(call: Call) -> str:
    """A command for the hint. It changes nothing, because models and scripts read the text, and a server
    chose the name in it."""
    words = shlex.join(["explain", call.tool] if call.command is None else ["test", call.tool, call.command])
    if (
        one_line(words, ADVICE_CHARACTERS) != words
    ):  # a name with invisible characters is not suggested for typing
        return "write a rule that allows it"
    return f"`dragoman permissions {words}` shows which rule would allow it"


def _is_managed(verdict: Verdict) -> bool:
    return verdict.rule is not None and verdict.rule.is_managed


def _is_managed_ask(decision: HookDecision | None) -> bool:
    return decision is not None and decision.behaviour == "ask" and decision.is_managed

"""Combines the answers of several hooks. Pure.

Deny takes precedence over ask, and ask over allow; among equals an administrator's hook is used, then the
first declared. Changes are applied in declared order, the last one wins, and a conflict is reported as a
problem. An allow is valid only for the arguments that its hook was given or returned itself: if another
hook's change was applied, it is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from dragoman.hooks.verdicts import HookAnswer, HookDecision
from dragoman.interaction import FormAnswer

_STRICTNESS: Final = {"deny": 2, "ask": 1, "allow": 0}
_ACTIONS: Final = {"decline": 2, "cancel": 1, "accept": 0}


class Before(Struct, frozen=True):
    """The combined result of the hooks before a call."""

    arguments: Mapping[str, Any]
    """The arguments to use: the same object that was passed in, if no hook changed them."""
    hook_decision: HookDecision | None = None
    """The strictest decision of all hooks."""
    context: tuple[str, ...] = ()
    """Text for the model, cleaned and bounded; it is added to the outcome."""


class After(Struct, frozen=True):
    """The combined result of the hooks after a call."""

    context: tuple[str, ...] = ()
    replacement: str | None = None
    """The text that replaces the result for the model; None: unchanged."""


class Submitted(Struct, frozen=True):
    """The combined result of the hooks before a prompt."""

    refusal: str | None = None
    """Why the model is not given the prompt; None: it is."""
    context: tuple[str, ...] = ()


class Conflict(NamedTuple):
    """Two hooks that made different changes; the second one was applied."""

    hook: str
    problem: str


def before(arguments: Mapping[str, Any], answers: Sequence[HookAnswer]) -> tuple[Before, list[Conflict]]:
    final, conflicts = _updated(arguments, answers)
    applicable = answers
    if final is not arguments:
        applicable = [each for each in answers if _applies_to(each, arguments, final)]
    return Before(final, permission(applicable), contexts(answers)), conflicts


def is_changed_by_person(arguments: Mapping[str, Any], answers: Sequence[HookAnswer]) -> bool:
    """Whether the change that was applied is not an administrator's."""
    final, is_managed = arguments, True
    for answer in answers:
        if answer.updated_input is not None:
            final, is_managed = answer.updated_input, answer.is_managed
    return not is_managed and not _is_same(final, arguments)


def merge_second_run(first: Before, answers: Sequence[HookAnswer]) -> tuple[Before, list[Conflict]]:
    """The combined result after hooks ran again for the changed arguments: all answers of the second run are
    used; of the first run the context, and the decision if it restricts or if the second run changed
    nothing."""
    second, conflicts = before(first.arguments, answers)
    decisions = [second.hook_decision]
    if second.arguments is first.arguments or _restricts(first.hook_decision):
        decisions.append(first.hook_decision)
    strictest = max(filter(None, decisions), key=lambda each: _STRICTNESS[each.behaviour], default=None)
    context = tuple(dict.fromkeys((*first.context, *second.context)))
    return Before(second.arguments, strictest, context), conflicts


def _restricts(decision: HookDecision | None) -> bool:
    return decision is not None and decision.behaviour != "allow"


def _updated(
    arguments: Mapping[str, Any], answers: Sequence[HookAnswer]
) -> tuple[Mapping[str, Any], list[Conflict]]:
    final, winner, conflicts = arguments, None, list[Conflict]()
    for answer in answers:
        if (wanted := answer.updated_input) is None:
            continue
        if winner is not None and not _is_same(wanted, final):
            conflicts.append(Conflict(answer.hook, f"its changed arguments replace those of {winner}"))
        final, winner = wanted, answer.hook
    return final, conflicts


def _applies_to(answer: HookAnswer, arguments: Mapping[str, Any], final: Mapping[str, Any]) -> bool:
    seen = arguments if answer.updated_input is None else answer.updated_input
    return answer.behaviour != "allow" or _is_same(seen, final)


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both are the same JSON: in Python, true equals 1, and for a tool it does not."""
    if one is other:
        return True
    try:
        return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    except (TypeError, ValueError, RecursionError):  # a value that JSON cannot represent
        return False


def permission(answers: Sequence[HookAnswer]) -> HookDecision | None:
    """The strictest decision; None if no hook decides."""
    decided = [answer for answer in answers if answer.behaviour is not None]
    if not decided:
        return None
    strictest = max(decided, key=lambda each: (_STRICTNESS[each.behaviour or "allow"], each.is_managed))
    behaviour = strictest.behaviour or "allow"
    reason = strictest.reason or _REASONS[behaviour]
    return HookDecision(behaviour, reason, strictest.hook, strictest.is_managed)


_REASONS: Final = {
    "allow": "a hook allows it",
    "ask": "a hook wants a person to be asked",
    "deny": "a hook refuses it",
}


def after(answers: Sequence[HookAnswer]) -> tuple[After, list[Conflict]]:
    """Combines the answers after a call. A refusal comes too late: its reason is added to the result."""
    texts: list[str] = []
    replacement, winner, conflicts = None, None, list[Conflict]()
    for answer in answers:
        texts += contexts([answer])
        if answer.behaviour == "deny" and not answer.has_failed and answer.reason:
            texts.append(answer.reason)
        if answer.replacement is not None:
            if winner is not None and answer.replacement != replacement:
                conflicts.append(Conflict(answer.hook, f"its text replaces that of {winner}"))
            replacement, winner = answer.replacement, answer.hook
    failed = next((answer for answer in answers if answer.has_failed), None)
    if failed is not None:
        replacement = f"[the result is withheld: {failed.reason}]"
    return After(tuple(texts), replacement), conflicts


def elicited(answers: Sequence[HookAnswer]) -> tuple[FormAnswer | None, list[Conflict]]:
    """The answer instead of the person's: the strictest one; of several that accept, the last."""
    chosen: HookAnswer | None = None
    conflicts: list[Conflict] = []
    for answer in answers:
        if (action := _action(answer)) is None:
            continue
        if chosen is not None and _ACTIONS[action] < _ACTIONS[_action(chosen) or "accept"]:
            continue
        if chosen is not None and (_action(chosen), chosen.content) != (action, answer.content):
            conflicts.append(Conflict(answer.hook, f"its answer replaces that of {chosen.hook}"))
        chosen = answer
    if chosen is None:
        return None, conflicts
    return _form(_action(chosen), chosen.content or {}), conflicts


def _action(answer: HookAnswer) -> str | None:
    return "decline" if answer.behaviour == "deny" else answer.action


def _form(action: str | None, content: Mapping[str, Any]) -> FormAnswer:
    match action:
        case "accept":
            return FormAnswer("accept", content)
        case "cancel":
            return FormAnswer("cancel")
        case _:
            return FormAnswer("decline")


def elicitation_answered(
    answer: FormAnswer, answers: Sequence[HookAnswer]
) -> tuple[FormAnswer, list[Conflict]]:
    """The answer to send. Hooks may change or withhold what a person sends; a refusal stays a refusal."""
    conflicts: list[Conflict] = []
    content, winner = answer.content, None
    action = answer.action
    for each in answers:
        wanted = _action(each)
        if wanted == "accept" and answer.action != "accept":
            conflicts.append(Conflict(each.hook, "it cannot accept what was not accepted"))
        elif wanted is not None and _ACTIONS[wanted] > _ACTIONS[action]:
            action = _form(wanted, {}).action
        if each.content is not None:
            if winner is not None and each.content != content:
                conflicts.append(Conflict(each.hook, f"its values replace those of {winner}"))
            content, winner = each.content, each.hook
    if action == answer.action and content is answer.content:
        return answer, conflicts
    return _form(action, content), conflicts


def submitted(answers: Sequence[HookAnswer]) -> Submitted:
    decision = permission(answers)
    if decision is not None and decision.behaviour == "deny":
        return Submitted(decision.reason)
    return Submitted(context=contexts(answers))


def reason_to_continue(answers: Sequence[HookAnswer]) -> str | None:
    """Why the model continues after its answer; None: it stops. A hook that failed does not make it
    continue."""
    said = [answer for answer in answers if not answer.has_failed]
    if any(answer.ends for answer in said):
        return None
    decision = permission(said)
    return decision.reason if decision is not None and decision.behaviour == "deny" else None


def contexts(answers: Sequence[HookAnswer]) -> tuple[str, ...]:
    return tuple(answer.context for answer in answers if answer.context)

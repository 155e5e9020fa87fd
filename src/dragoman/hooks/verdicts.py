"""Reads the answer of one hook. Pure.

Converts the JSON of a hook to a `HookAnswer`, by the rules of the event. Of an answer that cannot be read in
full, the strict parts (a deny, an ask) are kept and the permissive parts (an allow, a change) are dropped: a
hook that allowed other arguments than Dragoman understood has not allowed these. `merging.py` combines
several answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, cast, get_args

from msgspec import Struct, structs

from dragoman.cleaning import for_model, one_line
from dragoman.names import letters_of

CONTEXT_LIMIT: Final = 10_000
"""The maximum length of the context that one hook may add, in characters."""
REASON_LIMIT: Final = 2_000

_SPECIFIC_KEYS: Final = frozenset(
    {"permissionDecision", "updatedInput", "updatedMCPToolOutput", "additionalContext", "action", "content"}
)
"""Fields that are valid only in `hookSpecificOutput`. An answer that has one elsewhere was intended as a
decision."""

Behaviour = Literal["allow", "ask", "deny"]
Action = Literal["accept", "decline", "cancel"]
_BEHAVIOURS: Final = get_args(Behaviour)
_ACTIONS: Final = get_args(Action)


class HookDecision(Struct, frozen=True):
    """A hook's decision whether a call may be made."""

    behaviour: Behaviour
    reason: str
    hook: str
    """The name of the hook that decided, as shown to people."""
    is_managed: bool = False


class HookAnswer(Struct, frozen=True, kw_only=True):
    """The answer of one hook to one event."""

    hook: str
    is_managed: bool = False
    behaviour: Behaviour | None = None
    reason: str = ""
    updated_input: Mapping[str, Any] | None = None
    context: str = ""
    replacement: str | None = None
    action: Action | None = None
    content: Mapping[str, Any] | None = None
    message: str = ""
    """Text for the person."""
    problems: tuple[str, ...] = ()
    """Why the hook failed, or which part of its answer could not be read."""
    has_failed: bool = False
    """Whether the hook failed and blocks on errors."""
    ends: bool = False
    """Whether the answer has `"continue": false`."""


def blocked(hook: str, reason: str, *, is_managed: bool = False) -> HookAnswer:
    """The answer of a hook that refuses without JSON."""
    return HookAnswer(hook=hook, is_managed=is_managed, behaviour="deny", reason=_reason(reason))


def failed(hook: str, problem: str, *, blocks: bool, is_managed: bool = False) -> HookAnswer:
    """The answer for a hook that failed to give one."""
    answer = HookAnswer(hook=hook, is_managed=is_managed, problems=(one_line(problem, 400),))
    return _blocking(answer) if blocks else answer


def read(
    event: str, hook: str, document: Mapping[str, Any], *, blocks: bool = False, is_managed: bool = False
) -> HookAnswer:
    """Reads a hook's answer. `blocks`: whether an answer that cannot be read in full blocks."""
    reader = _Reader(event, document)
    found = reader.fields()
    answer = HookAnswer(hook=hook, is_managed=is_managed, problems=tuple(reader.problems), **found)
    if not answer.problems:
        return answer
    strict = structs.replace(
        answer,
        behaviour=None if answer.behaviour == "allow" else answer.behaviour,
        updated_input=None,
        replacement=None,
        action=None if answer.action == "accept" else answer.action,
        content=None,
    )
    return _blocking(strict) if blocks else strict


def restricted(answer: HookAnswer) -> HookAnswer:
    """The answer without an allow or an accept, for a hook whose matcher does not match the exact name of the
    tool or the server."""
    if answer.behaviour == "allow":
        problem = "its allow is ignored: the matcher does not match the current name of the tool"
        return structs.replace(answer, behaviour=None, reason="", problems=(*answer.problems, problem))
    if answer.action == "accept":
        problem = "its accept is ignored: the matcher does not match the name of the server"
        return structs.replace(answer, action=None, problems=(*answer.problems, problem))
    return answer


def _blocking(answer: HookAnswer) -> HookAnswer:
    # The problem itself is left out: the reason reaches the model, and a program's output may contain
    # secrets.
    reason = f"the hook {answer.hook} failed, and what it watches is refused until it works"
    has_own = answer.behaviour == "deny" and answer.reason
    return structs.replace(
        answer, behaviour="deny", reason=answer.reason if has_own else reason, has_failed=True
    )


def _reason(text: str) -> str:
    return for_model(text.strip(), REASON_LIMIT)


class _Reader:
    """Reads one document, field by field."""

    def __init__(self, event: str, document: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self._event = event
        self._document = document
        self._specific = self._object(document, "hookSpecificOutput") or {}
        named = self._specific.get("hookEventName", event)
        if named != event:
            self.problems.append(f"it answers {one_line(str(named), 60)}, not {event}")

    def fields(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if message := self._text(self._document, "systemMessage"):
            found["message"] = for_model(message, REASON_LIMIT)
        if (read := _OF_EVENT.get(self._event)) is not None:
            read(self, found)
        self._top_level(found)
        said, behaviour = set(_decisions(self._document)), found.get("behaviour")
        if behaviour != "deny" and said & _REFUSING:
            self.problems.append("it refuses in an invalid form; taken as a refusal")
            found |= {"behaviour": "deny", "reason": "", "ends": "end" in said}
        elif behaviour not in ("deny", "ask") and "ask" in said:
            self.problems.append("it asks in an invalid form; taken as ask")
            found |= {"behaviour": "ask", "reason": ""}
        return found

    def _top_level(self, found: dict[str, Any]) -> None:
        """Reads `decision` and `continue`, which every event has. A refusal takes precedence over nested
        fields."""
        document = self._document
        for key in _SPECIFIC_KEYS & document.keys():
            self.problems.append(f'"{key}" belongs in "hookSpecificOutput"')
        for key in (*_misspelt(document), *_misspelt(self._specific)):
            self.problems.append(f'"{one_line(key, 60)}" has to be spelled as in the documentation')
        self._behaviour(found, document, "permissionDecision", "permissionDecisionReason", _BEHAVIOURS)
        if (goes_on := document.get("continue", True)) is not True:
            if goes_on is not False:
                self.problems.append('"continue" must be true or false')
            if _folded(goes_on) in _NO:
                reason = _reason(self._text(document, "stopReason") or "")
                found |= {"behaviour": "deny", "reason": reason, "ends": True}
        match document.get("decision"):
            case None:
                return
            case "block" | "deny":
                found |= {"behaviour": "deny", "reason": _reason(self._text(document, "reason") or "")}
            case "approve" | "allow":
                found.setdefault("behaviour", "allow")
                found.setdefault("reason", _reason(self._text(document, "reason") or ""))
            case _:
                self.problems.append('"decision" must be "block" or "approve"')

    def before(self, found: dict[str, Any]) -> None:
        specific = self._specific
        self._behaviour(found, specific, "permissionDecision", "permissionDecisionReason", _BEHAVIOURS)
        if (arguments := self._object(specific, "updatedInput")) is not None:
            found["updated_input"] = arguments
        self.context(found)

    def after(self, found: dict[str, Any]) -> None:
        if (given := self._specific.get("updatedMCPToolOutput")) is not None:
            text = _text_of(given)
            if text is None:
                self.problems.append('"updatedMCPToolOutput" must be text or a list of text blocks')
            found["replacement"] = text
        self.context(found)

    def permission(self, found: dict[str, Any]) -> None:
        decision = self._object(self._specific, "decision")
        if decision is None:
            return
        self._behaviour(found, decision, "behavior", "message", ("allow", "deny"))
        if decision.get("updatedInput") is not None:
            self.problems.append('"updatedInput" has no effect here; change arguments in PreToolUse')

    def form(self, found: dict[str, Any]) -> None:
        action = self._specific.get("action")
        if action is not None and action not in _ACTIONS:
            self.problems.append(f'"action" must be one of {", ".join(_ACTIONS)}')
        elif action is not None:
            found["action"] = action
        if (content := self._object(self._specific, "content")) is not None:
            found["content"] = content
        for key, value in _with_specific(self._document):
            name = _plain(key)
            if name in ("action", "content") and name != key:
                self.problems.append(f'"{one_line(key, 60)}" has to be spelled as in the documentation')
            if name == "action" and _folded(value) in ("decline", "cancel"):
                found["action"] = _folded(value)

    def context(self, found: dict[str, Any]) -> None:
        if text := self._text(self._specific, "additionalContext"):
            found["context"] = cleaned_context(text)

    def _behaviour(
        self, found: dict[str, Any], place: Mapping[str, Any], key: str, why: str, words: tuple[str, ...]
    ) -> None:
        behaviour = place.get(key)
        if behaviour is None:
            return
        if behaviour not in words:
            self.problems.append(f'"{key}" must be one of {", ".join(words)}')
        else:
            found |= {"behaviour": behaviour, "reason": _reason(self._text(place, why) or "")}

    def _text(self, place: Mapping[str, Any], key: str) -> str | None:
        value = place.get(key)
        if value is None or isinstance(value, str):
            return value
        self.problems.append(f'"{key}" must be text')
        return None

    def _object(self, place: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
        value = place.get(key)
        if value is None or _is_object(value):
            return value
        self.problems.append(f'"{key}" must be an object')
        return None


_OF_EVENT: Final[dict[str, Callable[[_Reader, dict[str, Any]], None]]] = {
    "PreToolUse": _Reader.before,
    "PostToolUse": _Reader.after,
    "PostToolUseFailure": _Reader.after,
    "PermissionRequest": _Reader.permission,
    "Elicitation": _Reader.form,
    "ElicitationResult": _Reader.form,
    "SessionStart": _Reader.context,
    "UserPromptSubmit": _Reader.context,
}


def cleaned_context(text: str) -> str:
    return for_model(text.strip(), CONTEXT_LIMIT)


def _folded(value: object) -> str:
    return str(value).strip().casefold()


def _with_specific(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of an answer, and those in `hookSpecificOutput` in any spelling of it."""
    for key, value in document.items():
        yield key, value
        if _plain(key) == "hookspecificoutput" and _is_object(value):
            yield from value.items()


def _misspelt(place: Mapping[str, Any]) -> list[str]:
    """The keys that are a field with changes in another spelling."""
    return [key for key in place if key not in _CHANGING_KEYS and _plain(key) in _PLAIN_CHANGING_KEYS]


def _plain(key: object) -> str:
    return letters_of(str(key))


_CHANGING_KEYS: Final = frozenset({"hookSpecificOutput", "updatedInput", "updatedMCPToolOutput"})
_PLAIN_CHANGING_KEYS: Final = frozenset(map(_plain, _CHANGING_KEYS))


def _decisions(answer: object, depth: int = 4) -> Iterator[str]:
    """Every decision anywhere in an answer, in lower case (`end`: `"continue": false`), except in values that
    the hook passes on."""
    if depth == 0:
        return
    if isinstance(answer, list):
        for each in cast("list[object]", answer):
            yield from _decisions(each, depth - 1)
    if not isinstance(answer, Mapping):
        return
    for key, value in cast("Mapping[object, object]", answer).items():
        name = _plain(key)
        if isinstance(value, str) and name in _DECIDING_KEYS:
            yield _folded(value)
        if name == "continue" and _folded(value) in _NO:
            yield "end"
        if name not in _PASSED_ON:
            yield from _decisions(value, depth - 1)


_DECIDING_KEYS: Final = frozenset({"permissiondecision", "decision", "behavior", "behaviour"})
_REFUSING: Final = frozenset(
    {"deny", "denied", "block", "blocked", "reject", "rejected", "refuse", "refused", "forbid", "forbidden",
     "no", "end"}
)  # fmt: skip
"""Decisions that refuse, also in other words than those of the documentation; see `_decisions`."""
_NO: Final = ("false", "no", "0")
_PASSED_ON: Final = frozenset({"updatedinput", "updatedmcptooloutput", "content"})


def _is_object(value: object) -> bool:
    # Only a function of this process can return keys that are not text; JSON cannot represent them.
    return isinstance(value, Mapping) and all(
        isinstance(key, str) for key in cast("Mapping[object, Any]", value)
    )


def _text_of(given: object) -> str | None:
    """Text, or the text blocks of a result as a server would write them."""
    if isinstance(given, str):
        return for_model(given)
    if not isinstance(given, list):
        return None
    texts: list[str] = []
    for block in cast("list[object]", given):
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case _:
                return None
    return for_model("\n".join(texts))

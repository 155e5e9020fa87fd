"""The conditions of a rule: the annotations of the tool, and arguments of the call. Pure.

Parses conditions (`readOnly`, `!openWorld`, `repo=org/*`, `owner.name!="a, b"`) and decides whether they
hold. In doubt a rule errs on the safe side: where an argument is unusual or inside a list, an allow does not
match and a deny or an ask does. For an absent argument `=` never matches; `!=` matches in a deny or an ask,
and not in an allow.

Comparing is bounded: where an argument exceeds the limits, a deny or an ask matches and an allow does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.catalog.annotations import Hints
from dragoman.permissions.patterns import Glob, fold
from dragoman.wire.codec import DECODE_ERRORS

HINTS: Final = {
    "readOnly": "read_only",
    "destructive": "destructive",
    "idempotent": "idempotent",
    "openWorld": "open_world",
}
"""The annotations of a tool: the name in rules → the name in `Hints`."""
_HINT_OF: Final = {name.lower(): name for name in HINTS}

PARTS_LIMIT: Final = 200_000
"""How many values and names one condition examines."""
TEXT_LIMIT: Final = 1_000_000
"""How many characters one condition compares. Folding a text is one step that nothing interrupts, also in a
thread."""


class BadRule(ValueError):
    """A rule that cannot be parsed; the message says what to write instead."""


class _TooLarge(Exception):
    """The arguments exceed the limits of a condition."""


_MARKS: Final = re.compile("[\x1c-\x1f]")


class _Budget:
    """What remains of the limits of one condition."""

    def __init__(self) -> None:
        self._parts = PARTS_LIMIT
        self._characters = TEXT_LIMIT

    def parts(self, count: int) -> None:
        self._parts -= count
        if self._parts < 0:
            raise _TooLarge

    def text(self, text: str) -> str:
        self._characters -= len(text)
        if self._characters < 0:
            raise _TooLarge
        return text


def _without_marks(text: str) -> str:
    """The text without the control characters that `fold` keeps for shell patterns."""
    return _MARKS.sub("", text)


class HintCondition(Struct, frozen=True, tag=True):
    name: str
    wanted: bool

    def holds(self, arguments: Mapping[str, Any], hints: Hints, *, carefully: bool) -> bool:
        return getattr(hints, HINTS[self.name]) is self.wanted

    def spelled(self) -> str:
        return self.name if self.wanted else f"!{self.name}"


class ArgumentCondition(Struct, frozen=True, tag=True):
    path: tuple[str, ...]
    glob: Glob
    is_negated: bool
    behind_links: Glob | None = None
    """The same pattern by its real path, where it names a file or folder behind a link."""

    def holds(self, arguments: Mapping[str, Any], hints: Hints, *, carefully: bool) -> bool:
        """Whether the condition matches. `carefully`: for an allow. A negated condition is compared loosely
        for an allow, and carefully otherwise."""
        try:
            return self._holds(arguments, carefully)
        except _TooLarge:
            return not carefully

    def is_beyond(self, arguments: Mapping[str, Any], *, carefully: bool) -> bool:
        """Whether the arguments exceed the limits."""
        try:
            self._holds(arguments, carefully)
        except _TooLarge:
            return True
        return False

    def _holds(self, arguments: Mapping[str, Any], carefully: bool) -> bool:
        budget = _Budget()
        if not self.is_negated:
            return self._all_fit(arguments, budget) if carefully else self._any_fits(arguments, budget)
        if carefully:
            is_plain = _all_plain(_exactly(arguments, self.path, budget), budget)
            return is_plain and not self._any_fits(arguments, budget)
        return not self._all_fit(arguments, budget)

    def _all_fit(self, arguments: Mapping[str, Any], budget: _Budget) -> bool:
        """Whether the argument is present, and all its values match exactly as sent."""
        values = list(_leaves(_exactly(arguments, self.path, budget), budget))
        return bool(values) and all(
            (text := _text(value)) is not None and self.glob.fits_carefully(budget.text(text))
            for value in values
        )

    def _any_fits(self, arguments: Mapping[str, Any], budget: _Budget) -> bool:
        """Whether any value in the argument matches, in any spelling."""
        path = tuple(map(fold, self.path))
        values = _leaves(_loosely(arguments, path, budget), budget, into_objects=True)
        texts = (_without_marks(budget.text(text)) for value in values for text in _texts(value))
        globs = (self.glob,) if self.behind_links is None else (self.glob, self.behind_links)
        return any(glob.fits_loosely(text) for text in texts for glob in globs)

    def spelled(self) -> str:
        return f"{'.'.join(self.path)}{'!=' if self.is_negated else '='}{_spelled_value(self.glob)}"


Condition = HintCondition | ArgumentCondition

_ABSENT: Final = object()
"""Marks a value that is absent, or that another key may replace."""


def _exactly(arguments: Mapping[str, Any], path: tuple[str, ...], budget: _Budget) -> Iterator[Any]:
    """The value at the path, by exactly these names; for a list of objects, the value of each. A name may
    itself contain a dot."""
    todo: list[tuple[Any, tuple[str, ...]]] = [(arguments, path)]
    while todo:
        node, rest = todo.pop()
        if not rest:
            yield node
        elif isinstance(node, Mapping):
            steps = list(_steps(cast("Mapping[str, Any]", node), rest))
            todo.extend(steps)
            if not steps or _has_double(cast("Mapping[str, Any]", node), rest, budget):
                yield _ABSENT
        elif isinstance(node, list | tuple) and node:
            budget.parts(len(cast("Sequence[Any]", node)))
            todo.extend((item, rest) for item in cast("Sequence[Any]", node))
        else:
            yield _ABSENT


def _steps(node: Mapping[str, Any], rest: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    for count in range(1, len(rest) + 1):
        key = ".".join(rest[:count])
        if key in node:
            yield node[key], rest[count:]


def _has_double(node: Mapping[str, Any], rest: tuple[str, ...], budget: _Budget) -> bool:
    """Whether another key looks like this one: it is then unknown which of them the server reads."""
    names = {".".join(rest[:count]) for count in range(1, len(rest) + 1)}
    folded = {fold(name) for name in names}
    budget.parts(len(node))
    others = (fold(_without_marks(budget.text(str(key)))).strip() for key in node if key not in names)
    return any(other in folded for other in others)


def _loosely(arguments: Mapping[str, Any], path: tuple[str, ...], budget: _Budget) -> Iterator[Any]:
    """The values at the path by any names that look like these."""
    todo: list[tuple[Any, tuple[str, ...]]] = [(arguments, path)]
    while todo:
        node, rest = todo.pop()
        if not rest:
            yield node
        elif isinstance(node, Mapping):
            ways = {".".join(rest[:count]): count for count in range(1, len(rest) + 1)}
            budget.parts(len(cast("Mapping[Any, Any]", node)))
            for key, value in cast("Mapping[Any, Any]", node).items():
                count = ways.get(fold(_without_marks(budget.text(str(key)))).strip())
                if count is not None:
                    todo.append((value, rest[count:]))
        elif isinstance(node, list | tuple):
            budget.parts(len(cast("Sequence[Any]", node)))
            todo.extend((item, rest) for item in cast("Sequence[Any]", node))
        elif (inner := _json_in(node)) is not None:
            todo.append((inner, rest))


def _json_in(value: Any) -> Any:
    """The list or object that a text contains as JSON, else None. Widely used server libraries decode such
    texts."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return None
    if len(value) > TEXT_LIMIT:
        raise _TooLarge
    try:
        return msgspec.json.decode(value)
    except DECODE_ERRORS:
        return None


def _leaves(values: Iterator[Any], budget: _Budget, *, into_objects: bool = False) -> Iterator[Any]:
    """The items of lists one by one; an empty list has no value. `into_objects`: also the names and values
    of objects, such as contents by path, and what is JSON in a text."""
    todo = list(values)
    while todo:
        value = todo.pop()
        if isinstance(value, list | tuple):
            budget.parts(len(cast("Sequence[Any]", value)))
            todo.extend(cast("Sequence[Any]", value) or (_ABSENT,))
        elif into_objects and isinstance(value, Mapping):
            budget.parts(2 * len(cast("Mapping[Any, Any]", value)))
            for pair in cast("Mapping[Any, Any]", value).items():
                todo.extend(pair)
        else:
            if into_objects and (inner := _json_in(value)) is not None:
                todo.append(inner)
            yield value


def _all_plain(values: Iterator[Any], budget: _Budget) -> bool:
    leaves = list(_leaves(values, budget))
    return bool(leaves) and all(_text(value) is not None for value in leaves)


def is_larger(arguments: Mapping[str, Any], parts: int, characters: int) -> bool:
    """Whether the arguments have more values or more text than this; stops counting there."""
    todo: list[Any] = [arguments]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            characters -= len(value)
        elif isinstance(value, Mapping):
            node = cast("Mapping[Any, Any]", value)
            parts -= len(node)
            if parts >= 0:
                characters -= sum(len(key) for key in node if isinstance(key, str))
                todo.extend(node.values())
        elif isinstance(value, list | tuple):
            parts -= len(cast("Sequence[Any]", value))
            if parts >= 0:
                todo.extend(cast("Sequence[Any]", value))
        if parts < 0 or characters < 0:
            return True
    return False


def _text(value: Any) -> str | None:
    """A string unchanged; numbers, booleans and null as JSON writes them; None for any other value."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Python does not convert integers of more than some thousand digits to decimal text.
        return str(value) if value.bit_length() < 10_000 else None
    if isinstance(value, float) and math.isfinite(value):
        return msgspec.json.encode(value).decode()
    return None


def _texts(value: Any) -> Iterator[str]:
    """Every text by which the value may be compared."""
    if value is _ABSENT:
        return
    text = _text(value)
    if text is None:
        text = hex(value) if isinstance(value, int) else repr(value)
    yield text
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e300:
        yield str(int(value))


# ── reading and writing ───────────────────────────────────────────────────────────────────────────────────

_PATH = re.compile(r'[^=!,()"\s][^=!,()"]*')
_OTHER_QUOTES: Final = ("''", "``", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb")
_NEEDS_QUOTES = re.compile(r"""[,)"\\]|\A[\s='~`\u2018\u201c\u00ab]|\s\Z|\A\Z""")


def read_conditions(text: str) -> tuple[Condition, ...]:
    """The conditions between the parentheses of a rule. The closing one is the text's last character."""
    conditions: list[Condition] = []
    at = 0
    while True:
        condition, at = _read_one(text, at)
        conditions.append(condition)
        if text[at : at + 1] != ",":
            break
        at += 1
    if text[at:] != ")":
        raise BadRule(
            'the conditions do not end with the closing parenthesis; quote a value that has one: name="…"'
        )
    return tuple(conditions)


def _read_one(text: str, at: int) -> tuple[Condition, int]:
    start = at
    while at < len(text) and text[at] not in '=,)"':
        at += 1
    head = text[start:at].strip()
    if text[at : at + 1] != "=":
        return _hint(head), at
    is_negated = head.endswith("!")
    path = head.removesuffix("!").rstrip()
    if not _PATH.fullmatch(path) or "" in path.split("."):
        raise BadRule("an argument's name must come before each = (dots lead into objects): repo=org/*")
    if path.endswith(("~", "^", "$", "*", "<", ">", ":")) or text[at + 1 : at + 2] in ("=", "~"):
        raise BadRule("conditions compare with = or != only, and * matches any characters: name=text*")
    if path.lower().removesuffix("hint") in _HINT_OF:
        raise BadRule(f"a hint has no value (write {path} or !{path} without =)")
    glob, at = _read_value(text, at + 1)
    return ArgumentCondition(tuple(path.split(".")), glob, is_negated, glob.behind_links()), at


def _hint(word: str) -> HintCondition:
    name = _HINT_OF.get(word.removeprefix("!").strip().lower())
    if name is None:
        known = ", ".join(HINTS)
        raise BadRule(f"a condition is one of {known} (each also with ! before it), or argument=pattern")
    return HintCondition(name, not word.startswith("!"))


def _read_value(text: str, at: int) -> tuple[Glob, int]:
    while text[at : at + 1].isspace():
        at += 1
    if text[at : at + 1] == '"':
        return _read_quoted(text, at + 1)
    start = at
    while at < len(text) and text[at] not in ',)"':
        at += 1
    value = text[start:at].rstrip()
    if not value:
        raise BadRule('there is no pattern after =; for an empty text write ""')
    if len(value) > 1 and value[0] + value[-1] in _OTHER_QUOTES:
        raise BadRule('values are quoted with " only: name="…"')
    return Glob.plainly(value), at


def _read_quoted(text: str, at: int) -> tuple[Glob, int]:
    end = at
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise BadRule('a quoted value has no closing "')
    glob = Glob.of(read_escaped(text[at:end]))
    end += 1
    while text[end : end + 1].isspace():
        end += 1
    return glob, end


_ESCAPED = re.compile(r'\\([\\*"])|(\*)')


def read_escaped(text: str) -> tuple[str, ...]:
    r"""The parts between wildcards. `\*`, `\\` and `\"` mean the character itself."""
    parts = [""]
    at = 0
    for match in _ESCAPED.finditer(text):
        parts[-1] += text[at : match.start()]
        at = match.end()
        if match[2]:
            parts.append("")
        else:
            parts[-1] += match[1]
    parts[-1] += text[at:]
    return tuple(parts)


def escaped(text: str) -> str:
    """The text escaped so that `read_escaped` reads it as one part."""
    return re.sub(r'[\\*"]', r"\\\g<0>", text)


def _spelled_value(glob: Glob) -> str:
    if any("*" in part for part in glob.parts) or _NEEDS_QUOTES.search("*".join(glob.parts)):
        return '"' + "*".join(map(escaped, glob.parts)) + '"'
    return "*".join(glob.parts)

"""An upper bound of the work that validating one value with a schema can cause. Pure.

Validation that could take too long is not run. A schema applies others to the same value (`allOf`, `$ref` …:
sixty lines that each refer twice to the next make 2^60 checks); what it applies to one value is counted once
for each part of it. It applies others to each part of a value, once more with every level of the value. And
one check may be expensive: an option of an `enum` that is no scalar, each character for a `pattern`, a number
of 64 bits or more. Under `uniqueItems` the elements of an array may all be compared with each other.
Describing errors costs more than judging: the validator copies the value for each error. The time to compile
patterns is limited by the validator itself. The unit is one check, about 0.2 µs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from dragoman.catalog.schemas.references import References
from dragoman.json_values import as_list, as_object

WORK_LIMIT: Final = 500_000
"""About 0.1 s. Not more: the validator lets no other thread run meanwhile."""
DEPTH_LIMIT: Final = 200
ON_ONE_VALUE: Final = 2_000
"""Parts that a small value has at most."""
BACKTRACK_LIMIT: Final = 2000
"""Steps of a pattern with look-around or back-references; each may match a part of the pattern again."""
UNBOUNDED: Final = 10**9
"""More than any limit."""

_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "propertyNames")
_IN_PLACE_MAPS: Final = ("dependentSchemas", "dependencies")
_NAME_LISTS: Final = ("dependentRequired", "dependencies")
_ARRAY_PARTS: Final = (("items", "prefixItems", "additionalItems"), ("contains",), ("unevaluatedItems",))
_OBJECT_PARTS: Final = (("properties", "additionalProperties"), ("unevaluatedProperties",))
_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")
_DYNAMIC: Final = ("$dynamicRef", "$recursiveRef")
_TEXT_READERS: Final = ("contentMediaType", "contentEncoding")
_PER_MISFIT: Final = 4
_FRACTION: Final = 200
"""A number is divided by a fraction exactly, with as many digits as the exponents of both demand."""
_LARGE_NUMBER: Final = 500
"""A number of 64 bits or more, in checks, besides those for its length."""
_FEW_ELEMENTS: Final = 15
"""With `uniqueItems`, so many elements are compared in pairs. More are hashed; those with equal hashes are
compared."""
_EXACT_IN_A_FLOAT: Final = 2**53
_COMPARED_LEVELS: Final = 200
"""Values with more levels are not checked for equal elements."""
_COMPARED_CHARACTERS: Final = 1_600
"""Characters of a text that are compared in the time of one value."""
_COPIED_CHARACTERS: Final = 8
"""Characters of a value that does not fit: so many are copied into its message at the cost of one check."""

Json = dict[str, Any]


class CheckCost(NamedTuple):
    judging: int
    """Checks to find out whether a value fits."""
    all_errors: int
    """Checks to describe every error."""
    first_error: int
    """Checks to describe the first error."""


class Cost(NamedTuple):
    """Of one schema, with all that it applies to the same value."""

    judging: int = 0
    """Checks of one part of a value."""
    per_error: int = 0
    """What is copied for each part that does not fit, as checks."""
    per_character: int = 0
    """Eighths of a check, for each character of a text."""
    fan_out: int = 0
    """Schemas that it applies to one member of an object."""
    array_fan_out: int = 0
    """The same for an element of an array."""
    comparing: int = 0
    """How many times it compares the elements of an array with each other."""

    def plus(self, other: Cost) -> Cost:
        return Cost(*(one + two for one, two in zip(self, other, strict=True)))


class DocumentCost(NamedTuple):
    """Of a document: the highest cost of any schema in it."""

    cost: Cost = Cost()
    pattern_count: int = 0
    has_choices: bool = False
    """Whether the description of one error may contain those of many."""
    checks_names: bool = False
    """Whether each name in an object may fail a check. The validator copies the whole object for each."""

    @property
    def is_low(self) -> bool:
        """Whether any small value is certain to be judged at once."""
        if self.cost.fan_out > 1 or self.cost.array_fan_out > 1 or self.cost.comparing:
            return False
        return (self.cost.judging + 125 * self.cost.per_character) * ON_ONE_VALUE <= WORK_LIMIT

    def of(self, value: object) -> CheckCost:
        """The work for this value; counting ends where it is too much."""
        cost = self.cost
        applied = characters = depth = 0
        repeats, most_names, level = 1, 1, [value]
        while level and applied * cost.judging <= WORK_LIMIT:
            below = _below(level)
            applied += repeats * (len(level) + below.extra)
            characters += repeats * below.characters
            most_names = max(most_names, below.most_names)
            fan_out = cost.fan_out if below.most_names else 0
            repeats *= max(1, fan_out, cost.array_fan_out if below.has_arrays else 0)
            level = below.parts
            depth += 1
        judging = applied * cost.judging + characters * cost.per_character // 8 + characters // 1000
        if cost.comparing and judging <= WORK_LIMIT:
            work = _compared(value).work if depth <= _COMPARED_LEVELS else WORK_LIMIT + 1
            judging += cost.comparing * repeats * work
        copied = applied * (4 + depth) + characters * depth // (_COPIED_CHARACTERS * _PER_MISFIT)
        all_errors = judging + copied * cost.per_error * (most_names if self.checks_names else 1)
        return CheckCost(judging, all_errors, judging + applied + characters // _COPIED_CHARACTERS)


class _Below(NamedTuple):
    parts: list[Any]
    characters: int
    """Of these values themselves, names included."""
    most_names: int
    """Of the largest object among them."""
    has_arrays: bool
    extra: int


def _below(level: list[Any]) -> _Below:
    """What is in these values."""
    inner: list[Any] = []
    characters, most_names, has_arrays, extra = 0, 0, False, 0
    for value in level:
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, int):
            extra += extra_of(value)
        elif value is None or isinstance(value, float):
            continue  # found quickly: the next check is slow
        elif isinstance(value, Mapping):
            parts = cast("Mapping[Any, Any]", value)
            most_names = max(most_names, len(parts))
            inner.extend(parts.values())
            characters += sum([len(name) for name in parts if isinstance(name, str)])
        elif isinstance(value, list | tuple):
            has_arrays = True
            inner.extend(cast("list[Any]", value))
    return _Below(inner, characters, most_names, has_arrays, extra)


class _Compared(NamedTuple):
    """What comparing the elements of each array in a value costs (`uniqueItems`)."""

    size: int
    """Of this value, when it is compared with another one."""
    key: int
    """Equal for all values that may have the same hash in the validator, which reads an array as what is in
    it, a number as a float, and a number of 64 bits or more not at all."""
    work: int


def _compared(value: object) -> _Compared:
    if isinstance(value, str):
        return _Compared(1 + len(value) // _COMPARED_CHARACTERS, hash(value), 0)
    if isinstance(value, int) and not -_EXACT_IN_A_FLOAT < value < _EXACT_IN_A_FLOAT:
        words = value.bit_length() // 64
        return _Compared(10 + (words and 40 + words * words // 4), 0 if words else hash(str(float(value))), 0)
    if isinstance(value, int | float):
        return _Compared(1, hash(str(float(value))), 0)
    if isinstance(value, Mapping):
        named = cast("Mapping[Any, Any]", value)
        parts = [_compared(part) for part in named.values()]
        key = sum(hash(f"{name} {part.key}") for name, part in zip(named, parts, strict=True))
        return _Compared(1 + sum(part.size for part in parts), key, sum(part.work for part in parts))
    if isinstance(value, list | tuple):
        parts = [_compared(part) for part in cast("list[Any]", value)]
        size = 1 + sum(part.size for part in parts)
        alike = len(parts)
        if alike > _FEW_ELEMENTS:
            alike = max(Counter(part.key for part in parts if part.size > 1).values(), default=0)
        work = sum(part.work for part in parts) + size * (2 + alike) // 4
        return _Compared(size, sum(part.key for part in parts), work)
    return _Compared(1, 0, 0)


def extra_of(number: int) -> int:
    """How many other values a number is worth: one of 64 bits or more is read and compared digit
    by digit."""
    words = number.bit_length() // 64
    return words and _LARGE_NUMBER + words * words // 4


def cost_of_document(schema: Json) -> DocumentCost | None:
    """None if it is unbounded or unknown."""
    costs = _Costs(schema)
    try:
        parts = list(_parts(schema, 0))
        if _has_documents(parts):
            return None
        cost = Cost(*map(max, zip(*map(costs.of, parts), strict=True)))
    except (_Endless, RecursionError):
        return None
    if cost.judging > WORK_LIMIT or cost.per_character >= UNBOUNDED:
        return None
    keywords = set[str]().union(*parts)
    return DocumentCost(
        cost,
        pattern_count=sum(len(_patterns(part)) for part in parts),
        has_choices="anyOf" in keywords or "oneOf" in keywords,
        checks_names="propertyNames" in keywords,
    )


class _Endless(Exception):
    """The schema refers to itself without taking anything off the value, or is nested too deeply."""


class _Costs:
    def __init__(self, root: Json) -> None:
        self._references = References(root)
        self._known: dict[int, Cost | None] = {}
        """By identity of the part; None while it is being counted."""

    def of(self, part: Json) -> Cost:
        if id(part) not in self._known:
            self._known[id(part)] = None
            cost = _own_cost(part)
            for other in self._applied_in_place(part):
                cost = cost.plus(self.of(other))
            if any(key in part for key in _UNEVALUATED):
                cost = cost.plus(cost)  # what has been evaluated is computed again
            self._known[id(part)] = cost
        known = self._known[id(part)]
        if known is None:
            raise _Endless
        return known

    def _applied_in_place(self, part: Json) -> Iterator[Json]:
        if any(key in part for key in _DYNAMIC):
            raise _Endless  # what it refers to depends on the way there
        applied = [part.get(key) for key in _IN_PLACE] + [self._target(part.get("$ref"))]
        applied += [[*as_object(part.get(key)).values()] for key in _IN_PLACE_MAPS]
        for value in applied:
            for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    yield cast("Json", item)

    def _target(self, reference: Any) -> Any:
        if isinstance(reference, str) and reference != "#" and not reference.startswith("#/"):
            raise _Endless  # an anchor or another document: its content is unknown
        return self._references.find(reference)


def _own_cost(part: Json) -> Cost:
    """What a schema does by itself, to one value."""
    names = sum(len(part[key]) for key in ("properties", "required") if isinstance(part.get(key), _SIZED))
    for listed in (each for key in _NAME_LISTS for each in as_object(part.get(key)).values()):
        names += len(cast("list[Any]", listed)) if isinstance(listed, list) else 1
    options = [*as_list(part.get("enum")), *([part["const"]] if "const" in part else [])]
    # Scalars are looked up.
    compared = sum(_size(option) for option in options if isinstance(option, _SIZED))
    copied = sum(_size(option) for option in options)
    by_pattern = len(as_object(part.get("patternProperties")))
    fraction = _FRACTION if isinstance(part.get("multipleOf"), float) else 0
    return Cost(
        judging=1 + names // 8 + compared + by_pattern + fraction,
        per_error=_PER_MISFIT * (1 + len(part)) + names + copied,
        per_character=sum(map(pattern_cost, _patterns(part))) + 4 * sum(key in part for key in _TEXT_READERS),
        fan_out=sum(any(key in part for key in keys) for keys in _OBJECT_PARTS) + by_pattern,
        array_fan_out=sum(any(key in part for key in keys) for keys in _ARRAY_PARTS),
        comparing=1 if part.get("uniqueItems") else 0,
    )


_SIZED: Final = (dict, list)


def _size(value: Any) -> int:
    """How many values it consists of; a long text counts as several."""
    found, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        found += 1 + (len(item) // 1000 if isinstance(item, str) else 0)
        waiting += [*as_list(item), *as_object(item).values()]
    return found


def _patterns(part: Json) -> list[str]:
    named = part.get("patternProperties")
    found = [*cast("Json", named)] if isinstance(named, dict) else []
    return [*found, part["pattern"]] if isinstance(part.get("pattern"), str) else found


def _has_documents(parts: list[Json]) -> bool:
    """Whether a part may be a document of its own: references in it are relative to it. Drafts before 6 spell
    `$id` without the dollar sign, as many values do that are no schemas."""
    is_old = any(re.search(r"draft-0[34]", str(part.get("$schema"))) for part in parts)
    keywords = ("$id", "id") if is_old else ("$id",)
    return any(isinstance(part.get(key), str) for part in parts[1:] for key in keywords)


def _parts(value: Any, depth: int) -> Iterator[Json]:
    """Every object in the document; more than are schemas, which does no harm."""
    if depth > DEPTH_LIMIT:
        raise _Endless
    if isinstance(value, dict):
        yield cast("Json", value)
    for inner in [*as_list(value), *as_object(value).values()]:
        yield from _parts(inner, depth + 1)


# Patterns. They are matched without backtracking wherever possible, so a match takes at most the pattern's
# states times the text's characters. Counted repetitions multiply the states.

_TOKEN: Final = re.compile(
    r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{\s*(\d*)\s*,?\s*(\d*)\s*\}|.", re.DOTALL
)
_BACKTRACKS: Final = re.compile(r"\(\?(?!:)|\\[1-9kKG]|[*+?}]\+")
_COMMENTED: Final = re.compile(r"\(\?[a-zA-Z]*x")
_COUNT: Final = re.compile(r"\{\s*\d")


def pattern_cost(pattern: str) -> int:
    """For each character of a text, in eighths of a check. Linear in the pattern."""
    states = UNBOUNDED if _COMMENTED.search(pattern) else _states(pattern)
    return states * BACKTRACK_LIMIT // 2 if _BACKTRACKS.search(pattern) and states < UNBOUNDED else states


def _states(pattern: str) -> int:
    states, last, outer = 1, 0, list[int]()
    for found in _TOKEN.finditer(pattern):
        token = found.group()
        if token[0] == "[" and (len(token) == 1 or _COUNT.search(token)):
            return UNBOUNDED  # a class without an end, or counts in what may or may not be a class
        if token == "(":
            outer.append(states)
            states = last = 0
        elif token == ")" and outer:
            last, states = states, states + outer.pop()
        elif token[0] == "{" and (found[1] or found[2]):
            times = min(max(int(found[1] or 0), int(found[2] or 0), 1), UNBOUNDED)
            states, last = states + last * (times - 1), last * times
        elif token not in ("*", "+", "?"):
            states, last = states + 1, 1
    return states + sum(outer)

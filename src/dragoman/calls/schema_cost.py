"""An upper bound of the work that validating one value with a schema can cause. Pure.

Validation that could take too long is not run. Three factors multiply: what a schema applies to one and the
same value (`allOf`, `$ref` …: sixty lines that each refer twice to the next make 2^60 checks), what it
applies to each part of a value, once more with every level of the value, and the cost of one check: an `enum`
is compared option by option, a `pattern` or `format` reads every character, and a number of 64 bits or more
is compared digit by digit. Reporting what does not fit costs more than judging: the validator copies the
value for each error. The schema's part is computed once; `Price.of` adds the value's part. The unit is one
check, about 0.2 µs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

from dragoman.calls.pattern_cost import UNKNOWABLE, PatternCost, pattern_cost

WORK_LIMIT: Final = 500_000
"""About 0.1 s. Not more: the validator lets no other thread run meanwhile."""
COMPILE_LIMIT: Final = 1_500_000
DEPTH_LIMIT: Final = 200
PER_MISFIT: Final = 4
ON_ONE_VALUE: Final = 2_000
"""Parts that a small value has at most."""

_IN_PLACE: Final = (
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies",
    "propertyNames", "$ref",
)  # fmt: skip
_MAPS: Final = frozenset({"dependentSchemas", "dependencies"})
_ARRAY_PARTS: Final = (("items", "prefixItems", "additionalItems"), ("contains",), ("unevaluatedItems",))
_OBJECT_PARTS: Final = (("properties", "additionalProperties"), ("unevaluatedProperties",))
_PRICED: Final = frozenset(
    {*_IN_PLACE, *_ARRAY_PARTS[0], *_ARRAY_PARTS[1], *_ARRAY_PARTS[2], *_OBJECT_PARTS[0], *_OBJECT_PARTS[1],
     "required", "dependentRequired", "enum", "const", "pattern", "patternProperties", "format",
     "$dynamicRef", "$recursiveRef", "multipleOf", "contentMediaType", "contentEncoding"}
)  # fmt: skip
"""What makes a difference; many objects in a schema are mere values."""
_FORMAT_REGEX: Final = 50_000
"""A value that has to be a pattern is compiled."""
_FRACTION: Final = 200
"""A number is divided by a fraction exactly, with as many digits as the exponents of both demand."""
_TEXT_READERS: Final = ("format", "contentMediaType", "contentEncoding")
_SLOW_READERS: Final = frozenset({"idn-hostname", "idn-email", "contentMediaType"})
_NUMBER_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COPIED_CHARACTERS: Final = 8
"""Characters of a misfit that are copied and written into its message at the price of one check."""

Json = dict[str, Any]


class Work(NamedTuple):
    judging: int
    """Checks to find out whether a value fits."""
    telling: int
    """Checks to tell everything that does not."""
    telling_one: int
    """Checks to tell the first thing that does not."""


class Price(NamedTuple):
    judging: int
    """Checks of one part of a value, at most."""
    telling: int
    """What is copied for each part that does not fit, as checks."""
    per_character: int
    """Eighths of a check, for each character of a text."""
    fan_out: int
    """Schemas that one schema applies to one member of an object, at most."""
    array_fan_out: int
    """The same for an element of an array."""
    has_choices: bool = False
    """Whether telling of one misfit may mean telling of many."""
    checks_names: bool = False
    """Whether each name in an object may be a misfit (`propertyNames`). The validator copies the whole object
    for every one of them."""
    compares_items: bool = False
    """Whether the elements of an array have to differ (`uniqueItems`). The validator compares each number of
    64 bits or more with every other one."""

    @property
    def is_low(self) -> bool:
        """Whether any small value is certain to be judged at once."""
        if self.fan_out > 1 or self.array_fan_out > 1 or self.compares_items:
            return False
        of_text = 1000 * self.per_character // 8
        return (self.judging + of_text) * ON_ONE_VALUE <= WORK_LIMIT

    def of(self, value: object) -> Work:
        """What it comes to for this value; counting ends where it is too much."""
        applied = characters = depth = most_names = large_numbers = 0
        repeats, level = 1, [value]
        while level and applied * self.judging <= WORK_LIMIT:
            applied += repeats * len(level)
            level, found, names, has_arrays, numbers = _below(level)
            most_names = max(most_names, names)
            characters += repeats * found
            for number in numbers:
                applied += repeats * extra_of(number)
                large_numbers += repeats
            repeats *= max(1, self.fan_out if names else 0, self.array_fan_out if has_arrays else 0)
            depth += 1
        judging = applied * self.judging + characters * self.per_character // 8 + characters // 1000
        if self.compares_items:
            judging += large_numbers * (large_numbers + applied) * self.judging
        copies = self.telling * (most_names if self.checks_names else 1)
        copied = applied * (4 + depth) + characters * depth // (_COPIED_CHARACTERS * PER_MISFIT)
        telling_one = judging + applied + characters // _COPIED_CHARACTERS
        return Work(judging, judging + copied * copies, telling_one)


def extra_of(number: int) -> int:
    """How many other values a number is worth: one of 64 bits or more is read and compared digit
    by digit."""
    words = number.bit_length() // 64
    return words and 60 + words * words // 4


def _below(level: list[Any]) -> tuple[list[Any], int, int, bool, list[int]]:
    """The parts of these values; how many characters they have themselves, names and all; how many names the
    largest object among them has; whether there are arrays; the numbers among them of 64 bits or more."""
    inner: list[Any] = []
    numbers: list[int] = []
    characters, most_names, has_arrays = 0, 0, False
    for value in level:
        kind = cast("type[Any]", type(value))
        if kind is str:
            characters += len(value)
        elif kind is int:
            if not _SMALLEST <= value <= _LARGEST:
                numbers.append(value)
        elif kind in _PLAIN:
            continue
        elif isinstance(value, Mapping):
            parts = cast("Mapping[Any, Any]", value)
            most_names = max(most_names, len(parts))
            inner.extend(parts.values())
            characters += sum([len(name) for name in parts if isinstance(name, str)])
        elif isinstance(value, list | tuple):
            has_arrays = True
            inner.extend(cast("list[Any]", value))
        elif isinstance(value, str):
            characters += len(value)
    return inner, characters, most_names, has_arrays, numbers


_PLAIN: Final = frozenset({float, bool, type(None)})
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1


def price_of(schema: Json) -> Price | None:
    """None if it is unbounded or unknown."""
    costs = _Costs(schema)
    try:
        parts = [(costs.of(part), part) for part in _parts(schema, 0)]
    except (_Endless, RecursionError):
        return None
    if costs.compiling > COMPILE_LIMIT:
        return None
    highest = [max(column) for column in zip(*[cost for cost, _ in parts], strict=True)]
    has_choices = any("anyOf" in part or "oneOf" in part for _, part in parts)
    checks_names = any("propertyNames" in part for _, part in parts)
    price = Price(
        *highest,
        has_choices=has_choices,
        checks_names=checks_names,
        compares_items=any("uniqueItems" in part for _, part in parts),
    )
    return price if price.judging <= WORK_LIMIT and price.per_character < UNKNOWABLE else None


class _Endless(Exception):
    """The schema refers to itself without taking anything off the value, or is nested too deeply."""


_Cost = tuple[int, int, int, int, int]
"""As in `Price`."""


class _Costs:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._known: dict[int, _Cost | None] = {}
        """By identity of the part; None while it is being counted."""
        self._patterns: dict[str, PatternCost] = {}
        self.compiling = 0

    def of(self, part: Json) -> _Cost:
        known = self._known.get(id(part), _UNSEEN)
        if known is None:
            raise _Endless
        if known is _UNSEEN and part.keys().isdisjoint(_PRICED):
            known = self._known[id(part)] = 1, PER_MISFIT * (1 + len(part)), 0, 0, 0
        if known is _UNSEEN:
            self._known[id(part)] = None
            known = self._own(part)
            for other in self._applied_in_place(part):
                known = _sum(known, self.of(other))
            if "unevaluatedProperties" in part or "unevaluatedItems" in part:
                known = _sum(known, known)  # what has been evaluated is computed again
            self._known[id(part)] = known
        return known

    def _own(self, part: Json) -> _Cost:
        """What a part does by itself, to one value."""
        names = sum(len(part[key]) for key in ("properties", "required") if isinstance(part.get(key), _SIZED))
        for listed in _values(part.get("dependentRequired")) + _values(part.get("dependencies")):
            names += len(cast("list[Any]", listed)) if isinstance(listed, list) else 1
        options = part.get("enum")
        compared = _options(cast("list[Any]", options) if isinstance(options, list) else [])
        constant = _options([part["const"]] if "const" in part else [])
        by_pattern = _values(part.get("patternProperties"))
        patterns = [self._pattern(pattern) for pattern in _patterns(part)]
        judging = 1 + names // 8 + compared[0] + constant[0] + len(by_pattern)
        judging += _FORMAT_REGEX if part.get("format") == "regex" else 0
        judging += sum(key in part for key in _NUMBER_BOUNDS)
        judging += _FRACTION if isinstance(part.get("multipleOf"), float) else 0
        telling = PER_MISFIT * (1 + len(part)) + names + compared[1] + constant[1]
        in_object = sum(any(key in part for key in keys) for keys in _OBJECT_PARTS) + len(by_pattern)
        in_array = sum(any(key in part for key in keys) for keys in _ARRAY_PARTS)
        per_character = sum(each.matching for each in patterns) + _reading(part)
        return judging, telling, per_character, in_object, in_array

    def _pattern(self, pattern: str) -> PatternCost:
        known = self._patterns.get(pattern)
        if known is None:
            known = self._patterns[pattern] = pattern_cost(pattern)
        self.compiling += known.compiling
        return known

    def _applied_in_place(self, part: Json) -> Iterator[Json]:
        if "$dynamicRef" in part or "$recursiveRef" in part:
            raise _Endless  # what it refers to depends on the way there
        for keyword in _IN_PLACE:
            value = part.get(keyword)
            if keyword == "$ref":
                value = self._target(value)
            elif keyword in _MAPS:
                value = _values(value)
            for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    yield cast("Json", item)

    def _target(self, reference: Any) -> Any:
        """What a reference points at: only plain pointers into the document can be followed here."""
        if not isinstance(reference, str):
            return None
        if reference != "#" and not reference.startswith("#/"):
            raise _Endless  # an anchor or another document: its content is unknown
        found: Any = self._root
        for step in unquote(reference[1:]).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = cast("Json", found).get(step)
            elif isinstance(found, list) and step.isdecimal():
                found = next(iter(cast("list[Any]", found)[int(step) : int(step) + 1]), None)
            else:
                return None
        return found


_UNSEEN: Final[_Cost] = (0, 0, 0, 0, -1)
_SIZED: Final = (dict, list)


def _reading(part: Json) -> int:
    """For each character of a text, in eighths of a check: the keywords that read all of it."""
    readers = [key for key in _TEXT_READERS if key in part]
    return sum(4 if key in _SLOW_READERS or str(part[key]) in _SLOW_READERS else 1 for key in readers)


def _sum(one: _Cost, other: _Cost) -> _Cost:
    a, b, c, d, e = one
    return a + other[0], b + other[1], c + other[2], d + other[3], e + other[4]


def _options(options: list[Any]) -> tuple[int, int]:
    """Checks to compare a value with all of these, and to copy them. Plain ones are looked up."""
    compared = copied = 0
    for option in options:
        size = sum(1 for _ in _everything(option))
        copied += size + (len(option) // 1000 if isinstance(option, str) else 0)
        compared += size if isinstance(option, _SIZED) else 0
    return compared, copied


def _everything(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        yield item
        waiting.extend(cast("list[Any]", item) if isinstance(item, list) else _values(item))


def _patterns(part: Json) -> list[str]:
    named = part.get("patternProperties")
    found = [*cast("Json", named)] if isinstance(named, dict) else []
    return [*found, part["pattern"]] if isinstance(part.get("pattern"), str) else found


def _values(value: Any) -> list[Any]:
    return list(cast("Json", value).values()) if isinstance(value, dict) else []


def _parts(value: Any, depth: int) -> Iterator[Json]:
    """Every object in the document; more than are schemas, which does no harm."""
    if depth > DEPTH_LIMIT:
        raise _Endless
    if isinstance(value, dict):
        yield cast("Json", value)
        for inner in cast("Json", value).values():
            yield from _parts(inner, depth + 1)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _parts(inner, depth + 1)

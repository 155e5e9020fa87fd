"""How much work a schema can make of one value. Pure.

I own: refusing schemas that take for ever by construction. A schema may apply others to the same value
(`allOf`, `$ref` …); sixty lines that each refer twice to the next make 2^60 checks. What it applies to
the parts of a value (`properties`, `items`) multiplies again with every level of the value. So the
worst case is the fan-out at one level, to the power of the value's depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import unquote

CHECK_LIMIT: Final = 200_000
DEPTH_LIMIT: Final = 200

_IN_PLACE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "$ref")

Json = dict[str, Any]


def fan_out(schema: Json) -> int | None:
    """The most schemas that any part of the schema applies to one value; None if without end."""
    costs = _Costs(schema)
    try:
        return max(costs.of(part) for part in _parts(schema, 0))
    except (_Endless, RecursionError):
        return None


def is_affordable(fan_out: int, value: object) -> bool:
    """Whether checking the value is certain to end soon."""
    return fan_out == 1 or fan_out ** _depth(value) <= CHECK_LIMIT


def _depth(value: object) -> int:
    if isinstance(value, dict):
        inner: Any = cast("Json", value).values()
    elif isinstance(value, list | tuple):
        inner = cast("list[Any]", value)
    else:
        return 1
    return 1 + max((_depth(item) for item in inner), default=0)


class _Endless(Exception):
    """The schema refers to itself without taking anything off the value, or is nested too deeply."""


class _Costs:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._known: dict[int, int | None] = {}
        """By identity of the part; None while it is being counted."""

    def of(self, part: Json) -> int:
        known = self._known.get(id(part), 0)
        if known is None:
            raise _Endless
        if not known:
            self._known[id(part)] = None
            known = 1 + sum(self.of(other) for other in self._applied_in_place(part))
            self._known[id(part)] = known
        return known

    def _applied_in_place(self, part: Json) -> Iterator[Json]:
        if "$dynamicRef" in part or "$recursiveRef" in part:
            raise _Endless  # what it refers to depends on the way there
        for keyword in _IN_PLACE:
            value = part.get(keyword)
            if keyword == "$ref":
                value = self._target(value)
            elif keyword == "dependentSchemas" and isinstance(value, dict):
                value = list(cast("Json", value).values())
            for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
                if isinstance(item, dict):
                    yield cast("Json", item)

    def _target(self, reference: Any) -> Any:
        """What a reference points at: only plain pointers into the document can be followed here."""
        if not isinstance(reference, str):
            return None
        if reference != "#" and not reference.startswith("#/"):
            raise _Endless  # an anchor or another document: nobody knows what it leads to
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

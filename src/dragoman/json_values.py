"""Small operations on decoded JSON: values of unknown type, nesting, and copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

_FIXED = frozenset({str, int, float, bool, type(None)})


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def nests_deeper(value: Any, limit: int) -> bool:
    """Whether an object or a list is nested deeper than this."""
    level: list[Any] = [value]
    for _ in range(limit):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def _inside(value: Any) -> Iterable[Any]:
    return as_object(value).values() if isinstance(value, dict) else as_list(value)


def copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy of an object, so that it cannot change after it was checked. Most objects have a few plain
    values, and copying them takes almost no time."""
    given = dict(arguments)
    for value in given.values():
        if type(value) not in _FIXED:
            return {key: each if type(each) in _FIXED else _copied(each) for key, each in given.items()}
    return given


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return copied(cast("Mapping[str, Any]", value))
    if isinstance(value, list | tuple):
        return [item if type(item) in _FIXED else _copied(item) for item in cast("list[Any]", value)]
    return value

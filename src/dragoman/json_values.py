"""Small operations on decoded JSON: values of unknown type, nesting, and copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

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
    """A deep copy of an object, with values as JSON has them, so that it cannot change after it was checked.
    Most objects have a few plain values, and copying them takes almost no time. Raises `msgspec.DecodeError`
    for a `msgspec.Raw` that is not JSON."""
    given = dict(arguments)
    for key, value in given.items():
        if type(value) not in _FIXED or type(key) is not str:
            named = given if all(type(each) is str for each in given) else _as_sent(given)
            return {key: each if type(each) in _FIXED else _copied(each) for key, each in named.items()}
    return given


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return copied(cast("Mapping[str, Any]", value))
    if isinstance(value, list | tuple):
        return [item if type(item) in _FIXED else _copied(item) for item in cast("list[Any]", value)]
    return _as_sent(value)


def _as_sent(value: Any) -> Any:
    """A value of any other type as JSON writes it: rules and hooks must see what is sent for a member of an
    `Enum` (which may be a name, too), a set or a dataclass. Unchanged if JSON cannot express it."""
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError):
        return value
    return msgspec.json.decode(encoded)

"""Copies JSON values, so that a value cannot change after it was checked.

Objects and lists are copied at every depth; all other values are immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

_FIXED = frozenset({str, int, float, bool, type(None)})


def copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An object of one's own. Most have a few plain values, and cost next to nothing."""
    own = cast("dict[str, Any]", arguments) if type(arguments) is dict else dict(arguments)
    return {key: value if type(value) in _FIXED else _copied(value) for key, value in own.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return copied(cast("Mapping[str, Any]", value))
    if isinstance(value, list | tuple):
        return [item if type(item) in _FIXED else _copied(item) for item in cast("list[Any]", value)]
    return value

"""Describes the structure of JSON in one line for a model. Pure.

Shows keys, types, lengths and nesting from a bounded sample: `{items: [1200 × {id: integer, name: string}],
next: null}`. Only some keys, the first element of each array and a bounded number of steps are read, however
large the JSON is; the line says where there is more.
"""

from __future__ import annotations

from typing import Final

from dragoman.cleaning import one_line
from dragoman.content.json_scan import Broken, TooManyParts, Walk

KEY_LIMIT: Final = 30
INNER_KEY_LIMIT: Final = 12
DEPTH_LIMIT: Final = 5
COUNT_LIMIT: Final = 100_000
STEP_LIMIT: Final = 400_000
LENGTH_LIMIT: Final = 1500

_OBJECT, _ARRAY, _STRING = b"{"[0], b"["[0], b'"'[0]
_SCALARS: Final = {b"t"[0]: "boolean", b"f"[0]: "boolean", b"n"[0]: "null"}


def shape_of(view: memoryview) -> str:
    """The structure in one line; empty if the text is not JSON."""
    looker = _ShapeReader(view)
    try:
        text = looker.value(looker.walk.start(), 0)
    except (Broken, TooManyParts, UnicodeDecodeError):
        return ""
    return one_line(text, LENGTH_LIMIT)


class _ShapeReader:
    def __init__(self, view: memoryview) -> None:
        self.walk = Walk(view, STEP_LIMIT)

    def value(self, at: int, depth: int) -> str:
        first = self.walk.view[at]
        if first == _OBJECT:
            return self._object(at, depth)
        if first == _ARRAY:
            return self._array(at, depth)
        if first == _STRING:
            return "string"
        return _SCALARS.get(first) or self._number(at)

    def _number(self, at: int) -> str:
        digits = bytes(self.walk.view[at : min(at + 40, self.walk.end_of(at))])
        return "number" if any(mark in digits for mark in b".eE") else "integer"

    def _object(self, at: int, depth: int) -> str:
        if depth >= DEPTH_LIMIT:
            return "{…}"
        limit = INNER_KEY_LIMIT if depth else KEY_LIMIT
        parts: list[str] = []
        count = 0
        try:
            for key, begin in self.walk.keys(at):
                count += 1
                if count <= limit:
                    parts.append(self._member(key, begin, depth))
        except (TooManyParts, Broken):
            parts.append("…")
        if count > limit:
            parts.append(f"{count - limit} more keys")
        return "{" + ", ".join(parts) + "}"

    def _member(self, key: str, begin: int, depth: int) -> str:
        name = key if key.isidentifier() else _quoted(key)
        return f"{name}: {self.value(begin, depth + 1)}"

    def _array(self, at: int, depth: int) -> str:
        count, first, more = 0, "…", ""
        try:
            for begin in self.walk.beginnings(at):
                count += 1
                if count == 1 and depth < DEPTH_LIMIT:
                    first = self.value(begin, depth + 1)
                if count == COUNT_LIMIT:
                    raise TooManyParts
        except (TooManyParts, Broken):
            more = "at least "
        return f"[{more}{count} × {first}]" if count else "[]"


def _quoted(key: str) -> str:
    return "'" + key.replace("\\", "\\\\").replace("'", "\\'") + "'"

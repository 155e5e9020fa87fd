"""Where the members of an object, or the items of a list, begin in a JSON text. Strict JSON only.

Values that are not on the way are skipped by the standard library's decoder, which is some hundred times as
fast as the scanner of `jsontree.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

_SPACE: Final = re.compile(r"[ \t\n\r]*+")
_DECODER: Final = json.JSONDecoder()


def offsets_in(text: str, path: tuple[str | int, ...]) -> list[tuple[str | int, int]]:
    """The keys, or indices, of the value at the path, and where each begins, in order.

    Nothing if there is no such value; `ValueError` if the text is not JSON.
    """
    at: int | None = _after_space(text, 0)
    for key in path:
        at = next((value for found, _, value in _items(text, at) if found == key), None)
        if at is None:
            return []
    return [(key, start) for key, start, _ in _items(text, at or 0)]


def _items(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Key or index, where it begins, and where its value begins."""
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return
    closing = "}" if opening == "{" else "]"
    at, number = _after_space(text, at + 1), 0
    while text[at : at + 1] != closing:
        start, key = at, number
        if opening == "{":
            key, at = _decoded(text, at)
            at = _after_space(text, _past(text, _after_space(text, at), ":"))
        yield key, start, at
        _, at = _decoded(text, at)
        at, number = _after_space(text, at), number + 1
        if text[at : at + 1] != closing:
            at = _after_space(text, _past(text, at, ","))


def _decoded(text: str, at: int) -> tuple[str | int, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _past(text: str, at: int, character: str) -> int:
    if text[at : at + 1] != character:
        raise ValueError(f"{character} is missing")
    return at + 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()

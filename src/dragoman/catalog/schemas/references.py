"""Finds the target of a `$ref` in the same document, by JSON pointer, anchor or `$id`. Pure: other documents
are never fetched.
"""

from __future__ import annotations

from typing import Any, Final, cast
from urllib.parse import unquote

from dragoman.catalog.schemas.keywords import Json

INDEX_LIMIT: Final = 100_000


class References:
    def __init__(self, root: Json) -> None:
        self._root = root
        self._named: dict[str, Any] | None = None
        """Subschemas by anchor (`#name`) and by `$id`; collected at the first such reference."""

    def find(self, reference: Any) -> Any:
        """The target of the reference; None if it is not in this document."""
        if not isinstance(reference, str):
            return None
        base, mark, place = reference.partition("#")
        document = self._root if base in ("", self._root.get("$id")) else self._by_name(base)
        if not mark or not place:
            return document
        if place.startswith("/"):
            return _follow(document, place)
        return self._by_name(f"#{place}")

    def _by_name(self, name: str) -> Any:
        if self._named is None:
            self._named = _named_parts(self._root)
        return self._named.get(name)


def _follow(found: Any, pointer: str) -> Any:
    for step in unquote(pointer).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = cast("Json", found).get(step)
        elif isinstance(found, list) and step.isdecimal() and len(step) < 9:
            found = next(iter(cast("list[Any]", found)[int(step) : int(step) + 1]), None)
        else:
            return None
    return found


def _named_parts(root: Json) -> dict[str, Any]:
    named: dict[str, Any] = {}
    waiting: list[Any] = [root]
    for _ in range(INDEX_LIMIT):
        if not waiting:
            break
        current = waiting.pop()
        if isinstance(current, dict):
            part = cast("Json", current)
            for keyword, mark in (("$anchor", "#"), ("$id", ""), ("id", "")):
                if isinstance(name := part.get(keyword), str):
                    named.setdefault(f"{mark}{name}", part)
            waiting.extend(part.values())
        elif isinstance(current, list):
            waiting.extend(cast("list[Any]", current))
    return named

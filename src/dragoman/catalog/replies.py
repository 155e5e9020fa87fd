"""Splits replies to `prompts/get` and `resources/read` into their parts, whatever their size.

The parts of an array are found one after the other and not decoded here; no single step takes long, so that a
large reply can be read in a worker thread (`calls/input_rounds.py:in_thread_if_large`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from dragoman.catalog.paging import scalar
from dragoman.content.json_scan import Broken, Members, TooManyParts, Walk, first_byte, members_of
from dragoman.wire.codec import Unreadable
from dragoman.wire.messages import ABSENT


class PartialReply:
    """A result of which only the requested members are read; `Unreadable` if it is not an object."""

    def __init__(self, raw: Raw, wanted: type[Members]) -> None:
        try:
            self._parts = members_of(memoryview(raw), wanted)
        except Broken as problem:
            raise Unreadable(str(problem)) from None
        kind = self.scalar("resultType")
        if not isinstance(kind, str | None):
            raise Unreadable("its resultType is not a text")
        self.kind = "complete" if kind is None else kind
        self.is_cut = False
        """Whether an array had too many parts to be read to its end."""

    def scalar(self, name: str) -> Any:
        """A small member, None if it is absent."""
        return scalar(self.raw(name))

    def raw(self, name: str) -> Raw:
        part = self._parts.get(name)
        return ABSENT if part is None else Raw(part)

    def array(self, name: str) -> Iterator[Raw]:
        """The elements of a member that a complete result must have."""
        part = self._parts.get(name)
        if part is not None and first_byte(part) == b"[":
            yield from self._elements(part)
        elif self.kind == "complete":
            raise Unreadable(f"it has no {name!r}")

    def _elements(self, part: memoryview) -> Iterator[Raw]:
        try:
            for begin, end in Walk(part).elements(0):
                yield Raw(part[begin:end])
        except TooManyParts:
            self.is_cut = True
        except Broken as problem:
            raise Unreadable(str(problem)) from None

"""Writes a text that is too large for a model to a file, and examines it at the same time.

Collects the beginning and end of the text, its size, its lines and its structure, and writes the notice that
describes for a model what it was given and how to read more. Slow: it runs in a worker thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

from dragoman.content.budget import ResultLimits, head_of, tail_of
from dragoman.content.json_scan import Broken, TooManyParts, Walk, first_byte
from dragoman.content.saving import Saver, handle_of
from dragoman.content.shape import shape_of

SAMPLE_BYTES: Final = 8 * 1024 * 1024
"""How many characters of JSON are read to describe its structure."""
LINES_AT_ONCE: Final = 200
FIRST_DEPTH: Final = 20
_BYTES_PER_CHARACTER: Final = 4
_CONTINUATION: Final = bytes(range(0x80, 0xC0))

_JSON_BEGINS = re.compile(rb"\s*[\[{]")

Kind = Literal["text", "json", "image", "audio", "data"]


class Saved(Struct, frozen=True):
    """A file of a result."""

    handle: str
    path: Path
    size_bytes: int
    kind: Kind


class Spilled(Struct, frozen=True):
    saved: Saved
    head: str
    tail: str
    characters: int
    line_count: int
    shape: str
    """The structure of JSON in one line; empty for other text."""


class PieceStatistics:
    """Head, tail and counts of a text, collected from its pieces as they are written."""

    def __init__(self, limits: ResultLimits) -> None:
        self._head_bytes = _BYTES_PER_CHARACTER * limits.head_characters
        self._tail_bytes = _BYTES_PER_CHARACTER * limits.tail_characters
        self._limits = limits
        self._head = b""
        self._tail = b""
        self.characters = self.breaks = 0

    def watched(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if len(self._head) < self._head_bytes:
                self._head += piece[: self._head_bytes - len(self._head)]
            last = piece[-self._tail_bytes :]
            self._tail = last if len(last) == self._tail_bytes else (self._tail + last)[-self._tail_bytes :]
            self.characters += len(piece.translate(None, _CONTINUATION))
            self.breaks += piece.count(b"\n")
            yield piece

    @property
    def line_count(self) -> int:
        return self.breaks + (not self._tail.endswith(b"\n"))

    @property
    def head(self) -> str:
        return head_of(self._head.decode("utf-8", "ignore"), self._limits)

    @property
    def tail(self) -> str:
        """The end of the text; empty if the head already shows it."""
        shown = len(self.head)
        left = max(0, self.characters - shown)
        tail = self._tail.decode("utf-8", "ignore")
        return tail_of(tail, self._limits)[-left:] if left else ""

    @property
    def looks_like_json(self) -> bool:
        begins = _JSON_BEGINS.match(self._head)
        return bool(begins) and self._tail.rstrip()[-1:] in (b"]", b"}")


def spill(
    pieces: Iterable[bytes],
    most_bytes: int,
    saver: Saver,
    limits: ResultLimits,
    *,
    kind: Kind,
    owner: str = "",
) -> Spilled:
    """Saves the text; `NotSaved` if that is not possible. `owner`: the server whose share contains it."""
    statistics = PieceStatistics(limits)
    # Whether it is JSON is known only at its end, and the name is needed before. Both extensions open in an
    # editor.
    first, rest = _first(pieces)
    may_be_json = kind == "json" or bool(_JSON_BEGINS.match(first))
    watched = statistics.watched(_again(first, rest))
    path, size = saver.save_pieces_now(watched, most_bytes, ".json" if may_be_json else ".txt", owner=owner)
    shape = ""
    if may_be_json and statistics.looks_like_json:
        shape = _shape_of_file(saver, handle_of(path.name), size)
    saved = Saved(handle_of(path.name), path, size, "json" if shape else "text")
    return Spilled(
        saved, statistics.head, statistics.tail, statistics.characters, statistics.line_count, shape
    )


def note_of(spilled: Spilled) -> str:
    """The note for a model between the two ends that it is shown."""
    saved, shown_lines = spilled.saved, spilled.head.count("\n") + 1
    ways = ['grep="some words"', f"offset={len(spilled.head.encode('utf-8', 'replace'))}"]
    if spilled.line_count > shown_lines:
        ways.insert(0, f'lines="{shown_lines + 1}-{shown_lines + LINES_AT_ONCE}"')
    shape = f" Its shape: {spilled.shape}." if spilled.shape else ""
    calls = " or ".join(f'read_result(handle="{saved.handle}", {way})' for way in ways)
    lines = "1 line" if spilled.line_count == 1 else f"{spilled.line_count} lines"
    left_out = spilled.characters - len(spilled.head) - len(spilled.tail)
    return (
        f"[… {left_out} characters are left out here. The result is too large to be shown whole: "
        f"{saved.size_bytes} bytes, {spilled.characters} characters, {lines}"
        f"{' of JSON' if spilled.shape else ''}.{shape} "
        f"All of it is saved in {saved.path}. To read on: {calls}.]"
    )


def _first(pieces: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    rest = iter(pieces)
    return next(rest, b""), rest


def _again(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _shape_of_file(saver: Saver, handle: str, size: int) -> str:
    file, _ = saver.open_saved(handle)
    with os.fdopen(file, "rb") as stream:
        sample = stream.read(SAMPLE_BYTES)
    return shape_of(memoryview(sample)) if _is_json(sample, is_whole=len(sample) == size) else ""


def _is_json(sample: bytes, *, is_whole: bool) -> bool:
    """Whether the sample is JSON. If the text continues after the sample, only its first value is checked."""
    try:
        if is_whole:
            msgspec.json.decode(sample, type=Raw)
        else:
            begin, end = _first_value(Walk(memoryview(sample)))
            msgspec.json.decode(sample[begin:end], type=Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Broken, TooManyParts):
        return False
    return True


def _first_value(walk: Walk) -> tuple[int, int]:
    """The position of the first value that contains no others."""
    at = walk.start()
    for _ in range(FIRST_DEPTH):
        inner: int | None = None
        if first_byte(walk.view, at) == b"[":
            inner = next(walk.beginnings(at), None)
        elif first_byte(walk.view, at) == b"{":
            inner = next((begin for _, begin in walk.keys(at)), None)
        if inner is None:
            break
        at = inner
    return at, walk.end_of(at)

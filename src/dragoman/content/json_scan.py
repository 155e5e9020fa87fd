"""Finds the parts of large JSON values without decoding them. Pure.

Expects well-formed JSON (the wire layer has checked it). A decoder holds the interpreter lock for the whole
text; here no single step takes more than a few milliseconds, so a worker thread does not block the event
loop. Work is bounded: values with too many brackets raise `TooManyParts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import fields

STEP_BYTES: Final = 1024 * 1024
SHORT_BYTES: Final = 4096
FIRST_PIECE_BYTES: Final = 128
"""The first piece that is read of a string with escapes; each further piece is twice as large."""
STEP_LIMIT: Final = 500_000
"""The limit of brackets, strings and parts that one walk reads: less than a second."""
KEY_LIMIT_BYTES: Final = 1000

_SHORT_STRING = re.compile(rb'[^"\\]*"')
_BLANK = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^,\]}\s]*")
_NESTING = re.compile(rb'["{}\[\]]')

_QUOTE = b'"'[0]
_OPENING, _COMMA = frozenset(b"{["), b","[0]
_ENDS = frozenset(b"]}")

Member = tuple[str, int, int]
"""A key, and where its value begins and ends."""


class TooManyParts(Exception):
    """The value has more parts than the limit."""


class Broken(Exception):
    """The value is not the JSON that was expected."""


class Walk:
    """A walk over a text with a limited number of steps."""

    def __init__(self, view: memoryview, step_limit: int = STEP_LIMIT) -> None:
        self.view = view
        self._steps_left = step_limit
        self._found = (-1, -1)
        """The last value whose end was searched, and its end: it is often requested twice."""

    def start(self) -> int:
        return self._blank(0)

    def elements(self, at: int) -> Iterator[tuple[int, int]]:
        """The start and end of each element of the array at this position."""
        for begin in self.beginnings(at):
            yield begin, self.end_of(begin)

    def members(self, at: int) -> Iterator[Member]:
        """Each member of the object at this position."""
        for key, begin in self.keys(at):
            yield key, begin, self.end_of(begin)

    def beginnings(self, at: int) -> Iterator[int]:
        """The start of each element, including the last one if the text is cut off inside it."""
        at = self._blank(at + 1)
        while self._byte(at) not in _ENDS:
            yield at
            at = self._next(self.end_of(at))

    def keys(self, at: int) -> Iterator[tuple[str, int]]:
        """Each key and the start of its value, including the last one if the text is cut off inside it."""
        at = self._blank(at + 1)
        while self._byte(at) not in _ENDS:
            if self._byte(at) != _QUOTE:
                raise Broken("a key is no string")
            key_end = self.string_end(at + 1)
            key = self._key(at, key_end + 1)
            at = self._blank(self._blank(key_end + 1) + 1)
            yield key, at
            at = self._next(self.end_of(at))

    def end_of(self, at: int) -> int:
        """Where the value that begins here ends."""
        if self._found[0] != at:
            self._found = (at, self._end_of(at))
        return self._found[1]

    def _end_of(self, at: int) -> int:
        self._step()
        first = self._byte(at)
        if first == _QUOTE:
            return self.string_end(at + 1) + 1
        if first in _OPENING:
            return self._nested_end(at)
        found = _SCALAR.match(self.view, at)
        return found.end() if found else at

    def string_end(self, at: int) -> int:
        """The position of the closing quote of the string whose content begins here."""
        found = _SHORT_STRING.match(self.view, at, at + SHORT_BYTES)
        if found:
            return found.end() - 1
        size = FIRST_PIECE_BYTES
        while piece := bytes(self.view[at : at + size]):
            piece = whole_escapes(piece)
            quote = _quote_in(piece)
            if quote >= 0:
                return at + quote
            at += len(piece)
            size = min(2 * size, STEP_BYTES)
        raise Broken("a string does not end")

    def _nested_end(self, at: int) -> int:
        depth, size = 0, len(self.view)
        while at < size:
            found = _NESTING.search(self.view, at, at + STEP_BYTES)
            if found is None:
                at += STEP_BYTES
                continue
            self._step()
            mark, at = self.view[found.start()], found.end()
            if mark == _QUOTE:
                at = self.string_end(at) + 1
            elif mark in _OPENING:
                depth += 1
            else:
                depth -= 1
                if not depth:
                    return at
        raise Broken("a bracket is not closed")

    def _key(self, begin: int, end: int) -> str:
        if end - begin > KEY_LIMIT_BYTES:
            return f"({end - begin - 2} bytes)"  # no key that is ever searched for
        try:
            return msgspec.json.decode(self.view[begin:end], type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return "(unreadable)"

    def _next(self, at: int) -> int:
        """The position of the next part, or of the closing bracket."""
        at = self._blank(at)
        return self._blank(at + 1) if self._byte(at) == _COMMA else at

    def _blank(self, at: int) -> int:
        if at < len(self.view) and self.view[at] > 0x20:  # the common case
            return at
        found = _BLANK.match(self.view, at)
        return found.end() if found else at

    def _byte(self, at: int) -> int:
        if at >= len(self.view):
            raise Broken("it is cut off")
        return self.view[at]

    def _step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooManyParts


class Members(Struct):
    """The members to read from an object: a subclass has a `Raw` field for each key, `Raw()` if it is
    absent."""


def members_of(view: memoryview, wanted: type[Members]) -> dict[str, memoryview]:
    """The requested members of an object, undecoded; `Broken` if it is not an object.

    An object with too many parts is left to the decoder, which is quick, but holds the interpreter lock
    meanwhile.
    """
    names = {field.encode_name: field.name for field in fields(wanted)}
    walk = Walk(view)
    at = walk.start()
    if first_byte(view, at) != b"{":
        raise Broken("Expected `object`")
    try:
        return {key: view[begin:end] for key, begin, end in walk.members(at) if key in names}
    except TooManyParts:
        found = _decoded(view, wanted)
    parts = {key: memoryview(getattr(found, name)) for key, name in names.items()}
    return {key: part for key, part in parts.items() if part.nbytes}


def _decoded(view: memoryview, shape: type[Members]) -> Members:
    try:
        return msgspec.json.decode(view, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(str(error)) from None


def first_byte(view: memoryview, at: int = 0) -> bytes:
    """The byte at this position; empty at the end."""
    return bytes(view[at : at + 1])


def whole_escapes(piece: bytes) -> bytes:
    """The piece without an incomplete escape (a lone backslash) at its end."""
    trailing = len(piece) - len(piece.rstrip(b"\\"))
    return piece[:-1] if trailing % 2 and len(piece) > 1 else piece


def _quote_in(piece: bytes) -> int:
    """The place of the first quote that is not escaped, or -1. The piece begins outside an escape."""
    quote = piece.find(b'"')
    if quote < 0 or piece.find(b"\\", 0, quote) < 0:
        return quote
    return piece.replace(rb"\\", b"..").replace(rb"\"", b"..").find(b'"')

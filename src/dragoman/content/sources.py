"""Reads the text of a result piece by piece.

A source is decoded text, the inside of a large JSON string, or JSON itself. Each can be read several times,
in pieces of bounded size, without being in memory as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from dragoman.content.json_scan import whole_escapes
from dragoman.content.redact import Redactor

_BETWEEN: Final = b"\n"


class Plain(Struct, frozen=True):
    """Decoded text."""

    text: str

    @property
    def most_bytes(self) -> int:
        return len(self.text) if self.text.isascii() else 4 * len(self.text)

    def pieces(self) -> Iterator[bytes]:
        for at in range(0, len(self.text), PIECE_BYTES):
            yield encoded(self.text[at : at + PIECE_BYTES])


class Escaped(Struct, frozen=True):
    """The inside of a JSON string."""

    inside: memoryview

    @property
    def most_bytes(self) -> int:
        return self.inside.nbytes  # no escape is shorter than the text it encodes

    def pieces(self) -> Iterator[bytes]:
        return unescaped(self.inside)


class RawJson(Struct, frozen=True):
    """Bytes that are text already: JSON as the server wrote it."""

    data: memoryview

    @property
    def most_bytes(self) -> int:
        return self.data.nbytes

    def pieces(self) -> Iterator[bytes]:
        for at in range(0, self.data.nbytes, PIECE_BYTES):
            yield bytes(self.data[at : at + PIECE_BYTES])


Source = Plain | Escaped | RawJson


class Joined(Struct, frozen=True):
    """Several sources, separated by line breaks."""

    sources: tuple[Source, ...]
    redact: Redactor | None = None

    @property
    def most_bytes(self) -> int:
        return sum(source.most_bytes + 1 for source in self.sources)

    def pieces(self) -> Iterator[bytes]:
        return self.redact.pieces(self._pieces()) if self.redact else self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        """Small sources are put together: ten thousand writes of five bytes are slow."""
        held: list[bytes] = []
        size = 0
        for number, source in enumerate(self.sources):
            if number:
                held.append(_BETWEEN)
            for piece in source.pieces():
                held.append(piece)
                size += len(piece) + 1
                if size >= PIECE_BYTES:
                    yield b"".join(held)
                    held, size = [], 0
        if held:
            yield b"".join(held)


def encoded(text: str) -> bytes:
    """The text in UTF-8; a lone surrogate becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def whole(sources: Sequence[Source]) -> str:
    """The whole source as one text."""
    return b"".join(Joined(tuple(sources)).pieces()).decode("utf-8", "replace")


PIECE_BYTES: Final = 256 * 1024

_decode = msgspec.json.Decoder(str).decode

# The beginning of an escape, a surrogate pair or a character, at the end of a piece whose trailing
# backslashes are paired.
_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_UNFINISHED = re.compile(
    rb"(?:" + _HIGH + rb"(?:\\(?:u[0-9a-fA-F]{0,3})?)?|\\(?:u[0-9a-fA-F]{0,3})?"
    rb"|[\xc0-\xff][\x80-\xbf]{0,2})\Z"
)
_LONGEST_UNFINISHED: Final = 12


def unescaped(inside: memoryview, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """The text in UTF-8, piece by piece, in linear time and little memory. `inside` is the text between the
    quotes of a JSON string.

    Escapes, surrogate pairs and multi-byte characters that the end of a piece would divide go to the next.
    A lone surrogate becomes U+FFFD, because no file can contain it; bytes that are not valid UTF-8 pass
    unchanged where possible.
    """
    at, size = 0, len(inside)
    while at < size:
        piece = bytes(inside[at : at + piece_bytes])
        if at + len(piece) < size:
            piece = _up_to_boundary(piece)
        at += len(piece)
        yield unescape(piece)


def unescape(piece: bytes) -> bytes:
    """The text of a piece whose ends divide no escape or character."""
    if b"\\" not in piece:
        return piece
    try:
        return _decode(b'"%b"' % piece).encode()
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError):
        try:
            text: str = json.loads(f'"{piece.decode("utf-8", "replace")}"', strict=False)
        except ValueError:
            return piece
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _up_to_boundary(piece: bytes) -> bytes:
    """The piece without an escape or character that continues after its end; never empty."""
    whole = whole_escapes(piece)
    for start in range(max(0, len(whole) - _LONGEST_UNFINISHED), len(whole)):
        if _UNFINISHED.match(whole, start) and not _is_escaped(whole, start):
            return whole[:start] or whole
    return whole


def _is_escaped(piece: bytes, at: int) -> bool:
    """Whether the character there belongs to an escape that began before it."""
    before = piece[:at]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1

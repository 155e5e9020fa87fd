"""Reads the text of a result piece by piece.

A text is decoded, or the inside of a large JSON string, or JSON itself. Each can be read several times, in
pieces of bounded size, without being in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dragoman.content.redact import Redactor
from dragoman.content.unescaping import PIECE_BYTES, unescaped

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
    """Several, a line break between each two."""

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
    """In UTF-8; half a surrogate pair becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def whole(sources: Sequence[Source]) -> str:
    """All of it as one text."""
    return b"".join(Joined(tuple(sources)).pieces()).decode("utf-8", "replace")

r"""Decodes the inside of a large JSON string to UTF-8, piece by piece, in linear time and little memory.

Escapes, surrogate pairs and multi-byte characters that the end of a piece would divide go to the next piece.
A lone surrogate becomes U+FFFD, because no file can contain it; bytes that are not valid UTF-8 pass unchanged
where possible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from dragoman.content.json_scan import whole_escapes

PIECE_BYTES: Final = 256 * 1024

_decode = msgspec.json.Decoder(str).decode

# The beginnings of an escape, a surrogate pair or a character, at the very end of a piece whose trailing
# backslashes are paired.
_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_UNFINISHED = re.compile(
    rb"(?:" + _HIGH + rb"(?:\\(?:u[0-9a-fA-F]{0,3})?)?|\\(?:u[0-9a-fA-F]{0,3})?"
    rb"|[\xc0-\xff][\x80-\xbf]{0,2})\Z"
)
_LONGEST_UNFINISHED: Final = 12


def unescaped(inside: memoryview, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """The text in UTF-8. `inside` is the text between the quotes."""
    at, size = 0, len(inside)
    while at < size:
        piece = bytes(inside[at : at + piece_bytes])
        if at + len(piece) < size:
            piece = _up_to_boundary(piece)
        at += len(piece)
        yield unescape(piece)


def unescape(piece: bytes) -> bytes:
    """The text of a piece that cuts nothing in two."""
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
    """The piece without what goes on after its end; never empty."""
    whole = whole_escapes(piece)
    for start in range(max(0, len(whole) - _LONGEST_UNFINISHED), len(whole)):
        if _UNFINISHED.match(whole, start) and not _is_escaped(whole, start):
            return whole[:start] or whole
    return whole


def _is_escaped(piece: bytes, at: int) -> bool:
    """Whether the character there belongs to an escape that began before it."""
    before = piece[:at]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1

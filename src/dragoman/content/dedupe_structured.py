"""Decides whether a result's text already contains its structured content. Pure.

Recognises JSON in one text block, the bare value of an object with one member such as `{"result": …}`, and
one block per element. Large values are compared as received, ignoring white space and without decoding.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from dragoman.content.sources import Source
from dragoman.wire.codec import DECODE_ERRORS

COMPARED_LIMIT: Final = 256 * 1024
"""The maximum length of text that is decoded for the comparison, in characters."""
_BLANKS: Final = b" \t\r\n"
_WRAPPER = re.compile(rb'\{"[^"\\]{0,200}":')


def is_in_texts(structured: Any, texts: Sequence[str]) -> bool:
    """Whether one of the texts, or all of them together, have the same content."""
    inner = _unwrapped(structured)
    if isinstance(inner, list):
        elements = cast("list[Any]", inner)
        if len(elements) == len(texts) and all(map(_is_equal, texts, elements)):
            return True
    return any(
        _is_equal(text, structured) or (inner is not structured and _is_equal(text, inner)) for text in texts
    )


def is_in_large_texts(structured: Source, texts: Sequence[Source]) -> bool:
    """Like `is_in_texts`, for values that are too large to be decoded."""
    near = [text for text in texts if text.most_bytes >= structured.most_bytes // 2]
    if not near:
        return False
    wanted = _digests(structured.pieces())
    return any(_digest(text.pieces()) in wanted for text in near)


def _is_equal(text: str, value: Any) -> bool:
    if isinstance(value, str) and text == value:
        return True
    if len(text) > COMPARED_LIMIT or not text or not _may_be_json(text, value):
        return False
    try:
        return bool(msgspec.json.decode(text) == value)
    except (*DECODE_ERRORS, UnicodeEncodeError):
        return False


def _may_be_json(text: str, value: Any) -> bool:
    """Whether the text may be JSON: the first character excludes most texts."""
    first = text.lstrip()[:1]
    if isinstance(value, dict):
        return first == "{"
    return first == "[" if isinstance(value, list) else first not in "{["


def _unwrapped(structured: Any) -> Any:
    if isinstance(structured, dict):
        members = cast("dict[str, Any]", structured)
        if len(members) == 1:
            return next(iter(members.values()))
    return cast("Any", structured)


def _digest(pieces: Iterable[bytes]) -> bytes:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece.translate(None, _BLANKS))
    return found.digest()


def _digests(pieces: Iterable[bytes]) -> set[bytes]:
    """The digest of the whole value, and of the wrapped value if it is a wrapper."""
    whole, inner = hashlib.sha256(), hashlib.sha256()
    held, opening, is_first = b"", None, True
    for piece in pieces:
        piece = piece.translate(None, _BLANKS)
        whole.update(piece)
        if is_first:
            is_first, opening = False, _WRAPPER.match(piece)
            piece = piece[opening.end() :] if opening else piece
        # The last bracket is the wrapper's, so the last byte is held back.
        held += piece
        inner.update(held[:-1])
        held = held[-1:]
    return {whole.digest(), inner.digest()} if opening else {whole.digest()}

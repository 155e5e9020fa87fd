r"""Replaces lone surrogates: their escapes in JSON text, which msgspec refuses and other parsers accept, and
those in Python strings, which cannot be sent or written.

JavaScript writes half of an emoji as `"\ud83d"` when it cuts a string in the middle of one. Each such escape
becomes `\ufffd`, which has the same length: every other byte stays where it was. Linear in the size of the
text, and bounded in the number of escapes.
"""

from __future__ import annotations

import re
from typing import Final, cast

from msgspec import Raw

ESCAPE_LIMIT: Final = 50_000
"""The limit of surrogate escapes that are examined in one message: about 50 ms. A message with more is
unchanged."""

PAIR_LIMIT: Final = 100_000
"""The limit of surrogate pairs that are skipped in one message: about 50 ms as well."""

OPAQUE_KEYS: Final = (b'"requestState"', b'"nextCursor"')
"""Members of results that are sent back to the server exactly as it wrote them."""

_SURROGATES: Final = re.compile(
    rb"\\u[dD](?:([89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|[89a-fA-F][0-9a-fA-F]{2})"
)
"""A pair, or one half. Both begin with the same letters, which makes the search about 40 times as fast."""
_REPLACEMENT: Final = rb"\ufffd"


def replace_lone_surrogates(data: bytes) -> bytes | None:
    """The text without lone surrogates; None if there are none, or if there are too many escapes to
    examine."""
    lone = _lone_surrogates(data)
    if not lone:
        return None
    replaced = bytearray(data)
    for at in lone:
        replaced[at : at + len(_REPLACEMENT)] = _REPLACEMENT
    return bytes(replaced)


def _lone_surrogates(data: bytes) -> list[int]:
    lone: list[int] = []
    singles = pairs = 0
    for found in _SURROGATES.finditer(data):
        at, is_pair = found.start(), found[1] is not None
        pairs += is_pair
        singles += not is_pair
        if singles > ESCAPE_LIMIT or pairs > PAIR_LIMIT:
            return []
        is_escaped = data[at - 1 : at] == b"\\" and _is_escaped(data, at)
        if is_pair and is_escaped:
            lone.append(at + len(_REPLACEMENT))  # only its second half is an escape
        elif not is_pair and not is_escaped:
            lone.append(at)
    return lone


def _is_escaped(data: bytes, at: int) -> bool:
    """Whether the backslash here is the second of an escaped backslash."""
    size = 64
    while True:
        before = data[max(0, at - size) : at]
        run = len(before) - len(before.rstrip(b"\\"))
        if run < len(before) or size >= at:
            return run % 2 == 1
        size *= 8


def joined(text: str) -> str:
    """The text with each surrogate pair joined to its character, and each lone surrogate replaced by U+FFFD:
    a model may have sent the halves in two pieces."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class RepairedResult(bytes):
    """A result whose lone surrogates were replaced, with the original text."""

    original: bytes


def as_written(part: bytes, original: bytes, repaired: bytes) -> bytes:
    """The original of a part of the repaired text."""
    at = repaired.find(part)
    return original[at : at + len(part)] if at >= 0 else part


def keep_original(result: Raw, original: bytes, repaired: bytes) -> Raw:
    """The result of a repaired message; `exactly` finds in it the original of members that are sent back."""
    if not any(key in repaired for key in OPAQUE_KEYS):
        return result
    kept = RepairedResult(result)
    kept.original = as_written(kept, original, repaired)
    return cast("Raw", kept)


def exactly(result: Raw, key: str, value: Raw) -> Raw:
    """A member of a result as the server wrote it; `value` is the member as it was decoded."""
    if not isinstance(cast("object", result), RepairedResult):
        return value
    repaired, text = cast("RepairedResult", result), bytes(value)
    for found in re.finditer(rb'"%b"\s*:\s*' % re.escape(key.encode()), repaired):
        if repaired.startswith(text, found.end()):
            return Raw(repaired.original[found.end() : found.end() + len(text)])
    return value

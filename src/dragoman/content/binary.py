"""Decodes base64 from servers piece by piece. Pure. Strict, except for line breaks, which many encoders
insert.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator


class NotBase64(ValueError):
    """It is not valid base64."""


def from_base64(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The data of text in pieces. `NotBase64` as soon as it is clear that it is none."""
    rest, has_ended = b"", False
    for piece in pieces:
        rest += piece.translate(None, b"\r\n")
        whole = len(rest) - len(rest) % 4
        if not whole:
            continue
        if has_ended:
            raise NotBase64("data goes on after its end")
        try:
            data = binascii.a2b_base64(rest[:whole], strict_mode=True)
        except binascii.Error as error:
            raise NotBase64(str(error)) from None
        has_ended = rest[whole - 1 : whole] == b"="
        rest = rest[whole:]
        yield data
    if rest:
        raise NotBase64("it is cut off")

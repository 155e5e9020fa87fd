"""Escapes control characters and invisible characters in all output to a terminal.

Commands escape text of servers and files themselves; this module covers omissions. Colours are not escaped.
Code that moves the cursor escapes its texts itself and writes to the inner stream (`unescaped`).
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Final, TextIO

from dragoman.cleaning import is_plain, visible

_COLOURS: Final = re.compile(r"(\x1b\[[0-9;]*m)")


class EscapingStream:
    """A text stream that escapes what is written; everything but `write` is delegated to the inner stream."""

    def __init__(self, stream: TextIO) -> None:
        self.unescaped = stream

    def write(self, text: str) -> int:
        if isinstance(text, str) and not is_plain(text):  # pyright: ignore[reportUnnecessaryIsInstance]
            parts = _COLOURS.split(text)
            text = "".join(part if place % 2 else visible(part) for place, part in enumerate(parts))
        return self.unescaped.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unescaped, name)


def escape_output() -> None:
    """Replaces standard output and standard error by escaping streams, each if it is a terminal."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            setattr(sys, name, EscapingStream(stream))


def is_animated(stream: TextIO) -> bool:
    """Whether it is a terminal on which a line can be replaced."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def unescaped(stream: TextIO) -> TextIO:
    """The inner stream of an escaping stream; any other stream unchanged."""
    return stream.unescaped if isinstance(stream, EscapingStream) else stream

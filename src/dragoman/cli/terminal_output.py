"""What the command writes to a terminal. What could control the terminal, or a person cannot see, is escaped.

Commands escape text of servers and files where they lay it out; this covers what one of them leaves out.
Colours pass. Code that moves the cursor escapes its own texts, and writes to the stream inside (`unescaped`).
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final, TextIO

from dragoman.cleaning import is_plain, visible

_COLOURS: Final = re.compile(r"(\x1b\[[0-9;]*m)")


class EscapingStream:
    """A text stream; everything but `write` is the stream inside."""

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
    """Standard output and standard error from now on, each if it is a terminal."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            setattr(sys, name, EscapingStream(stream))


def unescaped(stream: TextIO) -> TextIO:
    """The stream inside, if there is one."""
    return stream.unescaped if isinstance(stream, EscapingStream) else stream

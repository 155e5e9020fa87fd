"""Text in columns: how wide it is on a terminal, cut and filled to fit."""

from __future__ import annotations

import shutil
import sys
import unicodedata


def width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere and nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def cells(text: str) -> int:
    """How many columns a text takes: signs of East Asia and emoji take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def fitted(text: str, room: int | None) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis."""
    if room is None or cells(text) <= room:
        return text
    taken, end = 0, 0
    for end, character in enumerate(text):  # noqa: B007
        taken += _cells_of(character)
        if taken > room - 1:
            break
    return text[:end] + "…"


def filled(text: str, room: int) -> str:
    """The text, with blanks up to so many columns."""
    return text + " " * (room - cells(text))


def _cells_of(character: str) -> int:
    if unicodedata.combining(character) or character == "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

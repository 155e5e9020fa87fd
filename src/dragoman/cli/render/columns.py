"""Text in columns: how wide it is on a terminal, cut, wrapped and filled to fit.

I guarantee: the first column of a table is never cut, for it is what a person types next. Where it leaves no
room for the others, they go to a line of their own.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import click

LEAST_ROOM: Final = 20
"""Columns below which a description is not worth beginning."""
RAGGED: Final = 4
"""Where more than one row in so many needs two lines, all of them get two."""
GAP: Final = "  "


class Row(NamedTuple):
    """One row of a table; its texts are safe for a terminal."""

    typed: str
    fact: str = ""
    about: str = ""
    mark: str = ""
    colour: str | None = None
    """Of the mark."""


def width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere and nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    rows: Sequence[Row], columns: int | None, *, indent: str = GAP, whole: bool = False
) -> Iterator[list[str]]:
    """The lines of each row. Descriptions are cut to fit, or wrapped if they are to be shown `whole`."""
    facts = max((cells(row.fact) for row in rows), default=0)
    marks = max((cells(row.mark) + 1 for row in rows if row.mark), default=0)
    fixed = len(indent) + marks + len(GAP) + (facts and facts + len(GAP))
    most = None if columns is None else columns - fixed - LEAST_ROOM
    if most is not None and sum(cells(row.typed) > most for row in rows) * RAGGED > len(rows):
        most = -1
    widths = (cells(row.typed) for row in rows)
    names = max((each for each in widths if most is None or each <= most), default=0)
    aside, below = " " * (fixed + names), indent + " " * marks + GAP
    for row in rows:
        start = f"{indent}{_marked(row)}"
        if most is not None and cells(row.typed) > most:
            rest = " · ".join(filter(None, (row.fact.strip(), row.about)))
            yield [start + _styled(row.typed), *_block(rest, columns, below, whole=whole)]
            continue
        typed = filled(row.typed, names) if row.fact or row.about else row.typed
        fact = f"{GAP}{filled(row.fact, facts)}" if facts else ""
        first, *more = _block(row.about, columns, aside, whole=whole) or [aside]
        yield [f"{start}{_styled(typed)}{fact}{GAP}{first[len(aside) :]}".rstrip(), *more]


def _block(text: str, columns: int | None, indent: str, *, whole: bool) -> list[str]:
    room = None if columns is None else max(LEAST_ROOM, columns - len(indent))
    if not text:
        return []
    lines = wrapped(text, room) if whole else [fitted(text, room)]
    return [indent + line for line in lines]


def _marked(row: Row) -> str:
    return f"{click.style(row.mark, fg=row.colour)} " if row.mark else ""


def _styled(typed: str) -> str:
    return click.style(typed, fg="cyan")


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
    return text[:end].rstrip() + "…"


def wrapped(text: str, room: int | None) -> list[str]:
    """The text in lines that fit, broken between words; later lines begin where the first does.

    A word that is too long for any line stays whole, so that it can be copied.
    """
    if room is None or cells(text) <= room:
        return [text]
    indent = text[: len(text) - len(text.lstrip(" "))]
    lines: list[str] = []
    line = ""
    taken = 0
    for word in text.split():
        size = cells(word)
        if line and taken + 1 + size > room:
            lines.append(line)
            line = ""
        line, taken = (f"{line} {word}", taken + 1 + size) if line else (indent + word, len(indent) + size)
    return [*lines, line]


def filled(text: str, room: int) -> str:
    """The text, with blanks up to so many columns."""
    return text + " " * (room - cells(text))


_JOINED_JAMO: Final = range(0x1160, 0x1200)
"""Vowels and finals of Korean syllables written in parts: they stand in the columns of the first part."""


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or ord(character) in _JOINED_JAMO:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1

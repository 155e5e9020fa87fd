"""Text in columns: its width on a terminal, and cutting, wrapping and padding it to fit.

The first column of a table is never cut, because people copy it into the next command. If it leaves no room
for the other columns, they are printed on separate lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

import click

LEAST_ROOM: Final = 20
"""The fewest columns for a description beside the first column."""
TWO_LINE_RATIO: Final = 4
"""If more than one of this many rows needs two lines, every row gets two lines."""
GAP: Final = "  "


class TableRow(NamedTuple):
    """One row of a table; its texts are safe for a terminal."""

    typed: str
    """The first column: a name that people type or copy."""
    fact: str = ""
    """A short text in a column of its own."""
    about: str = ""
    """The description."""
    mark: str = ""
    colour: str | None = None
    """The colour of the mark."""
    suffix: str = ""
    """Text after the first column, such as a tool's parameters; cut where there is no room for it."""


USUAL_COLUMNS: Final = 80
"""The width if no terminal reports one."""
COLUMNS: ContextVar[int | None] = ContextVar("columns", default=None)
"""The width of the terminal of another process, for which the output is rendered."""


def width(*, full: bool = False) -> int | None:
    """The columns of the terminal, also if the output is piped; None for `full` lines in a pipe or file."""
    return None if full and not sys.stdout.isatty() else terminal_columns()


def terminal_columns() -> int:
    """The columns from the variable COLUMNS or from the first standard stream that is a terminal."""
    if (given := COLUMNS.get()) is not None:
        return given
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    for descriptor in (1, 2, 0):
        try:
            return os.get_terminal_size(descriptor).columns or USUAL_COLUMNS
        except OSError:
            continue
    return USUAL_COLUMNS


def table(
    rows: Sequence[TableRow], columns: int | None, *, indent: str = GAP, full: bool = False
) -> Iterator[list[str]]:
    """The lines of each row. Descriptions are cut to fit, or wrapped if they are to be shown `full`."""
    facts = max((cells(row.fact) for row in rows), default=0)
    marks = max((cells(row.mark) + 1 for row in rows if row.mark), default=0)
    fixed = len(indent) + marks + len(GAP) + (facts and facts + len(GAP))
    most = None if columns is None else columns - fixed - LEAST_ROOM
    if columns is not None and most is not None and any(row.suffix for row in rows):
        most = min(most, columns // 2)
    sizes = [cells(row.typed + row.suffix) for row in rows]
    if most is not None and sum(size > most for size in sizes) * TWO_LINE_RATIO > len(rows):
        most = -1
    widths = iter(sizes)
    names = max((each for each in widths if most is None or each <= most), default=0)
    aside, below = " " * (fixed + names), indent + " " * marks + GAP
    for row, size in zip(rows, sizes):
        start = f"{indent}{click.style(row.mark, fg=row.colour)} " if row.mark else indent
        if most is not None and size > most:
            rest = " · ".join(filter(None, (row.fact.strip(), row.about)))
            yield [
                *_first_column(row, start, columns, below, full=full),
                *_block(rest, columns, below, full=full),
            ]
            continue
        blanks = " " * (names - size) if row.fact or row.about else ""
        fact = f"{GAP}{padded(row.fact, facts)}" if facts else ""
        first, *more = _block(row.about, columns, aside, full=full) or [aside]
        typed = f"{_styled(row.typed)}{_dim(row.suffix)}{blanks}"
        yield [f"{start}{typed}{fact}{GAP}{first[len(aside) :]}".rstrip(), *more]


def _first_column(row: TableRow, start: str, columns: int | None, below: str, *, full: bool) -> list[str]:
    """The first column on a separate line, with as much of the suffix as fits, or with all of it below."""
    taken = len(below) - len(GAP) + cells(row.typed)
    room = None if columns is None else max(1, columns - taken)
    if full and room is not None and cells(row.suffix) > room:
        return [start + _styled(row.typed), *map(_dim, _block(row.suffix, columns, below, full=True))]
    suffix = "" if room == 1 else fitted(row.suffix, room)
    return [start + _styled(row.typed) + _dim(suffix)]


def _block(text: str, columns: int | None, indent: str, *, full: bool) -> list[str]:
    room = None if columns is None else max(LEAST_ROOM, columns - len(indent))
    if not text:
        return []
    lines = wrapped(text, room) if full else [fitted(text, room)]
    return [indent + line for line in lines]


def _styled(typed: str) -> str:
    return click.style(typed, fg="cyan")


def _dim(text: str) -> str:
    return click.style(text, dim=True) if text else ""


def cells(text: str) -> int:
    """The number of columns that the text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # imported when needed: its tables load slowly

    return cell_len(text)


def chopped(text: str, room: int) -> list[str]:
    """The whole text in pieces of at most `room` columns."""
    if text.isascii():
        return [text[at : at + room] for at in range(0, len(text), room)] or [""]
    from rich.cells import chop_cells

    return chop_cells(text, room) or [text]  # chop_cells returns no piece for text without width


def broken_lines(text: str, room: int) -> list[str]:
    """The whole text in pieces of at most `room` columns.

    A line is broken after a blank, if there is one in its second half.
    """
    pieces: list[str] = []
    while len(text) > room or cells(text) > room:
        head = text[:room]
        piece = head if cells(head) <= room else chopped(head, room)[0] or text[:1]
        end = piece.rfind(" ") + 1
        pieces.append(piece[:end] if end > len(piece) // 2 else piece)
        text = text[len(pieces[-1]) :]
    return [*pieces, text]


def fitted(text: str, room: int | None) -> str:
    """The text, or the beginning that fits with an ellipsis."""
    if room is None or cells(text) <= room:
        return text
    return (chopped(text, room - 1)[0].rstrip() if room > 1 else "") + "…"


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


def echo_wrapped(
    text: str, *, label: str = "", colour: str | None = None, err: bool = False, **style: Any
) -> None:
    """Prints sentences after a label of this colour.

    On a terminal, lines are wrapped and indented by the width of the label.
    """
    room = terminal_columns() - 1 if (sys.stderr if err else sys.stdout).isatty() else None
    indent = " " * (len(label) - len(label.lstrip(" ")))
    for line in text.split("\n"):
        for part in wrapped(f"{label or indent}{line}", room):
            begin = click.style(part[: len(label)], fg=colour, bold=True)
            click.echo(begin + click.style(part[len(label) :], **style), err=err)
            label = ""


def wrapped_styled(parts: Sequence[str], room: int | None) -> list[str]:
    """The styled parts, separated by blanks, in lines that fit and are broken between words."""
    if room is None:
        return [" ".join(parts)]
    from rich.console import Console
    from rich.text import Text

    text = Text.from_ansi(" ".join(parts))
    console = Console(width=room, color_system=None)
    whole = [line.plain.rstrip() for line in text.wrap(console, room)]
    if len(whole) == 1:
        return [" ".join(parts)]
    colour = Console(width=room, force_terminal=True, color_system="standard", highlight=False)
    lines: list[str] = []
    for line in text.wrap(console, room):
        line.rstrip()
        with colour.capture() as captured:
            colour.print(line, end="", soft_wrap=True)
        lines.append(captured.get())
    return lines


def padded(text: str, room: int) -> str:
    """The text, padded with blanks to this many columns."""
    return text + " " * (room - cells(text))

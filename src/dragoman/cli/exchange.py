"""What `import` and `export` have in common: the host's name, the choice of servers, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from dragoman.cleaning import one_line
from dragoman.cli.render.columns import echo_wrapped
from dragoman.config.interchange.formats import FORMATS
from dragoman.config.interchange.shared import Note

F = TypeVar("F", bound=Callable[..., Any])


def format_argument(function: F) -> F:
    return click.argument("host", type=click.Choice(list(FORMATS)))(function)


def name_option(function: F) -> F:
    return click.option("--name", "names", multiple=True, help="Only this server. Repeatable.")(function)


def show_notes(notes: Iterable[Note]) -> None:
    """What did not carry over, on stderr."""
    for note in notes:
        where = ": ".join(one_line(part) for part in (note.server, note.field) if part)
        text = f"{where}: {note.text}" if where else note.text
        echo_wrapped(one_line(text), label="  ! ", colour="yellow", err=True)

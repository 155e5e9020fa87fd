"""What all questions in a terminal have in common: text that cannot look like a line of the question itself,
and an answer by a single key.

Keys that were typed before the question appeared do not count.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Final

import click

from dragoman.cli import keys
from dragoman.cli.render.columns import broken, terminal_columns

SHOWN_CHARACTERS: Final = 400
"""Of one value, before the person asks for all of it."""
SHOWN_LINES: Final = 20
"""Values, before the person asks for all of them."""


def cut(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… [{len(text)} characters in all]"


def indented(text: str, indent: int) -> str:
    """The text in lines that fit, none of which begins to the left of the first.

    A line that the terminal itself had to break would begin where ours do, and could look like one of them.
    """
    return f"\n{' ' * indent}".join(broken(text, max(20, columns() - indent - 1)))


def columns() -> int:
    """Of the terminal that questions are written to; a variable such as COLUMNS does not count here."""
    try:
        return os.get_terminal_size(2).columns or terminal_columns()
    except OSError:
        return terminal_columns()


async def ask_key(meanings: Mapping[str, str], otherwise: str = keys.NO) -> str:
    """The key that was pressed; `otherwise` for Ctrl-D, Escape and the end of input. Ctrl-C
    interrupts the command."""
    with keys.single_keys() as descriptor:
        click.echo(f"  {'/'.join(meanings)}: ", nl=False, err=True)
        key = await keys.key_of(descriptor, meanings, otherwise)
    click.echo(key, err=True)
    return key


def show_keys(meanings: Mapping[str, str]) -> None:
    for key, meaning in meanings.items():
        lines = f"\n{' ' * 7}".join(indented(line, 9) for line in meaning.split("\n"))
        click.echo(f"    {click.style(key, bold=True)}  {lines}", err=True)


def confirmed(question: str) -> bool:
    """A plain question, answered by a key as all others."""
    click.echo(f"\n{click.style('?', fg='yellow', bold=True)} {indented(question, 2)}", err=True)
    meanings = {"y": "yes", "n": "no"}
    show_keys(meanings)
    return asyncio.run(ask_key(meanings)) == "y"

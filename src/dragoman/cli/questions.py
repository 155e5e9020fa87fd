"""What all questions in a terminal have in common: text that cannot look like a line of the question itself,
and an answer by a single key.

Keys that were typed before the question appeared do not count.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import click

from dragoman.cli import keys
from dragoman.cli.render.columns import cells

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
    return f"\n{' ' * indent}".join(_broken(text, max(20, columns() - indent - 1)))


def _broken(text: str, room: int) -> Iterator[str]:
    """Lines of so many columns, with every character of the text."""
    if text.isascii():
        yield from [text[at : at + room] for at in range(0, len(text), room)] or [""]
        return
    start, taken = 0, 0
    for at, character in enumerate(text):
        taken += (size := cells(character))
        if taken > room:
            yield text[start:at]
            start, taken = at, size
    yield text[start:]


def columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


async def ask_key(meanings: Mapping[str, str], otherwise: str = keys.NO) -> str:
    """The key that was pressed; `otherwise` for Ctrl-C, Ctrl-D, Escape and the end of input."""
    with keys.single_keys() as descriptor:
        click.echo(f"  {'/'.join(meanings)}: ", nl=False, err=True)
        key = await keys.key_of(descriptor, meanings, otherwise)
    click.echo(key, err=True)
    return key


def show_keys(meanings: Mapping[str, str]) -> None:
    for key, meaning in meanings.items():
        click.echo(f"    {click.style(key, bold=True)}  {meaning}", err=True)

"""Reads keys and lines that a person types, and shows text of questions in a terminal.

The mode of the terminal is restored whatever happens, and waiting for a person can be cancelled at once. Keys
that were typed before the question appeared do not count. Ctrl-D, Escape and the end of input are a no;
Ctrl-C interrupts the command. Text is shown so that no part of it can look like a line of the question.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import select
import sys
from collections.abc import Container, Generator, Mapping
from typing import Any, Final

import click

try:
    import termios
except ImportError:  # Windows: no question can be answered there yet
    termios = None

from dragoman.cli.render.columns import broken, terminal_columns
from dragoman.private_files import CLOSE_ON_EXEC

SHOWN_CHARACTERS: Final = 400
"""How many characters of one value are shown before the person asks for all of it."""
SHOWN_LINES: Final = 20
"""Values, before the person asks for all of them."""
NO: Final = "n"
_NO_BYTES: Final = (b"", b"\x04", b"\x1b")


PLAIN: Final = "DRAGOMAN_PLAIN"
"""The variable that asks for plain prompts, for screen readers and scripts that type."""


def is_interactive() -> bool:
    """Whether there is a person who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def has_screen() -> bool:
    """Whether questions can be shown on a screen with fields to move between: the terminal can move its
    cursor, the extra `agent` is installed, and the person does not want plain prompts."""
    is_plain = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get(PLAIN))
    return is_interactive() and not is_plain and importlib.util.find_spec("textual") is not None


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


async def ask_key(meanings: Mapping[str, str], otherwise: str = NO) -> str:
    """The key that was pressed; `otherwise` for Ctrl-D, Escape and the end of input. Ctrl-C
    interrupts the command."""
    with single_key_mode() as descriptor:
        click.echo(f"  {'/'.join(meanings)}: ", nl=False, err=True)
        key = await read_key(descriptor, meanings, otherwise)
    click.echo(key, err=True)
    return key


def show_keys(meanings: Mapping[str, str]) -> None:
    for key, meaning in meanings.items():
        lines = f"\n{' ' * 7}".join(indented(line, 9) for line in meaning.split("\n"))
        click.echo(f"    {click.style(key, bold=True)}  {lines}", err=True)


def confirm(question: str) -> bool:
    """A plain question, answered by a key as all others."""
    click.echo(f"\n{click.style('?', fg='yellow', bold=True)} {indented(question, 2)}", err=True)
    meanings = {"y": "yes", "n": "no"}
    show_keys(meanings)
    return asyncio.run(ask_key(meanings)) == "y"


@contextlib.contextmanager
def single_key_mode() -> Generator[int | None]:
    """A descriptor from which each key comes at once and unechoed; None if there is no terminal.

    Unlike in raw mode, what others print meanwhile begins at the left.
    """
    with _terminal() as descriptor:
        if descriptor is None or termios is None:
            yield None
            return
        before = termios.tcgetattr(descriptor)
        changed: list[Any] = [*before[:6], list(before[6])]
        changed[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
        # Ctrl-Z and Ctrl-\ would leave the terminal without echo.
        unused = bytes([os.fpathconf(descriptor, "PC_VDISABLE") & 0xFF])
        changed[6][termios.VSUSP] = changed[6][termios.VQUIT] = unused
        try:
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, changed)
            yield descriptor
        finally:
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _terminal() -> Generator[int | None]:
    if termios is None:
        yield None
        return
    if sys.stdin.isatty():
        yield sys.stdin.fileno()
        return
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | CLOSE_ON_EXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def read_key(descriptor: int | None, keys: Container[str], otherwise: str = NO) -> str:
    """The next key that is one of `keys`, in any case; `otherwise` where the person gives up answering."""
    while True:
        typed = b"" if descriptor is None else await _read_typed(descriptor)
        if typed[:1] in _NO_BYTES:
            return otherwise
        key = typed[:1].decode("ascii", "replace").lower()
        if key in keys:
            return key


async def read_line() -> str:
    """A line, as the terminal itself lets it be edited; empty at the end of input."""
    return await read_answer() or ""


async def read_answer() -> str | None:
    """Like `read_line`; None at the end of input (Ctrl-D)."""
    with _terminal() as descriptor:
        typed = b"" if descriptor is None else await _read_typed(descriptor)
    return typed.decode(errors="replace").strip() if typed else None


def quoted(text: str) -> str:
    """What is safe to show, in quotes that it cannot close."""
    return '"' + text.replace('"', '\\"') + '"'


async def _read_typed(descriptor: int) -> bytes:
    """What is typed next; nothing at the end of input.

    A thread that reads would wait for a key although it is not wanted any more, and keep the program from
    ending. This one waits for a pipe as well.
    """
    ours, theirs = os.pipe()
    waiting = asyncio.get_running_loop().run_in_executor(None, _wait_for_any, descriptor, ours)

    def put_away(_: object) -> None:
        os.close(ours)
        os.close(theirs)

    waiting.add_done_callback(put_away)
    try:
        await asyncio.shield(waiting)
        return os.read(descriptor, 4096)
    except OSError:  # how some systems say that a terminal is gone
        return b""
    finally:
        if not waiting.done():
            os.write(theirs, b".")


def _wait_for_any(*descriptors: int) -> None:
    select.select(descriptors, (), ())

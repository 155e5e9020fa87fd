"""Reads keys and lines that a person types, and shows text of questions in a terminal.

The mode of the terminal is always restored, and waiting for a person can be cancelled. Keys that were typed
before the question appeared are dropped. Ctrl-D, Escape and the end of input mean no; Ctrl-C interrupts the
command. Text is indented, so that no part of it can look like a line of the question.
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
except ImportError:  # Windows: questions are not supported there
    termios = None

from dragoman.cli.render.columns import broken_lines, terminal_columns
from dragoman.private_files import CLOSE_ON_EXEC

SHOWN_CHARACTERS: Final = 400
"""The most characters of one value that are shown at first."""
SHOWN_LINES: Final = 20
"""The most values that are shown at first."""
NO: Final = "n"
_NO_BYTES: Final = (b"", b"\x04", b"\x1b")


PLAIN: Final = "DRAGOMAN_PLAIN"
"""The environment variable that selects plain prompts, for screen readers and scripts."""


def is_interactive() -> bool:
    """Whether a person can be asked: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def has_screen() -> bool:
    """Whether questions can be shown on a separate screen: the terminal can move its cursor, the extra
    `agent` is installed, and the person has not chosen plain prompts."""
    is_plain = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get(PLAIN))
    return is_interactive() and not is_plain and importlib.util.find_spec("textual") is not None


def cut(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… [{len(text)} characters in all]"


def indented(text: str, indent: int) -> str:
    """The text in lines that fit, none of which begins to the left of the first.

    A line that the terminal breaks would begin in the first column, and could look like a line of the
    question.
    """
    return f"\n{' ' * indent}".join(broken_lines(text, max(20, columns() - indent - 1)))


def columns() -> int:
    """The columns of the terminal that questions are written to; the variable COLUMNS is ignored."""
    try:
        return os.get_terminal_size(2).columns or terminal_columns()
    except OSError:
        return terminal_columns()


async def ask_key(meanings: Mapping[str, str], otherwise: str = NO) -> str:
    """The key that was pressed; `otherwise` for Ctrl-D, Escape and the end of input."""
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
    """Asks a question that is answered with y or n."""
    click.echo(f"\n{click.style('?', fg='yellow', bold=True)} {indented(question, 2)}", err=True)
    meanings = {"y": "yes", "n": "no"}
    show_keys(meanings)
    return asyncio.run(ask_key(meanings)) == "y"


@contextlib.contextmanager
def single_key_mode() -> Generator[int | None]:
    """A descriptor that delivers each key at once and without echo; None if there is no terminal.

    Unlike in raw mode, lines that other code prints meanwhile begin in the first column.
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
            with contextlib.suppress(termios.error):  # the terminal was closed
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
    """The next key of `keys`, in any case; `otherwise` for Ctrl-D, Escape and the end of input."""
    while True:
        typed = b"" if descriptor is None else await _read_typed(descriptor)
        if typed[:1] in _NO_BYTES:
            return otherwise
        key = typed[:1].decode("ascii", "replace").lower()
        if key in keys:
            return key


def drop_typed() -> None:
    """Drops what was typed before a question appeared."""
    with _terminal() as descriptor:
        if descriptor is not None and termios is not None:
            with contextlib.suppress(termios.error):  # the terminal was closed
                termios.tcflush(descriptor, termios.TCIFLUSH)


async def read_line() -> str:
    """Reads a line, which the terminal lets the person edit; empty at the end of input."""
    return await read_answer() or ""


async def read_answer() -> str | None:
    """Like `read_line`; None at the end of input (Ctrl-D)."""
    with _terminal() as descriptor:
        typed = b"" if descriptor is None else await _read_typed(descriptor)
    return typed.decode(errors="replace").strip() if typed else None


def quoted(text: str) -> str:
    """The text in quotes that it cannot close."""
    return '"' + text.replace('"', '\\"') + '"'


async def _read_typed(descriptor: int) -> bytes:
    """Reads the next input; empty at the end of input.

    A thread that only reads would wait for a key after cancellation, and keep the program from ending. The
    thread that is started here also waits for a pipe, which ends the wait.
    """
    ours, theirs = os.pipe()
    waiting = asyncio.get_running_loop().run_in_executor(None, _wait_for_any, descriptor, ours)

    def close_pipe(_: object) -> None:
        os.close(ours)
        os.close(theirs)

    waiting.add_done_callback(close_pipe)
    try:
        await asyncio.shield(waiting)
        return os.read(descriptor, 4096)
    except OSError:  # the error of some systems for a closed terminal
        return b""
    finally:
        if not waiting.done():
            os.write(theirs, b".")


def _wait_for_any(*descriptors: int) -> None:
    select.select(descriptors, (), ())

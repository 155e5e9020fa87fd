"""Keys and lines that a person types while the program goes on.

The terminal's way of reading is restored whatever happens, and waiting for a person can be given up at once.
What was typed before a question could be seen is not its answer. Ctrl-D, Escape and the end of input are a
no; Ctrl-C interrupts the command as it does everywhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from collections.abc import Container, Generator
from typing import Any, Final

try:
    import termios
except ImportError:  # Windows: no question can be answered there yet
    termios = None

from dragoman.private_files import CLOSE_ON_EXEC

NO: Final = "n"
_NO_BYTES: Final = (b"", b"\x04", b"\x1b")


@contextlib.contextmanager
def single_keys() -> Generator[int | None]:
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


async def key_of(descriptor: int | None, keys: Container[str], otherwise: str = NO) -> str:
    """The next key that is one of `keys`, in any case; `otherwise` where the person gives up answering."""
    while True:
        typed = b"" if descriptor is None else await _typed(descriptor)
        if typed[:1] in _NO_BYTES:
            return otherwise
        key = typed[:1].decode("ascii", "replace").lower()
        if key in keys:
            return key


async def line() -> str:
    """A line, as the terminal itself lets it be edited."""
    with _terminal() as descriptor:
        typed = b"" if descriptor is None else await _typed(descriptor)
    return typed.decode(errors="replace").strip()


async def _typed(descriptor: int) -> bytes:
    """What is typed next; nothing at the end of input.

    A thread that reads would wait for a key although nobody wants it any more, and keep the program from
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

"""Renders the output of a command for the terminal of another process."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct

from dragoman.cli.render.columns import COLUMNS


class Screen(Struct, frozen=True):
    """The properties of the terminal of a command, as the command reports them."""

    terminals: tuple[bool, bool] = (False, False)
    """Whether stdout and stderr are terminals."""
    columns: int = 80
    plain: bool = False
    """Whether colours are left out."""
    animated: bool = False
    """Whether progress can be shown."""


Output = list[tuple[bool, str]]
"""Texts in their order; True marks those for stderr."""


class _Stream(io.StringIO):
    def __init__(self, output: Output, *, is_error: bool, is_terminal: bool) -> None:
        super().__init__()
        self._output = output
        self._is_error = is_error
        self._is_terminal = is_terminal

    def write(self, text: str, /) -> int:
        super().write(text)  # raises for bytes: click uses that to detect a text stream
        self._output.append((self._is_error, text))
        return len(text)

    def isatty(self) -> bool:
        return self._is_terminal


def rendered(screen: Screen, show: Callable[[], Any]) -> Output:
    """The output of a function, which must not wait: the streams of this process are replaced."""
    output: Output = []
    out, err = (
        _Stream(output, is_error=is_error, is_terminal=screen.terminals[is_error])
        for is_error in (False, True)
    )
    token = COLUMNS.set(screen.columns)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            click.Context(click.Command("call"), color=False if screen.plain else None),
        ):
            show()
    finally:
        COLUMNS.reset(token)
    return output

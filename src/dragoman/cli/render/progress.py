"""A progress bar on stderr, only where a person watches."""

from __future__ import annotations

import sys
from types import TracebackType

import click

from dragoman.cleaning import one_line
from dragoman.wire.peer import Progress

WIDTH = 28


class ProgressLine:
    def __init__(self, indent: str = "") -> None:
        self._indent = indent
        self._shown = False
        self._watched = sys.stderr.isatty()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            click.echo("\r\x1b[2K", nl=False, err=True)

    def update(self, progress: Progress) -> None:
        if self._watched:
            self._shown = True
            click.echo(f"\r\x1b[2K{self._indent}{bar(progress)}", nl=False, err=True)


def bar(progress: Progress, width: int = WIDTH) -> str:
    message = one_line(progress.message or "", 60)
    if not progress.total or progress.total <= 0:
        return f"{click.style('●', fg='cyan')} {progress.progress:g}  {message}"
    share = min(1.0, max(0.0, progress.progress / progress.total))
    full = round(share * width)
    drawn = click.style("━" * full, fg="cyan") + click.style("━" * (width - full), dim=True)
    return f"{drawn} {share:4.0%}  {message}"

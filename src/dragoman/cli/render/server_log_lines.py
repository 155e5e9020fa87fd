"""Shows and follows the log of one server. Text is cleaned again: other programs can write it."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from dragoman.cleaning import one_line
from dragoman.cli.render.columns import width, wrapped_styled
from dragoman.cli.render.document import ascii_json
from dragoman.connections import server_log
from dragoman.log_files import entries_in, opened
from dragoman.protocol import LogLevel

INDENT: Final = "    "
LOOK_SECONDS: Final = 0.25
_COLOURS: Final = {"notice": "cyan", "warning": "yellow"} | dict.fromkeys(
    ("error", "critical", "alert", "emergency"), "red"
)


def show(server: str, *, last: int, level: LogLevel | None, follow: bool, as_json: bool) -> None:
    path = server_log.path_of(server)
    if not path.exists() and not follow:
        from dragoman.cli.common import find_server, load_and_report

        find_server(load_and_report(), server)
        click.echo(f"No log of {one_line(server)} yet. ({one_line(str(path))})", err=True)
        return
    # Opened before the rest is read, so that a line that is added meanwhile is shown exactly once.
    tail = _Tail(path) if follow else None
    lines = server_log.read(path)
    for line in deque(server_log.at_least(level, lines) if level else lines, maxlen=last):
        _echo(line, as_json)
    while tail is not None:
        lines = tail.new_lines()
        for line in server_log.at_least(level, lines) if level else lines:
            _echo(line, as_json)
        time.sleep(LOOK_SECONDS)


def echo_json(entry: dict[str, Any]) -> None:
    click.echo(ascii_json(entry))


def echo_parts(parts: list[str]) -> None:
    """Prints the parts on one line; on a narrow terminal on several lines, broken between words."""
    columns = width(full=True)
    room = None if columns is None else columns - len(INDENT)
    first, *more = wrapped_styled(parts, room)
    click.echo("\n".join([first, *(f"{INDENT}{line}" for line in more)]))


def _echo(line: dict[str, Any], as_json: bool) -> None:
    if as_json:
        echo_json(line)
    else:
        echo_parts(list(_parts(line)))


def _parts(line: dict[str, Any]) -> Iterator[str]:
    level = str(line.get("level", ""))
    yield click.style(one_line(str(line.get("time", "")), 30), dim=True)
    yield click.style(one_line(level, 10).ljust(7), fg=_COLOURS.get(level))
    yield click.style(one_line(str(line.get("source", "")), 12).ljust(10), dim=True)
    if logger := one_line(str(line.get("logger", "")), 100):
        yield click.style(f"{logger}:", bold=True)
    yield one_line(str(line.get("text", "")), server_log.TEXT_LIMIT)


class _Tail:
    """Reads new lines of a log, also after its file was rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode, self._offset = 0, 0
        with contextlib.ExitStack() as stack:
            for file in self._files(stack)[-1:]:
                status = os.fstat(file.fileno())
                self._inode, self._offset = status.st_ino, status.st_size

    def new_lines(self) -> Iterator[dict[str, Any]]:
        with contextlib.ExitStack() as stack:
            files = self._files(stack)
            inodes = [os.fstat(file.fileno()).st_ino for file in files]
            begin = inodes.index(self._inode) if self._inode in inodes else 0
            for file, inode in zip(files[begin:], inodes[begin:], strict=True):
                yield from self._rest(file, inode)

    def _rest(self, file: BinaryIO, inode: int) -> Iterator[dict[str, Any]]:
        if inode != self._inode or os.fstat(file.fileno()).st_size < self._offset:
            self._inode, self._offset = inode, 0
        file.seek(self._offset)
        whole = file.read().rpartition(b"\n")[0]
        self._offset += len(whole) + 1 if whole else 0
        yield from entries_in(iter(whole.splitlines()))

    def _files(self, stack: contextlib.ExitStack) -> list[BinaryIO]:
        return opened(self._path, server_log.FILES_KEPT, stack)

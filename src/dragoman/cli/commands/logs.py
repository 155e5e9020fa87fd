"""`dragoman logs`: shows and follows the log of one server, or shows the audit log.

Text is cleaned again, because other programs can write the files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import click

from dragoman import paths
from dragoman.calls import audit
from dragoman.cleaning import one_line
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.options import complete_server, json_option
from dragoman.cli.render.columns import width, wrapped_styled
from dragoman.cli.render.document import ascii_json
from dragoman.connections import server_log
from dragoman.errors import ConfigError
from dragoman.interaction import LOCAL_CALLER
from dragoman.log_files import entries_in, opened
from dragoman.names import RESERVED
from dragoman.protocol import LOG_LEVELS, LogLevel

NAMES_SHOWN: Final = 10
_COLOURS = {"allow": "green", "deny": "red"}


@click.command("logs")
@click.argument("server", required=False, shell_complete=complete_server)
@click.option("--audit", "is_audit", is_flag=True, help="Show the audit log; with SERVER, only its calls.")
@click.option(
    "-n", "--last", type=click.IntRange(min=1), default=50, show_default=True, help="How many lines or calls."
)
@click.option(
    "--gateway",
    "settings_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Show the audit log that all replicas of a gateway share. FILE: the --config file of the gateway.",
)
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Print new lines until Ctrl-C; for the log of a server, or with --gateway.",
)
@click.option("--level", type=click.Choice(LOG_LEVELS), help="Only lines of this level and above.")
@click.option("--tool", help="Only calls of tools whose name contains this text.")
@click.option("--denied", is_flag=True, help="Only calls that were not allowed.")
@json_option
def command(
    server: str | None,
    is_audit: bool,
    settings_file: Path | None,
    last: int,
    follow: bool,
    level: LogLevel | None,
    tool: str | None,
    denied: bool,
    as_json: bool,
) -> None:
    """Shows the log of SERVER: its log messages, its stderr, and changes of its connection, oldest first.

    Without SERVER, or with --audit, shows the newest calls. The audit log holds names of arguments, never
    their values. With --gateway, shows the newest calls of all replicas of a gateway. With --json, prints one
    entry per line.
    """
    if server is not None and not is_audit and settings_file is None:
        if tool is not None or denied:
            raise click.UsageError("--tool and --denied are about calls: give --audit with them")
        _show_server_log(server, last=last, level=level, follow=follow, as_json=as_json)
        return
    if level is not None or (follow and settings_file is None):
        raise click.UsageError(
            "--follow and --level are about the log of a server: give its name (or, to follow, --gateway)"
        )
    wanted = partial(_fits, server=server, tool=tool, denied=denied)
    if settings_file is not None:
        asyncio.run(_show_shared(settings_file, wanted, last, follow, as_json))
        return
    where = one_line(str(paths.logs_dir() / audit.FILE))
    _show_last(filter(wanted, audit.read(paths.logs_dir())), last, as_json, where)


def _show_last(found: Iterable[dict[str, Any]], last: int, as_json: bool, where: str) -> None:
    entries = deque(found, maxlen=last)
    _show(entries, as_json)
    if not entries and not as_json:
        click.echo(f"No calls yet. ({where})", err=True)


def _show(entries: Iterable[dict[str, Any]], as_json: bool) -> None:
    for entry in entries:
        _echo(entry, as_json, _call_parts)


async def _show_shared(
    settings_file: Path, wanted: Callable[[dict[str, Any]], bool], last: int, follow: bool, as_json: bool
) -> None:
    """Shows the audit log of all replicas. With `follow`, continues after failures of the store."""
    from dragoman.errors import StoreUnavailable
    from dragoman.gateway.settings_file import read_settings
    from dragoman.gateway.shared_audit import RETRY_SECONDS, SharedEntries
    from dragoman.gateway.store.redis import RedisStore

    entry = read_settings(settings_file).store
    if entry is None:
        raise ConfigError(
            f'{one_line(str(settings_file))} has no "store", so the gateway has no shared audit log',
            hint="`dragoman logs --audit` shows its calls, on the machine on which it runs.",
        )
    store = RedisStore(entry)
    try:
        entries = SharedEntries(store)
        _show_last(filter(wanted, await entries.next()), last, as_json, store.where)
        while follow:
            try:
                _show(filter(wanted, await entries.next(wait=True)), as_json)
            except StoreUnavailable:
                await asyncio.sleep(RETRY_SECONDS)
    finally:
        await store.close()


def _fits(entry: dict[str, Any], *, server: str | None, tool: str | None, denied: bool) -> bool:
    if "missing" in entry:
        return True
    if server is not None and entry.get("server") != server:
        return False
    if denied and entry.get("decision") != "deny":
        return False
    return tool is None or tool in str(entry.get("tool", ""))


def _call_parts(entry: dict[str, Any]) -> Iterator[str]:
    decision, outcome = str(entry.get("decision", "none")), str(entry.get("outcome", ""))
    yield click.style(one_line(str(entry.get("time", "")), 30), dim=True)
    if replica := one_line(str(entry.get("replica", "")), 80):
        yield click.style(replica, fg="cyan")
    if (caller := str(entry.get("caller", LOCAL_CALLER.id))) != LOCAL_CALLER.id:
        yield click.style(one_line(caller, 80), fg="magenta")
    if "missing" in entry:
        yield f"{one_line(str(entry['missing']), 20)} earlier calls are missing: the store did not answer"
        return
    yield click.style(one_line(decision, 10).ljust(5), fg=_COLOURS.get(decision))
    yield click.style(one_line(str(entry.get("tool", "")), 100), bold=True)
    if (server := str(entry.get("server", ""))) and not str(entry.get("tool", "")).startswith(RESERVED):
        yield f"of {one_line(server, 80)}"
    yield f"({', '.join(_names(entry))})"
    yield click.style(one_line(outcome, 40), fg="green" if outcome == "ok" else "red")
    yield f"{one_line(str(entry.get('duration_ms', 0)), 20)} ms"
    if by := one_line(str(entry.get("by", "")), 20):  # empty where the call failed before a decision
        reason = one_line(str(entry.get("reason", "")), 200)
        who, separator, message = reason.partition("by the person")
        is_repeated = by == "person" and who in ("allowed ", "denied ")
        yield click.style(f"{separator}{message}" if is_repeated else f"by {by}: {reason}", dim=True)


def _names(entry: dict[str, Any]) -> Iterator[str]:
    names: Any = entry.get("arguments")
    if isinstance(names, list):
        for name in cast("list[Any]", names)[:NAMES_SHOWN]:
            yield one_line(str(name), 40)
        if len(cast("list[Any]", names)) > NAMES_SHOWN:
            yield "…"


INDENT: Final = "    "
POLL_SECONDS: Final = 0.25
"""The interval between two reads of a log that is followed."""
_LEVEL_COLOURS: Final = {"notice": "cyan", "warning": "yellow"} | dict.fromkeys(
    ("error", "critical", "alert", "emergency"), "red"
)


def _show_server_log(server: str, *, last: int, level: LogLevel | None, follow: bool, as_json: bool) -> None:
    path = server_log.path_of(server)
    if not path.exists() and not follow:
        find_server(load_and_report(), server)
        click.echo(f"No log of {one_line(server)} yet. ({one_line(str(path))})", err=True)
        return
    # Opened before the rest is read, so that a line that is added meanwhile is shown exactly once.
    tail = _Tail(path) if follow else None
    lines = server_log.read(path)
    for line in deque(server_log.at_least(level, lines) if level else lines, maxlen=last):
        _echo(line, as_json, _line_parts)
    while tail is not None:
        lines = tail.new_lines()
        for line in server_log.at_least(level, lines) if level else lines:
            _echo(line, as_json, _line_parts)
        time.sleep(POLL_SECONDS)


def _echo_parts(parts: list[str]) -> None:
    """Prints the parts on one line; on a narrow terminal on several lines, broken between words."""
    columns = width(full=True)
    room = None if columns is None else columns - len(INDENT)
    first, *more = wrapped_styled(parts, room)
    click.echo("\n".join([first, *(f"{INDENT}{line}" for line in more)]))


def _echo(entry: dict[str, Any], as_json: bool, parts: Callable[[dict[str, Any]], Iterator[str]]) -> None:
    if as_json:
        click.echo(ascii_json(entry))
    else:
        _echo_parts(list(parts(entry)))


def _line_parts(line: dict[str, Any]) -> Iterator[str]:
    level = str(line.get("level", ""))
    yield click.style(one_line(str(line.get("time", "")), 30), dim=True)
    yield click.style(one_line(level, 10).ljust(7), fg=_LEVEL_COLOURS.get(level))
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

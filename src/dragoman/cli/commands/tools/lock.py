"""`dragoman tools lock`: records every tool's definition, and shows what changed since."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from msgspec import Struct

from dragoman.catalog import lock
from dragoman.catalog.changes import describe
from dragoman.catalog.tools import Tool
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.common import (
    all_tools,
    list_exit_code,
    load_with_servers,
    run_with_host,
    show_unconnected,
    wait_for_servers,
)
from dragoman.cli.options import json_option, mcp_config_option, server_option
from dragoman.cli.render import json
from dragoman.cli.render.servers import counted
from dragoman.host import Host

COLOURS = {"+": "green", "-": "red"}


class _LockComparison(Struct, frozen=True):
    """The tools in the lock file compared with the tools that servers offer now."""

    path: Path
    is_first: bool
    tool_count: int
    now: lock.Lock
    changes: tuple[lock.Change, ...]
    forgotten: tuple[str, ...]
    """Servers in the lock file that are no longer configured."""

    @property
    def differs(self) -> bool:
        return self.is_first or bool(self.changes or self.forgotten)


@click.command("lock")
@mcp_config_option
@json_option
@server_option
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if anything differs.")
def command(as_json: bool, server: str | None, check: bool) -> None:
    """Writes .mcp.lock at the root of the project, and shows what has changed since it was last written.

    Commit the file: with --frozen, `dragoman tools` and `dragoman call` omit every tool that differs from it.
    Entries of servers that cannot be connected are kept; the exit code is then 4.
    """
    loaded = load_with_servers(server)
    path = loaded.sources.project_root / lock.LOCK_FILE
    before = lock.read_lock(path)
    known = None if loaded.server is not None else list(loaded.configuration.servers)

    async def work(host: Host) -> int:
        views = await wait_for_servers(host, silent=as_json)
        read = [view.name for view in views if view.status == "connected"]
        comparison = _compared(path, before, await _offered(host), read, known)
        is_written = bool(read) and not check
        if is_written and (comparison.differs or comparison.now != before):
            lock.write_lock(path, comparison.now)
        if as_json:
            servers = [json.server(view) for view in views]
            document = {"changes": comparison.changes, "forgotten": comparison.forgotten, "servers": servers}
            json.echo({"file": str(path), "isWritten": is_written, **document})
        else:
            _show(comparison)
            click.echo(_summary(comparison, is_written=is_written, check=check), err=True)
            show_unconnected(views)
        differs = exit_codes.FAILED if check and comparison.differs else exit_codes.OK
        return list_exit_code(loaded.configuration, views, loaded.server) or differs

    sys.exit(run_with_host(loaded.sources, work, only=loaded.only))


async def _offered(host: Host) -> list[object]:
    """The tools, prompts and resource templates that the lock file records."""
    prompts, templates = await host.prompts.list(), await host.resources.templates()
    return [*all_tools(host), *prompts, *templates]


def _compared(
    path: Path, before: lock.Lock, offered: list[object], read: list[str], known: list[str] | None
) -> _LockComparison:
    return _LockComparison(
        path=path,
        is_first=not path.exists(),
        tool_count=sum(isinstance(each, Tool) for each in offered),
        now=lock.updated(before, offered, read=read, known=known),
        changes=lock.compare(before, offered, read=read),
        forgotten=tuple(name for name in before.servers if known is not None and name not in known),
    )


def _show(comparison: _LockComparison) -> None:
    """Shows the changes. For a first lock file, which would list everything as new, none are shown."""
    for change in () if comparison.is_first else comparison.changes:
        head, *lines = describe(change).split("\n")
        click.echo(click.style(head, bold=True))
        for line in lines:
            click.echo(click.style(line, fg=COLOURS.get(line.lstrip()[:1])))
    for name in comparison.forgotten:
        click.echo(click.style(f"removed: {one_line(name, 100)}, which is not configured here", bold=True))


def _summary(comparison: _LockComparison, *, is_written: bool, check: bool) -> str:
    tools, path = counted(comparison.tool_count, "tool"), one_line(str(comparison.path))
    if not comparison.differs:
        return f"nothing has changed: {tools}, as {path} says"
    if is_written:
        return f"{tools} written to {path}"
    if not check:
        return f"nothing is written to {path}, since no server could be connected"
    if comparison.is_first:
        return f"there is no {path}; `dragoman tools lock` writes it"
    # The changes may be hostile: the message contains no command that accepts them.
    return f"it differs from {path}; review each change above before you accept it"

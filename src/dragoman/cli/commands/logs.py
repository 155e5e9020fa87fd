"""`dragoman logs`: shows the log of one server, or the audit log."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, cast

import click

from dragoman import paths
from dragoman.calls import audit
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.options import complete_server, json_option
from dragoman.cli.render import server_log_lines
from dragoman.names import RESERVED
from dragoman.protocol import LOG_LEVELS, LogLevel

NAMES_SHOWN: Final = 10
_COLOURS = {"allow": "green", "deny": "red"}


@click.command("logs")
@click.argument("server", required=False, shell_complete=complete_server)
@click.option("--audit", "is_audit", is_flag=True, help="Show the audit log, also if SERVER is given.")
@click.option("-n", "--last", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines of the server's log until Ctrl-C.")
@click.option("--level", type=click.Choice(LOG_LEVELS), help="Only lines of this level and above.")
@click.option("--tool", help="Only calls of tools whose name contains this text.")
@click.option("--denied", is_flag=True, help="Only calls that were not allowed.")
@json_option
def command(
    server: str | None,
    is_audit: bool,
    last: int,
    follow: bool,
    level: LogLevel | None,
    tool: str | None,
    denied: bool,
    as_json: bool,
) -> None:
    """Shows the log of SERVER: its log messages, its stderr, and changes of its connection, oldest first.

    Without SERVER, or with --audit: the newest calls. That log holds names of arguments, never their values.
    With --json one entry per line, as they are in the file.
    """
    if server is not None and not is_audit:
        if tool is not None or denied:
            raise click.UsageError("--tool and --denied are about calls: give --audit with them")
        server_log_lines.show(server, last=last, level=level, follow=follow, as_json=as_json)
        return
    if follow or level is not None:
        raise click.UsageError("--follow and --level are about the log of a server: give its name")
    _show_calls(server, last, tool, denied, as_json)


def _show_calls(server: str | None, last: int, tool: str | None, denied: bool, as_json: bool) -> None:
    found = (entry for entry in audit.read(paths.logs_dir()) if _fits(entry, server, tool, denied))
    entries = deque(found, maxlen=last)
    if as_json:
        for entry in entries:
            server_log_lines.echo_json(entry)
        sys.exit(exit_codes.OK)
    for entry in entries:
        server_log_lines.echo_parts(list(_line(entry)))
    if not entries:
        click.echo(f"No calls yet. ({one_line(str(paths.logs_dir() / audit.FILE))})", err=True)


def _fits(entry: dict[str, Any], server: str | None, tool: str | None, denied: bool) -> bool:
    if server is not None and entry.get("server") != server:
        return False
    if denied and entry.get("decision") != "deny":
        return False
    return tool is None or tool in str(entry.get("tool", ""))


def _line(entry: dict[str, Any]) -> Iterator[str]:
    decision, outcome = str(entry.get("decision", "none")), str(entry.get("outcome", ""))
    yield click.style(one_line(str(entry.get("time", "")), 30), dim=True)
    yield click.style(one_line(decision, 10).ljust(5), fg=_COLOURS.get(decision))
    yield click.style(one_line(str(entry.get("tool", "")), 100), bold=True)
    if (server := str(entry.get("server", ""))) and not str(entry.get("tool", "")).startswith(RESERVED):
        yield f"of {one_line(server, 80)}"
    yield f"({', '.join(_names(entry))})"
    yield click.style(one_line(outcome, 40), fg="green" if outcome == "ok" else "red")
    yield f"{one_line(str(entry.get('duration_ms', 0)), 20)} ms"
    if by := one_line(str(entry.get("by", "")), 20):  # empty where the call failed before a decision
        yield click.style(f"by {by}: {one_line(str(entry.get('reason', '')), 200)}", dim=True)


def _names(entry: dict[str, Any]) -> Iterator[str]:
    names: Any = entry.get("arguments")
    if isinstance(names, list):
        for name in cast("list[Any]", names)[:NAMES_SHOWN]:
            yield one_line(str(name), 40)
        if len(cast("list[Any]", names)) > NAMES_SHOWN:
            yield "…"

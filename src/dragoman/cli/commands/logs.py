"""`dragoman logs`: shows the audit log."""

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
from dragoman.cli.options import json_option
from dragoman.cli.render.columns import width, wrapped_styled
from dragoman.names import RESERVED

NAMES_SHOWN: Final = 10
INDENT: Final = "    "
_COLOURS = {"allow": "green", "deny": "red"}


@click.command("logs")
@click.option("--audit", "is_audit", is_flag=True, help="Show the audit log (the only log so far).")
@click.option("-n", "--last", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")
@click.option("--tool", help="Only calls of tools whose name contains this text.")
@click.option("--denied", is_flag=True, help="Only calls that were not allowed.")
@json_option
def command(is_audit: bool, last: int, tool: str | None, denied: bool, as_json: bool) -> None:
    """Shows the newest calls, oldest first. The log holds names of arguments, never their values.

    With --json one entry per line, as they are in the file.
    """
    found = (entry for entry in audit.read(paths.logs_dir()) if _fits(entry, tool, denied))
    entries = deque(found, maxlen=last)
    if as_json:
        import json

        for entry in entries:
            # Escaped to ASCII, so that not even inside JSON a name can drive a terminal.
            click.echo(json.dumps(entry).replace("\x7f", "\\u007f"))
        sys.exit(exit_codes.OK)
    for entry in entries:
        _show(list(_line(entry)))
    if not entries:
        click.echo(f"No calls yet. ({one_line(str(paths.logs_dir() / audit.FILE))})", err=True)


def _show(parts: list[str]) -> None:
    """One line, or on a terminal that is not wide enough several, broken between words."""
    columns = width(full=True)
    room = None if columns is None else columns - len(INDENT)
    first, *more = wrapped_styled(parts, room)
    click.echo("\n".join([first, *(f"{INDENT}{line}" for line in more)]))


def _fits(entry: dict[str, Any], tool: str | None, denied: bool) -> bool:
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

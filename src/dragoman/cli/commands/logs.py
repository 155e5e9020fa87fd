"""`dragoman logs`: shows the log of one server, or the audit log."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import click

from dragoman import paths
from dragoman.calls import audit
from dragoman.cleaning import one_line
from dragoman.cli.options import complete_server, json_option
from dragoman.cli.render import server_log_lines
from dragoman.errors import ConfigError
from dragoman.interaction import LOCAL_CALLER
from dragoman.names import RESERVED
from dragoman.protocol import LOG_LEVELS, LogLevel

NAMES_SHOWN: Final = 10
_COLOURS = {"allow": "green", "deny": "red"}


@click.command("logs")
@click.argument("server", required=False, shell_complete=complete_server)
@click.option("--audit", "is_audit", is_flag=True, help="Show the audit log, also if SERVER is given.")
@click.option("-n", "--last", type=click.IntRange(min=1), default=50, show_default=True, help="How many.")
@click.option(
    "--gateway",
    "settings_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Show the audit log that all replicas of a gateway share: the file that it is given as --config.",
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

    Without SERVER, or with --audit: the newest calls. That log holds names of arguments, never their values.
    With --gateway: the newest calls of all replicas of a gateway. With --json one entry per line.
    """
    if server is not None and not is_audit and settings_file is None:
        if tool is not None or denied:
            raise click.UsageError("--tool and --denied are about calls: give --audit with them")
        server_log_lines.show(server, last=last, level=level, follow=follow, as_json=as_json)
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
        if as_json:
            server_log_lines.echo_json(entry)
        else:
            server_log_lines.echo_parts(list(_line(entry)))


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
            f"{one_line(str(settings_file))} names no store, so the gateway runs alone",
            hint="`dragoman logs --audit` on its machine shows its calls.",
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


def _line(entry: dict[str, Any]) -> Iterator[str]:
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

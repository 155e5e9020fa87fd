"""Configured servers as text and as JSON. Values are shown as written, with secrets masked."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import click

from dragoman.cleaning import last_lines, one_line
from dragoman.cli.render.columns import cells, echo_wrapped, fitted, padded, width
from dragoman.config.load import Configuration
from dragoman.config.masking import masked_entry
from dragoman.config.merge import ConfiguredServer, Dropped
from dragoman.config.model import type_in, with_own_field_names
from dragoman.errors import ConnectError
from dragoman.names import counted as counted
from dragoman.names import shell_quoted
from dragoman.transport_types import IN_PROCESS, transport_type

if TYPE_CHECKING:
    from dragoman.servers.status import ServerStatus

_ELIGIBILITY_MARKS = {
    "ready": ("·", "white"),
    "pending": ("?", "yellow"),
    "rejected": ("–", "white"),
    "disabled": ("–", "white"),
    "refused": ("⊘", "red"),
    "broken": ("✗", "red"),
}

OUTPUT_CHARACTERS: Final = 300
"""The most characters of a line of a server's output that are shown. Advice is often at its end."""

_STATES = {"connected": ("✓", "green"), "failed": ("✗", "red"), "needs-auth": ("!", "yellow")}


def show_problems(configuration: Configuration) -> None:
    for problem in configuration.problems:
        show_problem(problem)


def show_problem(problem: str) -> None:
    echo_wrapped(one_line(problem), label="! ", colour="yellow", err=True)


def show_list(
    servers: Iterable[ConfiguredServer], views: Mapping[str, ServerStatus], *, full: bool = False
) -> None:
    """Prints one line for each server, in columns, cut to the width of the terminal unless `full`."""
    rows = [_row(server, views.get(server.name)) for server in servers]
    widths = [max((cells(row[1:][column]) for row in rows), default=0) for column in range(4)]
    columns = None if full else width()
    for (mark, colour), *texts, target in rows:
        name, scope, transport, state = (padded(text, room) for text, room in zip(texts, widths))
        line = f"{scope}  {transport}  {state}  {target}"
        room = None if columns is None else max(20, columns - widths[0] - 4)
        styled = click.style(name, bold=True)
        click.echo(f"{click.style(mark, fg=colour)} {styled}  {fitted(line.rstrip(), room)}")


def _row(
    server: ConfiguredServer, view: ServerStatus | None
) -> tuple[tuple[str, str], str, str, str, str, str]:
    if server.eligibility != "ready":
        view = None
    mark = _STATES.get(view.status, ("…", "yellow")) if view else _ELIGIBILITY_MARKS[server.eligibility]
    return (
        mark,
        one_line(server.name, 60),
        server.scope,
        transport_of(server),
        _state(server, view),
        target_of(server),
    )


def _state(server: ConfiguredServer, view: ServerStatus | None) -> str:
    if view is None:
        return server.eligibility
    return counted(view.tool_count, "tool") if view.status == "connected" else view.status


def show_reasons(servers: Iterable[ConfiguredServer], views: Mapping[str, ServerStatus]) -> None:
    """Prints why servers are not connected."""
    for server in servers:
        view = views.get(server.name)
        if server.eligibility != "ready":
            _show_reason(server.name, _reason_of(server), _next_step(server))
        elif view is not None and view.status != "connected":
            hint = view.error.hint if view.error else None
            _show_reason(server.name, view.own_reason, hint, _last_output(view))


def _reason_of(server: ConfiguredServer) -> str | None:
    """The reason why the server is not started. For an entry without approval, also a reason why it could not
    be started after approval."""
    return "; ".join(filter(None, (server.reason, server.fault_before_approval))) or None


def _last_output(view: ServerStatus) -> str:
    """The last output on stderr; if there is none, what a process that failed to start wrote on stdout."""
    error = view.error
    return (error.stderr_tail if isinstance(error, ConnectError) else "") or view.stderr_tail


def _show_reason(name: str, reason: str | None, hint: str | None, output: str = "") -> None:
    """The server's own message stands before the hint: it often says more."""
    echo_wrapped(one_line(reason or "", 700), label=f"  {one_line(name, 60)}: ")
    for line in last_lines(output):
        click.echo(click.style(f"    {one_line(line, OUTPUT_CHARACTERS)}", dim=True))
    if hint:
        echo_wrapped(one_line(hint, 300), label="    ", fg="cyan")


def _next_step(server: ConfiguredServer) -> str | None:
    match server.eligibility:
        case "pending":
            return f"dragoman mcp approve {shell_quoted(server.name)}"
        case "disabled":
            return f"dragoman mcp enable {shell_quoted(server.name)}"
        case "broken":
            return server.error.hint if server.error else None
        case "rejected":
            return None  # the person has rejected it: no next step is proposed
        case "refused":
            return f"dragoman config explain {shell_quoted(server.name)}"
        case _:
            return None


def transport_of(server: ConfiguredServer) -> str:
    if server.config is not None:
        return server.config.type
    return one_line(type_in(_entry(server)) or "?", 20)


def target_of(server: ConfiguredServer) -> str:
    """The command or the URL of the entry, as written, by the type in effect."""
    entry = with_own_field_names(_entry(server))
    if not entry:
        return IN_PROCESS if server.error is None else ""
    shown = masked_entry(entry)
    command, url = shown.get("command"), shown.get("url")
    if transport_type(type_in(entry) or "").starts_command:
        words = [command, *_texts(shown.get("args"))] if isinstance(command, str) else []
        return one_line(" ".join(map(_as_word, words)), 300)
    return one_line(url, 300) if isinstance(url, str) else ""


def _as_word(text: str) -> str:
    """An argument as one word of a command, so that the command can be copied."""
    return text if text and not any(map(str.isspace, text)) else shlex.quote(text)


def show_warnings(servers: Iterable[ConfiguredServer]) -> None:
    """Prints warnings about fields of entries that have no effect, on stderr."""
    for server in servers:
        for warning in server.warnings:
            show_problem(f"{one_line(server.name, 60)}: {warning}")


def _texts(value: Any) -> list[str]:
    return [str(word) for word in cast("list[Any]", value)] if isinstance(value, list | tuple) else []


def masked(server: ConfiguredServer) -> dict[str, Any]:
    """The entry as written, secrets masked."""
    return masked_entry(_entry(server))


def _entry(server: ConfiguredServer) -> Mapping[str, Any]:
    given = server.candidate.given
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


def as_json(server: ConfiguredServer, view: ServerStatus | None = None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": server.name,
        "scope": server.scope,
        "source": server.source,
        "transport": transport_of(server),
        "eligibility": server.eligibility,
        "reason": _reason_of(server),
        "target": target_of(server),
        "entry": masked(server),
        "warnings": server.warnings,
    }
    if view is not None:
        described["health"] = {
            "status": view.status,
            "reason": view.reason,
            "protocolVersion": view.protocol_version,
            "toolCount": view.tool_count,
        }
    return described


def show_dropped(dropped: Dropped) -> None:
    name = one_line(dropped.candidate.name, 60)
    click.echo(
        click.style(f"  {name} of {one_line(dropped.candidate.origin)}: {one_line(dropped.text)}", dim=True)
    )


def dropped_json(dropped: Dropped) -> dict[str, Any]:
    candidate = dropped.candidate
    return {
        "name": candidate.name,
        "scope": candidate.scope,
        "source": candidate.source,
        "why": dropped.why,
        "text": dropped.text,
    }


def inline(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

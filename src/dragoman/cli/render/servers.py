"""Configured servers for people and programs. Values are shown as written, and masked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from dragoman.cleaning import last_lines, one_line
from dragoman.cli.render.columns import cells, echo_wrapped, filled, fitted, width
from dragoman.config.load import Configuration
from dragoman.config.masking import masked_entry, masked_url, masked_words
from dragoman.config.merge import ConfiguredServer, Dropped
from dragoman.config.model import type_in, with_own_field_names
from dragoman.names import counted as counted
from dragoman.names import typed
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

_STATES = {"connected": ("✓", "green"), "failed": ("✗", "red"), "needs-auth": ("!", "yellow")}


def show_problems(configuration: Configuration) -> None:
    for problem in configuration.problems:
        show_problem(problem)


def show_problem(problem: str) -> None:
    echo_wrapped(one_line(problem), label="! ", colour="yellow", err=True)


def show_list(
    servers: Iterable[ConfiguredServer], views: Mapping[str, ServerStatus], *, full: bool = False
) -> None:
    """One line a server, in columns, cut to the width of the terminal unless `full`."""
    rows = [_row(server, views.get(server.name)) for server in servers]
    widths = [max((cells(row[1:][column]) for row in rows), default=0) for column in range(4)]
    columns = None if full else width()
    for (mark, colour), *texts, target in rows:
        name, scope, transport, state = (filled(text, room) for text, room in zip(texts, widths))
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
    """Why servers are not there, below the list."""
    for server in servers:
        view = views.get(server.name)
        if server.eligibility != "ready":
            _show_reason(server.name, server.reason, _next_step(server))
        elif view is not None and view.status != "connected":
            reason = (view.reason or "").removeprefix(f"{server.name}: ")
            _show_reason(server.name, reason, view.error.hint if view.error else None)
            for line in last_lines(view.stderr_tail):
                click.echo(click.style(f"    {one_line(line, 200)}", dim=True))


def _show_reason(name: str, reason: str | None, hint: str | None) -> None:
    echo_wrapped(one_line(reason or "", 500), label=f"  {one_line(name, 60)}: ")
    if hint:
        echo_wrapped(one_line(hint, 300), label="    ", fg="cyan")


def _next_step(server: ConfiguredServer) -> str | None:
    match server.eligibility:
        case "pending":
            return f"dragoman mcp approve {typed(server.name)}"
        case "disabled":
            return f"dragoman mcp enable {typed(server.name)}"
        case "broken":
            return server.error.hint if server.error else None
        case "rejected":
            return None  # the person has answered; nothing invites to change that
        case "refused":
            return f"dragoman config explain {typed(server.name)}"
        case _:
            return None


def transport_of(server: ConfiguredServer) -> str:
    if server.config is not None:
        return server.config.type
    return one_line(type_in(_entry(server)) or "?", 20)


def target_of(server: ConfiguredServer) -> str:
    """What is started or reached by the type in effect, as written."""
    entry = with_own_field_names(_entry(server))
    if not entry:
        return IN_PROCESS
    command, url = entry.get("command"), entry.get("url")
    if transport_type(type_in(entry) or "").starts_command:
        words = [command, *_texts(entry.get("args"))] if isinstance(command, str) else []
        return one_line(" ".join(masked_words(words)), 300)
    return one_line(masked_url(url), 300) if isinstance(url, str) else ""


def show_warnings(servers: Iterable[ConfiguredServer]) -> None:
    """What entries say that has no effect, on stderr."""
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
        "reason": server.reason,
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

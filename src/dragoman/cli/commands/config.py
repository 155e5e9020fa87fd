"""`dragoman config`: the effective configuration, and the source of every value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.cli.common import find_server, load_and_report
from dragoman.cli.main import CommandGroup
from dragoman.cli.options import json_option, mcp_config_option, sources_of
from dragoman.cli.render import servers
from dragoman.cli.render.document import echo
from dragoman.config.jsonc import locate
from dragoman.config.load import Configuration
from dragoman.config.merge import Candidate, ConfiguredServer
from dragoman.config.plan import Plan, compare, last_snapshots, snapshots_of
from dragoman.config.policy import PolicyVerdict
from dragoman.config.schema import FILES, json_schema
from dragoman.settings import TABLE


@click.group("config", cls=CommandGroup)
def command() -> None:
    """Show the effective configuration and where it comes from. Starts no server."""


class Explained(Struct, frozen=True):
    server: ConfiguredServer
    line: int | None
    """The line of the file at which the entry begins."""
    verdict: PolicyVerdict
    """The decision of the policy, and the rule behind it."""


def explain(configuration: Configuration, server: ConfiguredServer) -> Explained:
    verdict = configuration.entry_checks.policy(server.candidate, server.config)
    return Explained(server, line_of(configuration, server.candidate), verdict)


def line_of(configuration: Configuration, candidate: Candidate) -> int | None:
    part = configuration.parts[candidate.part] if candidate.part < len(configuration.parts) else None
    if part is None or part.path is None:
        return None
    place = locate(part.text, ["mcpServers", candidate.name])
    return place[0] if place else None


@command.command(
    "explain", short_help="Show every effective value with its file and scope, and the values it overrides."
)
@click.argument("name", required=False)
@mcp_config_option
@json_option
def explain_command(name: str | None, as_json: bool) -> None:
    """Explains the server NAME, or everything: servers, policy, settings, permission rules, files.

    Values are shown as written, secrets masked. Starts no server.
    """
    configuration = load_and_report(sources_of(), everything=True)
    chosen = [find_server(configuration, name)] if name else list(configuration.servers.values())
    explained = [explain(configuration, server) for server in chosen]
    if as_json:
        echo(_document(configuration, explained, full=name is None))
        return
    for each in explained:
        _show_server(each)
    for dropped in configuration.dropped:
        if name in (None, dropped.candidate.name):
            servers.show_dropped(dropped)
    if name is None:
        _show_rest(configuration)


def _show_server(explained: Explained) -> None:
    server = explained.server
    click.echo(f"{click.style(one_line(server.name), bold=True)}  {server.eligibility}")
    for label, text in _facts(explained):
        click.echo(f"  {click.style(label, dim=True)}  {one_line(text)}")


def _facts(explained: Explained) -> Iterator[tuple[str, str]]:
    server = explained.server
    yield "scope   ", server.scope
    yield "from    ", (server.source if explained.line is None else f"{server.source}, line {explained.line}")
    for field, value in servers.masked(server).items():
        yield "entry   ", f"{field}: {servers.inline(value)}"
    yield "target  ", servers.target_of(server)
    yield "policy  ", explained.verdict.reason
    if server.approval is not None:
        yield "approval", f"{server.approval.state}: {server.approval.reason}"
    if server.reason and server.eligibility in ("disabled", "broken"):
        yield "state   ", f"{server.eligibility}: {server.reason}"
    if server.fault_before_approval is not None:
        yield "note    ", server.fault_before_approval
    for note in server.warnings:
        yield "note    ", note
    for other in server.replaced:
        yield "replaces", other.origin


def _show_rest(configuration: Configuration) -> None:
    click.echo(click.style("\nSettings", bold=True))
    for row in TABLE:
        first, *others = configuration.settings.values_of(row.name)
        values = ", ".join(f"{other.value} of {other.source}" for other in others)
        overrides = f"  (overrides {values})" if others else ""
        unit = "" if row.unit == "0 or 1" else f" {row.unit}"
        click.echo(f"  {row.name} = {first.value}{unit}  {one_line(first.source)}{one_line(overrides)}")
    _show_rules(configuration)
    click.echo(click.style("\nFiles", bold=True))
    for part in configuration.parts:
        click.echo(f"  {part.scope:<10}  {one_line(part.source)}")


def _show_rules(configuration: Configuration) -> None:
    rules = [
        *(f"allow  {rule.describe()}" for rule in configuration.policy.allowed or ()),
        *(f"deny   {rule.describe()}" for rule in configuration.policy.denied),
    ]
    if configuration.policy.allowed == ():
        rules.append("allow  nothing")
    if rules:
        click.echo(click.style("\nPolicy", bold=True))
    for rule in rules:
        click.echo(f"  {one_line(rule)}")
    if configuration.permissions:
        click.echo(click.style("\nPermission rules", bold=True))
    for part in configuration.permissions:
        for kind in ("allow", "ask", "deny"):
            for rule in getattr(part.rules, kind):
                click.echo(f"  {kind:<5}  {one_line(rule)}  {part.scope} ({one_line(part.source)})")


def _document(configuration: Configuration, explained: list[Explained], *, full: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"servers": [_server_json(each) for each in explained]}
    names = {each.server.name for each in explained}
    document["dropped"] = [
        servers.dropped_json(dropped)
        for dropped in configuration.dropped
        if full or dropped.candidate.name in names
    ]
    if full:
        document |= {
            "settings": {row.name: _setting_json(configuration, row.name) for row in TABLE},
            "policy": {
                "allowed": None
                if configuration.policy.allowed is None
                else [rule.describe() for rule in configuration.policy.allowed],
                "denied": [rule.describe() for rule in configuration.policy.denied],
                "broken": configuration.policy.broken,
            },
            "permissions": [
                {"scope": part.scope, "source": part.source, "rules": part.rules}
                for part in configuration.permissions
            ],
            "files": [{"scope": part.scope, "source": part.source} for part in configuration.parts],
        }
    return {**document, "problems": configuration.problems}


def _server_json(explained: Explained) -> dict[str, Any]:
    server: ConfiguredServer = explained.server
    return {
        **servers.as_json(server),
        "line": explained.line,
        "policy": {"allowed": explained.verdict.allowed, "reason": explained.verdict.reason},
        "approval": {"state": server.approval.state, "reason": server.approval.reason}
        if server.approval
        else None,
        "replaced": [{"scope": other.scope, "source": other.source} for other in server.replaced],
    }


def _setting_json(configuration: Configuration, name: str) -> dict[str, Any]:
    first, *others = configuration.settings.values_of(name)
    return {"value": first.value, "source": first.source, "replaced": [other._asdict() for other in others]}


_SIGNS = (
    ("added", "+", "green"),
    ("changed", "~", "yellow"),
    ("removed", "-", "red"),
    ("unchanged", "=", None),
)


@command.command("plan", short_help="Show what has changed since a host was last started here.")
@json_option
def plan_command(as_json: bool) -> None:
    """Compares the configuration with the one that a host used last in this folder: servers that would be
    added, removed or changed, and reasons why a server would not be started. Starts no server.
    """
    configuration = load_and_report(everything=True)
    plan = compare(last_snapshots(configuration.sources), snapshots_of(configuration))
    if as_json:
        echo(
            {
                **{kind: getattr(plan, kind) for kind, _, _ in _SIGNS},
                "servers": [servers.as_json(server) for server in configuration.servers.values()],
                "problems": configuration.problems,
            }
        )
        return
    _show_plan(plan, configuration)


def _show_plan(plan: Plan, configuration: Configuration) -> None:
    for kind, sign, colour in _SIGNS:
        for name in getattr(plan, kind):
            server = configuration.servers.get(name)
            about = f"{server.eligibility}: {server.reason}" if server and server.reason else ""
            about = (
                "; ".join(filter(None, [about or server.eligibility, servers.target_of(server)]))
                if server
                else ""
            )
            click.echo(
                f"{click.style(f'{sign} {one_line(name, 60)}', fg=colour)}  {one_line(about, 300)}".rstrip()
            )
    if plan.is_empty:
        click.echo("Nothing has changed.")


@command.command("schema", short_help="Print the JSON Schema of a configuration file.")
@click.argument("file", type=click.Choice(list(FILES)), required=False)
def schema_command(file: str | None) -> None:
    """Prints the schema of FILE: project (.mcp.json), local, user or managed. Without FILE: of all four."""
    echo(json_schema(file) if file else {name: json_schema(name) for name in FILES})

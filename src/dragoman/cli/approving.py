"""Asking a person about servers that came with a project.

I own: the question, which shows the whole entry with nothing hidden, and what becomes of the answer. Who
cannot be asked has not approved: then the server stays pending.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import click

from dragoman.cleaning import one_line
from dragoman.cli.options import is_watched
from dragoman.config import approval
from dragoman.config.load import Configuration, load, path_of
from dragoman.config.merge import ConfiguredServer
from dragoman.config.policy import loader_variables
from dragoman.config.scopes import Sources


def load_asking(sources: Sources) -> Configuration:
    """The configuration; where a person watches, after asking about what is pending."""
    configuration = load(sources)
    if configuration.policy.broken is not None or not is_watched():
        return configuration
    if not (configuration.waiting or configuration.unconfirmed_variables):
        return configuration
    for server in configuration.waiting:
        ask(configuration, server)
    ask_about_variables(configuration)
    return load(sources)


def ask(configuration: Configuration, server: ConfiguredServer) -> None:
    """Shows the entry and keeps the answer. No answer leaves it pending."""
    show(configuration, server)
    answer = click.prompt(
        "  Use it from now on?",
        type=click.Choice(["y", "n", "later"]),
        default="later",
        err=True,
    )
    if answer in ("y", "n"):
        keep(configuration, server, "approved" if answer == "y" else "rejected")


def keep(configuration: Configuration, server: ConfiguredServer, decision: str) -> None:
    path = path_of(configuration, server)
    if path is not None:
        answers = configuration.sources.approvals_file
        approval.remember(answers, path, server.name, server.candidate.given, decision)


def show(configuration: Configuration, server: ConfiguredServer) -> None:
    """The whole entry. Everything outside printable ASCII is escaped, and nothing is cut."""
    click.echo(err=True)
    name = click.style(one_line(server.name), bold=True)
    click.echo(f"{click.style('?', fg='yellow')} {name} wants to be used. It stands in", err=True)
    click.echo(f"  {one_line(server.source)}", err=True)
    before = server.approval.before if server.approval else None
    if before is not None:
        click.echo("  It was approved before, and has changed since:", err=True)
    for line in entry_lines(server.candidate.given, before):
        colour = {"+": "green", "-": "red"}.get(line[0])
        click.echo(f"    {click.style(line, fg=colour) if colour else line}", err=True)
    for warning in _warnings(server):
        click.echo(f"  {click.style('!', fg='yellow')} {warning}", err=True)


def entry_lines(entry: Any, before: Any = None) -> Iterator[str]:
    """`  field: value` for each field, or `-` and `+` where it differs from before."""
    now = _fields(entry)
    was = now if before is None else _fields(before)
    for field in [*now, *(field for field in was if field not in now)]:
        if field in was and field in now and was[field] == now[field]:
            yield f"  {field}: {now[field]}"
            continue
        if field in was:
            yield f"- {field}: {was[field]}"
        if field in now:
            yield f"+ {field}: {now[field]}"


def _fields(entry: Any) -> dict[str, str]:
    if not isinstance(entry, Mapping):
        return {"entry": plain_json(entry)}
    fields = cast("Mapping[str, Any]", entry)
    return {plain_json(key)[1:-1]: plain_json(value) for key, value in fields.items()}


def plain_json(value: Any) -> str:
    """JSON in printable ASCII: no character can hide or move another."""
    return json.dumps(value, separators=(",", ":")).replace("\x7f", "\\u007f")


def _warnings(server: ConfiguredServer) -> Iterator[str]:
    given = server.candidate.given
    env: Any = cast("Mapping[str, Any]", given).get("env") if isinstance(given, Mapping) else None
    names = tuple(map(str, cast("Mapping[str, Any]", env))) if isinstance(env, Mapping) else ()
    if changing := loader_variables(names):
        yield f"it sets {', '.join(changing)}, which changes how programs run"
    if isinstance(given, Mapping) and "headersHelper" in given:
        yield "its headersHelper is a command that is run as well"


def ask_about_variables(configuration: Configuration) -> None:
    variables = configuration.unconfirmed_variables
    if not variables:
        return
    click.echo(f"\n{click.style('?', fg='yellow')} The administrator's file sets variables:", err=True)
    for name in variables:
        click.echo(f"    {one_line(name)}", err=True)
    if click.confirm("  Use them from now on?", default=False, err=True):
        approval.confirm_variables(configuration.sources.approvals_file, variables)

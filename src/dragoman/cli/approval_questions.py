"""Asks a person whether servers that came with a project may be used.

The question shows the entry, the entry that it would replace, and the allow rules that would apply to it.
Without a terminal no question is asked, and the server stays pending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, cast

import click

from dragoman.catalog.naming import prefix
from dragoman.cleaning import one_line
from dragoman.cli.render.document import ascii_json
from dragoman.cli.terminal_input import SHOWN_LINES, ask_key, cut, indented, is_interactive, show_keys
from dragoman.config import approval
from dragoman.config.load import Configuration, load, path_of
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import ALIASES_OF_URL, entry_warnings, with_own_field_names
from dragoman.config.noted_fields import noted_fields
from dragoman.config.policy import loader_variables
from dragoman.config.scopes import Sources
from dragoman.mixed_alphabets import mixed_words
from dragoman.names import RESERVED
from dragoman.permissions.conditions import ArgumentCondition
from dragoman.permissions.patterns import Glob
from dragoman.permissions.rules import Call, Rule, Rulebook

SHOWN_RULES: Final = 5


ServersToStart = Callable[[Configuration], Collection[str] | None]


def load_with_approvals(sources: Sources, servers_to_start: ServersToStart | None = None) -> Configuration:
    """Loads the configuration. At a terminal, asks about servers that need approval first.

    `servers_to_start` names the servers that the command starts (None for all). Questions are asked about
    these servers only.
    """
    configuration = load(sources)
    if configuration.policy.broken is not None or not is_interactive():
        return configuration
    if not (configuration.needing_approval or configuration.unconfirmed_variables):
        return configuration
    names = servers_to_start(configuration) if servers_to_start else None
    for server in configuration.needing_approval:
        if names is None or server.name in names:
            ask_approval(configuration, server)
    ask_about_variables(configuration)
    return load(sources)


def ask_approval(configuration: Configuration, server: ConfiguredServer) -> None:
    """Shows the entry and saves the answer. Without an answer the server stays pending."""
    is_cut = show_entry(configuration, server)
    meanings = {
        "y": "yes, use it from now on, exactly as it is shown",
        "n": "no, do not ask again",
        "l": "not now: leave it disabled, and ask again next time",
        **({"v": "show the complete entry"} if is_cut else {}),
    }
    show_keys(meanings)
    while (key := asyncio.run(ask_key(meanings, otherwise="l"))) == "v":
        _show_fields(server, full=True)
    if key != "l":
        save_decision(configuration, server, "approved" if key == "y" else "rejected")


def save_decision(configuration: Configuration, server: ConfiguredServer, decision: str) -> None:
    path = path_of(configuration, server)
    if path is not None:
        answers = configuration.sources.approvals_file
        approval.remember(answers, path, server.name, server.candidate.given, decision)


def show_entry(configuration: Configuration, server: ConfiguredServer) -> bool:
    """Shows the entry in printable ASCII, and warnings about it. Returns whether some values are cut."""
    click.echo(err=True)
    mark, name = click.style("?", fg="yellow", bold=True), click.style(one_line(server.name, 80), bold=True)
    click.echo(f"{mark} Server {name} needs approval.", err=True)
    click.echo(f"  {indented(f'Its entry is in {one_line(server.source)}', 2)}", err=True)
    if server.approval and server.approval.before is not None:
        click.echo("  It was approved before, and has changed since:", err=True)
    is_cut = _show_fields(server)
    for warning in _warnings(configuration, server):
        click.secho(f"  ! {indented(warning, 4)}", fg="yellow", err=True)
    return is_cut


def _show_fields(server: ConfiguredServer, *, full: bool = False) -> bool:
    before = server.approval.before if server.approval else None
    lines = list(entry_lines(server.candidate.given, before))
    full = full or not is_interactive()  # output to a file or a pipe is never cut
    for line in lines if full else lines[:SHOWN_LINES]:
        colour = {"+": "green", "-": "red"}.get(line[0])
        text = line if not is_interactive() else indented(line if full else cut(line), 8)
        click.echo(f"    {click.style(text, fg=colour) if colour else text}", err=True)
    if full:
        return False
    if len(lines) > SHOWN_LINES:
        click.echo(f"      … [{len(lines) - SHOWN_LINES} more fields]", err=True)
    return len(lines) > SHOWN_LINES or any(cut(line) != line for line in lines)


def entry_lines(entry: Any, before: Any = None) -> Iterator[str]:
    """Yields `  field: value` for each field, or lines with `-` and `+` where it differs from `before`.
    Fields that determine the program or the URL come first."""
    now = _fields(entry)
    was = now if before is None else _fields(before)
    fields = [*now, *(field for field in was if field not in now)]
    for field in sorted(fields, key=lambda field: _FIRST.get(field, len(_FIRST))):
        if field in was and field in now and was[field] == now[field]:
            yield f"  {field}: {now[field]}"
            continue
        if field in was:
            yield f"- {field}: {was[field]}"
        if field in now:
            yield f"+ {field}: {now[field]}"


_FIRST: Final = {
    field: place
    for place, field in enumerate(
        (
            *("type", "command", "args", "cwd", "env", "url", *ALIASES_OF_URL),
            *("headersHelper", "headers", "proxy", "tls", "oauth"),
        )
    )
}


def _fields(entry: Any) -> dict[str, str]:
    if not isinstance(entry, Mapping):
        return {"entry": plain_json(entry)}
    fields = cast("Mapping[str, Any]", entry)
    return {plain_json(key)[1:-1]: plain_json(value) for key, value in fields.items()}


def plain_json(value: Any) -> str:
    return ascii_json(value, separators=(",", ":"))


def _warnings(configuration: Configuration, server: ConfiguredServer) -> Iterator[str]:
    if (fault := server.fault_before_approval) is not None:
        yield fault
    yield from warnings_about_entry(server.name, server.candidate.given)
    present = configuration.servers.get(server.name)
    if present is not None and present.candidate != server.candidate:
        yield f"it would replace the server of the same name in {one_line(present.source)}"
    yield from warnings_about_rules(configuration, server.name)


def warnings_about_entry(name: str, given: object) -> Iterator[str]:
    """Warnings about fields of an entry that a person may overlook."""
    entry: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
    env: Any = entry.get("env")
    names = tuple(map(str, cast("Mapping[str, Any]", env))) if isinstance(env, Mapping) else ()
    if changing := loader_variables(names):
        yield f"it sets {one_line(', '.join(changing), 300)}, which changes how programs run"
    for field, text in noted_fields(with_own_field_names(entry)):
        if not field.startswith("env."):
            yield f"{one_line(field, 80)}: {text}"
    yield from entry_warnings(entry)
    if mixed := mixed_words((name, given)):
        yield f"these words mix alphabets: {', '.join(mixed)}"


def warnings_about_rules(configuration: Configuration, name: str) -> Iterator[str]:
    """Warnings about allow rules that would apply to a server of this name."""
    parts = [(part.scope, part.source, part.rules) for part in configuration.permissions]
    allows = [rule for rule in Rulebook.of(parts).rules if rule.behaviour == "allow"]
    meant = [rule for rule in allows if _may_mean_server(rule.subject.text, name)]
    if rules := [rule for rule in meant if not rule.digest]:
        words = "these allow rules apply to its tools, which are then called without a question"
        yield f"{words}: {_shown(rules)}"
    if rules := [rule for rule in meant if rule.digest]:  # any program can define its tools in the same way
        words = "these allow rules apply to its tools with exactly the definition that was allowed"
        yield f"{words}: {_shown(rules)}"
    if rules := [rule for rule in allows if _may_mean_resources(rule, name)]:
        yield f"these allow rules let a model read its resources without a question: {_shown(rules)}"


def _shown(rules: list[Rule]) -> str:
    more = f" and {len(rules) - SHOWN_RULES} more" if len(rules) > SHOWN_RULES else ""
    return ", ".join(one_line(rule.text, 80) for rule in rules[:SHOWN_RULES]) + more


def _may_mean_resources(rule: Rule, name: str) -> bool:
    """Whether a rule about reading resources could apply to a resource of the server, whatever its URI."""
    from dragoman.calls.requests import READ_RESOURCE  # imported only when a question is asked

    call = Call(tool=READ_RESOURCE.name, arguments={"server": name})
    about_server = (
        each for each in rule.conditions if isinstance(each, ArgumentCondition) and each.path == ("server",)
    )
    return (
        rule.subject.text != "*"  # reported with the rules about its tools
        and rule.is_about(call)
        and all(each.holds(call.arguments, call.hints, carefully=True) for each in about_server)
    )


def _may_mean_server(subject: str, name: str) -> bool:
    """Whether the subject of a rule could match a tool of the server, whatever the tool's name."""
    server, separator, tool = subject.removeprefix(RESERVED).partition("__")
    if subject == "*" or not subject.startswith(RESERVED):
        return subject == "*"
    pattern = f"{RESERVED}{server}__*" if separator and "*" in server else None
    start = prefix(name)
    return (
        subject.startswith(start)
        or f"{subject}__" == start
        or (pattern is not None and Glob.plainly(pattern).fits_loosely(f"{start}{tool}"))
        or (not separator and Glob.plainly(subject).fits_loosely(start.removesuffix("__")))
    )


def ask_about_variables(configuration: Configuration) -> None:
    variables = configuration.unconfirmed_variables
    if not variables:
        return
    click.echo(f"\n{click.style('?', fg='yellow')} The administrator's file sets variables:", err=True)
    for name in variables:
        click.echo(f"    {one_line(name)}", err=True)
    meanings = {"y": "yes, use them from now on", "n": "no"}
    show_keys(meanings)
    if asyncio.run(ask_key(meanings)) == "y":
        approval.confirm_variables(configuration.sources.approvals_file, variables)

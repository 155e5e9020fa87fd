"""`dragoman permissions add`: adds a rule to a settings file."""

from __future__ import annotations

from typing import cast

import click
from msgspec import convert

from dragoman.cleaning import one_line
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import show_problem
from dragoman.config.rule_edits import KINDS, Kind, add_rule
from dragoman.config.schema import PermissionRules
from dragoman.config.scopes import Scope
from dragoman.errors import ConfigError
from dragoman.permissions.rules import BadRule, Rulebook, parse


@click.command("add")
@click.argument("kind", type=click.Choice(KINDS), metavar="allow|ask|deny")
@click.argument("rule")
@click.option(
    "-s",
    "--scope",
    type=click.Choice(["user", "local"]),
    default="user",
    show_default=True,
    help="user: everywhere. local: in this project.",
)
@json_option
def command(kind: str, rule: str, scope: str, as_json: bool) -> None:
    """Adds RULE to the settings of a scope; there it replaces the same rule of another kind.

    \b
    dragoman permissions add allow 'mcp__github(readOnly)'      read-only calls are allowed, others are asked
    dragoman permissions add deny 'mcp__*__delete_*'
    dragoman permissions add allow 'Bash(npm run *)' -s local
    """
    try:
        parse(rule, cast("Kind", kind), scope=scope, source="command line")
    except BadRule as problem:
        raise ConfigError(
            f"{rule!r} is not a valid rule: {problem}", hint="See `dragoman permissions --help`."
        ) from None
    configuration = load_and_report()
    path = add_rule(configuration.sources, cast("Scope", scope), cast("Kind", kind), rule)
    if as_json:
        echo({"added": rule, "kind": kind, "scope": scope, "file": str(path)})
    else:
        click.echo(f"Added: {kind} {one_line(rule)} in {scope} ({one_line(str(path))})")
    given = [(scope, str(path), convert({kind: [rule]}, PermissionRules))]
    added = Rulebook.of(given, servers=configuration.names, chosen=configuration.chosen_names)
    for problem in added.problems:
        show_problem(problem)

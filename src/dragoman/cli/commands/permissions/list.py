"""`dragoman permissions list`: lists every rule with its file."""

from __future__ import annotations

import sys

import click

from dragoman.access_control import EffectiveRules
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.options import json_option
from dragoman.cli.render.columns import TableRow, table, width
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import show_problem
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from dragoman.permissions.modes import MEANINGS
from dragoman.permissions.rules import BEHAVIOURS

MARKS = {"deny": ("✗", "red"), "ask": ("?", "yellow"), "allow": ("✓", "green")}


@click.command("list")
@json_option
def command(as_json: bool) -> None:
    """Lists the rules of all files, strictest first, and the mode, which decides where no rule applies."""
    configuration = load(Sources.here())
    rules = EffectiveRules.of(configuration)
    problems = [*configuration.problems, *rules.problems]
    ranked = sorted(
        rules.book.rules, key=lambda rule: (BEHAVIOURS.index(rule.behaviour), not rule.is_managed)
    )
    if as_json:
        found = [
            {"kind": rule.behaviour, "rule": rule.text, "scope": rule.scope, "source": rule.source}
            for rule in ranked
        ]
        echo({"mode": rules.mode, "rules": found, "problems": problems})
        sys.exit(exit_codes.OK)
    rows = [
        TableRow(
            one_line(rule.text),
            rule.behaviour,
            f"{rule.scope} ({one_line(rule.source)})",
            *MARKS[rule.behaviour],
        )
        for rule in ranked
    ]
    for lines in table(rows, width()):
        click.echo("\n".join(lines))
    click.echo(f"{'Otherwise' if rows else 'No rules'}, mode {rules.mode}: {MEANINGS[rules.mode]}.")
    for problem in problems:
        show_problem(problem)

"""`dragoman permissions remove`: removes a rule from a settings file."""

from __future__ import annotations

from typing import cast

import click

from dragoman.cleaning import one_line
from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.render.document import echo
from dragoman.config.rule_edits import KINDS, Kind, files_with_rules, remove_rule
from dragoman.errors import NotFound


@click.command("remove")
@click.argument("words", nargs=-1, required=True, metavar="[allow|ask|deny] RULE")
@click.option("-s", "--scope", type=click.Choice(["user", "local"]), help="Only from this scope.")
@json_option
def command(words: tuple[str, ...], scope: str | None, as_json: bool) -> None:
    """Removes RULE, written as `dragoman permissions list` shows it, from each of your files that has it."""
    *kinds, rule = words
    if len(kinds) > 1 or not set(kinds) <= set(KINDS):
        raise click.UsageError("give one rule in quotes; before it there may be one of allow, ask and deny")
    sources = load_and_report().sources
    places = [place for place in files_with_rules(sources) if scope in (None, place[0])]
    removed = [
        {"kind": kind, "scope": found, "file": str(path)}
        for found, path in places
        for kind in remove_rule(sources, found, path, rule, cast("list[Kind]", kinds) or KINDS)
    ]
    if not removed:
        where = f"the {scope} scope" if scope else "your files"
        raise NotFound(
            f"there is no {' '.join([*kinds, 'rule'])} {rule!r} in {where}",
            hint="`dragoman permissions list` shows the file of each rule.",
        )
    if as_json:
        echo({"removed": rule, "from": removed})
    for each in () if as_json else removed:
        place = f"{each['scope']} ({one_line(each['file'])})"
        click.echo(f"Removed: {each['kind']} {one_line(rule)} from {place}")

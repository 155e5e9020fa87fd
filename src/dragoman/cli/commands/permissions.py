"""`dragoman permissions`: rules that allow, ask or deny calls."""

from __future__ import annotations

import sys
from typing import Final, cast

import click
from msgspec import convert

from dragoman.access_control import EffectiveRules
from dragoman.cleaning import one_line
from dragoman.cli import exit_codes
from dragoman.cli.call_evaluation import evaluate_call, show_evaluation
from dragoman.cli.commands.completion import complete_tool
from dragoman.cli.common import load_and_report
from dragoman.cli.main import CommandGroup
from dragoman.cli.options import json_option, mcp_config_option
from dragoman.cli.render.columns import TableRow, table, width
from dragoman.cli.render.document import echo
from dragoman.cli.render.servers import show_problem
from dragoman.config.load import load
from dragoman.config.rule_edits import KINDS, Kind, add_rule, files_with_rules, remove_rule
from dragoman.config.schema import PermissionRules
from dragoman.config.scopes import Scope, Sources
from dragoman.errors import ConfigError, NotFound
from dragoman.permissions.modes import MEANINGS
from dragoman.permissions.rules import BEHAVIOURS, BadRule, Rulebook, parse


@click.group("permissions", cls=CommandGroup)
def command() -> None:
    """Rules that allow, ask or deny calls: list, add, remove, explain, test.

    A rule names a server (mcp__github), a tool (mcp__github__create_issue, with * for any letters), or a
    shell command (Bash(git status)), and may have conditions: mcp__github(readOnly), mcp__gh__*(repo=acme/*).
    A deny rule takes precedence over all others, whether it is yours, your administrator's or a project's.
    Otherwise ask takes precedence over allow.
    """


MARKS = {"deny": ("✗", "red"), "ask": ("?", "yellow"), "allow": ("✓", "green")}


@command.command("list", short_help="List every effective rule and the file that defines it.")
@json_option
def list_rules(as_json: bool) -> None:
    """Lists the rules of all files, the strictest first, and the mode, which decides where no rule
    applies."""
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


@command.command("add", short_help="Add a rule to your settings.")
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
def add(kind: str, rule: str, scope: str, as_json: bool) -> None:
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


@command.command("remove", short_help="Remove a rule from your settings.")
@click.argument("words", nargs=-1, required=True, metavar="[allow|ask|deny] RULE")
@click.option("-s", "--scope", type=click.Choice(["user", "local"]), help="Only from this scope.")
@json_option
def remove(words: tuple[str, ...], scope: str | None, as_json: bool) -> None:
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


@command.command("explain", short_help="Show whether calls of a tool would be allowed, and by which rule.")
@click.argument("tool", shell_complete=complete_tool)
@mcp_config_option
@json_option
def explain(tool: str, as_json: bool) -> None:
    """Lists every rule about TOOL with its file and scope, and shows which one decides.

    TOOL is a name as `dragoman tools` lists it. Rules with conditions on arguments are shown with their
    conditions; `dragoman permissions test` decides about one call. Hooks that run for such calls are listed.
    """
    evaluation = evaluate_call(tool, (), run_hooks=False)
    if as_json:
        echo(evaluation.as_json())
    else:
        show_evaluation(evaluation, with_all=True)
    sys.exit(exit_codes.OK)


CODES: Final = {"allow": exit_codes.OK, "deny": exit_codes.REFUSED, "ask": exit_codes.WOULD_ASK}


@command.command("test", short_help="Show whether one call would be allowed, without making it.")
@click.argument("tool", shell_complete=complete_tool)
@click.argument("arguments", nargs=-1)
@mcp_config_option
@json_option
def test(tool: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Decides about a call of TOOL with ARGUMENTS (one JSON object, or key=value pairs) as a host would.

    No tool is called, but PreToolUse hooks are run. For the shell:
    `dragoman permissions test Bash 'git status && make'`.
    Exit codes: 0 allowed, 6 refused, 8 your permission would be needed.
    """
    evaluation = evaluate_call(tool, arguments, run_hooks=True)
    if as_json:
        echo(evaluation.as_json())
    else:
        show_evaluation(evaluation)
    sys.exit(CODES[evaluation.verdict.behaviour])

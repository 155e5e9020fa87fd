"""What rules say of a call that is not made.

I own: finding the tool a rule would be about (its server is connected to, for rules look at what a tool says
of itself), and showing the verdict with every rule that was considered. A tool that cannot be found is
judged by its name alone, and that is said.
"""

from __future__ import annotations

import shlex
from typing import Any

import click
from msgspec import Struct

from dragoman.calls.requests import KINDS
from dragoman.catalog.tools import ServerTool
from dragoman.cleaning import one_line
from dragoman.cli.approving import load_asking
from dragoman.cli.options import parse_arguments, run_with_host, sources_of
from dragoman.cli.render.servers import show_problem, show_problems
from dragoman.config.load import Configuration
from dragoman.config.scopes import Sources
from dragoman.guard import Rules
from dragoman.host import Host
from dragoman.permissions.conditions import HintCondition
from dragoman.permissions.decide import Considered, Verdict, rule_for
from dragoman.permissions.gate import call_of, judge
from dragoman.permissions.rules import SHELL, Call, Rule

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}
_WORDS = {"allow": "would be made", "ask": "would be asked", "deny": "would be refused"}


class Judgement(Struct, frozen=True):
    verdict: Verdict
    mode: str
    doubt: str | None = None
    """Why the tool itself could not be looked at."""

    def as_json(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "tool": verdict.call.tool,
            "decision": verdict.behaviour,
            "reason": verdict.reason,
            "mode": self.mode,
            "hasChanged": verdict.has_changed,
            "rules": [_as_json(each, verdict) for each in verdict.considered],
            "doubt": self.doubt,
        }


def _as_json(each: Considered, verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": each.rule.behaviour,
        "rule": each.rule.text,
        "scope": each.rule.scope,
        "source": each.rule.source,
        "applies": each.matched,
        "whyNot": each.why_not,
        "decides": each.rule is verdict.rule,
    }


def judged(name: str, words: tuple[str, ...], given: tuple[str, ...], strict: bool) -> Judgement:
    sources = sources_of(given, strict)
    configuration = load_asking(sources)
    show_problems(configuration)
    rules = Rules.of(configuration)
    fitting = _servers_of(name, configuration)
    if not fitting:  # otherwise the host tells them
        for problem in rules.problems:
            show_problem(problem)
    call, doubt = _call(name, words, sources, fitting)
    return Judgement(judge(call, rules.book, rules.mode), rules.mode, doubt)


def _call(name: str, words: tuple[str, ...], sources: Sources, fitting: list[str]) -> tuple[Call, str | None]:
    if name == SHELL:
        return Call(tool=SHELL, command=" ".join(words) or None), None
    if name in KINDS:  # as a model asks for it; a person's own request needs no rule
        return call_of(KINDS[name], parse_arguments(words, KINDS[name].input_schema)), None
    if not fitting:
        doubt = "no configured server has a tool of this name; judged by the name alone"
        return Call(tool=name, arguments=parse_arguments(words, {})), doubt
    tool, doubt = _find(name, sources, fitting)
    if tool is not None:
        return call_of(tool, parse_arguments(words, tool.input_schema)), None
    return Call(tool=name, server=fitting[0], arguments=parse_arguments(words, {})), doubt


def _find(name: str, sources: Sources, fitting: list[str]) -> tuple[ServerTool | None, str]:
    """The tool, or why it cannot be looked at."""

    async def work(host: Host) -> tuple[ServerTool | None, str]:
        await host.ready()
        found = next((tool for tool in host.tools(include_app_tools=True) if tool.name == name), None)
        views = [host.servers[server] for server in fitting if server in host.servers]
        absent = next((view for view in views if view.status != "connected"), None)
        why = "it has no such tool" if absent is None else absent.reason or absent.status
        server = fitting[0] if absent is None else absent.name
        return found, f"{server}: {why}; judged by the name alone"

    return run_with_host(sources, work, only=fitting)


def _servers_of(name: str, configuration: Configuration) -> list[str]:
    """The configured servers that may have the tool, the likeliest first; a shortened name may be any's."""
    from dragoman.catalog.naming import LIMIT, RESERVED, prefix

    fitting = [server for server in configuration.servers if name.startswith(prefix(server))]
    if not fitting and name.startswith(RESERVED) and len(name) >= LIMIT:
        fitting = list(configuration.servers)
    return sorted(fitting, key=len, reverse=True)


def show(judgement: Judgement, *, with_all: bool = False) -> None:
    verdict = judgement.verdict
    word = click.style(_WORDS[verdict.behaviour], fg=_COLOURS[verdict.behaviour], bold=True)
    click.echo(f"{click.style(one_line(verdict.call.tool), bold=True)} {word}")
    click.echo(
        f"  {one_line(verdict.reason)}" + (f" (mode {judgement.mode})" if verdict.rule is None else "")
    )
    considered = [each for each in verdict.considered if with_all or each.rule is not verdict.rule]
    if considered:
        click.echo("  rules about it:")
    for each in considered:
        rule = each.rule
        mark = click.style("→", bold=True) if rule is verdict.rule else " "
        click.echo(
            f"  {mark} {click.style(rule.behaviour, fg=_COLOURS[rule.behaviour])} {one_line(rule.text)}"
        )
        why = each.why_not or (
            "it decides" if rule is verdict.rule else "it applies, but another one decides"
        )
        if with_all and each.why_not and not verdict.call.arguments and _looks_at_arguments(rule):
            why = "it depends on the arguments"
        click.secho(f"      {rule.scope}, {one_line(rule.source)}: {one_line(why)}", dim=True)
    if judgement.doubt:
        click.secho(f"  ! {one_line(judgement.doubt)}", fg="yellow", err=True)
    if verdict.behaviour != "allow" and verdict.rule is None and judgement.mode != "plan":
        rule = verdict.call.tool if verdict.call.command is None else rule_for(verdict.call)
        if rule and one_line(rule) == rule:  # what cannot be seen in full is nothing to type
            click.echo(f"  allow it with: dragoman permissions add allow {shlex.quote(rule)}")


def _looks_at_arguments(rule: Rule) -> bool:
    """And at nothing else: what a tool says of itself is known before it is called."""
    hints = (isinstance(condition, HintCondition) for condition in rule.conditions)
    return bool(rule.conditions) and not any(hints)

"""Evaluates rules and hooks for a call that is not made.

Connects to the tool's server, because rules use the tool's annotations. If the tool cannot be found, rules
are evaluated for its name only, and the output says so; hooks are then listed, and not run.
"""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

import click
from msgspec import Struct

from dragoman.access_control import EffectiveRules
from dragoman.calls.requests import KINDS
from dragoman.catalog.tools import Tool
from dragoman.cleaning import one_line
from dragoman.cli.approval_questions import load_with_approvals
from dragoman.cli.common import all_tools, run_with_host
from dragoman.cli.options import parse_arguments, sources_of
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.servers import show_problem, show_problems
from dragoman.config.load import Configuration
from dragoman.hooks.active import NO_ARGUMENTS
from dragoman.hooks.configured import from_parts
from dragoman.hooks.verdicts import HookDecision
from dragoman.host import Host
from dragoman.names import RESERVED
from dragoman.permissions.checker import call_of, judge
from dragoman.permissions.conditions import HintCondition
from dragoman.permissions.decide import Considered, Verdict, rule_for
from dragoman.permissions.rules import Call, Rule
from dragoman.permissions.subject_form import SHELL, fault_of_name

_COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}
_WORDS = {"allow": "would be allowed", "ask": "would need your permission", "deny": "would be refused"}

_NO_SERVER = "no configured server has a tool of this name; decided by the name only"
_BUILTIN_NAME = (
    "only a built-in tool can have this name: in rules, the name of a server's tool is mcp__SERVER__TOOL, as "
    "`dragoman tools` lists it; decided by the name only"
)


class MatchingHook(NamedTuple):
    """A hook that decides about a call: before the call, or in place of the person."""

    event: str
    name: str


class Evaluation(Struct, frozen=True):
    verdict: Verdict
    mode: str
    doubt: str | None = None
    """Why the tool's definition could not be used."""
    hooks: tuple[MatchingHook, ...] = ()
    """The hooks that run for such a call."""
    hook_decision: HookDecision | None = None
    """The decision of the hooks, if they were run."""

    @property
    def is_by_hook(self) -> bool:
        verdict = self.verdict
        return (
            self.hook_decision is not None
            and verdict.rule is None
            and verdict.behaviour == self.hook_decision.behaviour
        )

    def as_json(self) -> dict[str, Any]:
        verdict = self.verdict
        return {
            "tool": verdict.call.tool,
            "decision": verdict.behaviour,
            "reason": verdict.reason,
            "mode": self.mode,
            "hasChanged": verdict.has_changed,
            "rules": [_as_json(each, verdict) for each in verdict.considered],
            "hooks": [{"event": each.event, "hook": each.name} for each in self.hooks],
            "hookDecision": None
            if self.hook_decision is None
            else {
                "decision": self.hook_decision.behaviour,
                "reason": self.hook_decision.reason,
                "hook": self.hook_decision.hook,
            },
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


def evaluate_call(name: str, words: tuple[str, ...], *, run_hooks: bool) -> Evaluation:
    """`run_hooks`: whether `PreToolUse` hooks are run; otherwise they are only listed."""
    sources = sources_of()
    configuration = load_with_approvals(sources)
    show_problems(configuration)
    rules = EffectiveRules.of(configuration)
    fitting = _servers_of(name, configuration)
    hooks = from_parts(configuration.parts, configuration.environ, fault_of_name)
    if fitting or hooks.hooks:
        found = run_with_host(
            sources,
            lambda host: _evaluate_in_host(host, name, words, fitting, run_hooks=run_hooks),
            only=fitting,
        )
    else:  # a host would report them itself
        for problem in (*rules.problems, *hooks.problems):
            show_problem(problem)
        found = _EvaluatedCall(*_call_of_words(name, words, fitting, None))
    verdict = judge(found.call, rules.book, rules.mode, hook_decision=found.hook_decision)
    return Evaluation(verdict, rules.mode, found.doubt, found.hooks, found.hook_decision)


class _EvaluatedCall(NamedTuple):
    """A call that is not made, and the hooks that run for it."""

    call: Call
    doubt: str | None = None
    hooks: tuple[MatchingHook, ...] = ()
    hook_decision: HookDecision | None = None


async def _evaluate_in_host(
    host: Host, name: str, words: tuple[str, ...], fitting: list[str], *, run_hooks: bool
) -> _EvaluatedCall:
    await host.ready()
    tool: Tool | None = KINDS.get(name) or next((each for each in all_tools(host) if each.name == name), None)
    call, doubt = _call_of_words(name, words, fitting, tool)
    if tool is None and fitting:
        doubt = _why_absent(host, fitting)
    subject, given = (tool, call.arguments) if tool is not None else (name, NO_ARGUMENTS)
    matching = tuple(
        MatchingHook(event, hook)
        for event in ("PreToolUse", "PermissionRequest")
        for hook in host.hooks.names(event, subject, given)
    )
    if not run_hooks or tool is None or not any(each.event == "PreToolUse" for each in matching):
        return _EvaluatedCall(call, doubt, matching)
    before = await host.hooks.before_call(tool, call.arguments)
    return _EvaluatedCall(call_of(tool, before.arguments), doubt, matching, before.hook_decision)


def _call_of_words(
    name: str, words: tuple[str, ...], fitting: list[str], tool: Tool | None
) -> tuple[Call, str | None]:
    if name == SHELL:
        return Call(tool=SHELL, command=" ".join(words) or None), None
    tool = tool or KINDS.get(name)  # the request of a model; a person's own request needs no rule
    if tool is not None:
        return call_of(tool, parse_arguments(words, tool.input_schema)), None
    if not fitting:
        doubt = _NO_SERVER if name.startswith(RESERVED) else _BUILTIN_NAME
        return Call(tool=name, arguments=parse_arguments(words, {})), doubt
    return Call(tool=name, server=fitting[0], arguments=parse_arguments(words, {})), None


def _why_absent(host: Host, fitting: list[str]) -> str:
    views = [host.servers[server] for server in fitting if server in host.servers]
    absent = next((view for view in views if view.status != "connected"), None)
    why = "it has no such tool" if absent is None else absent.reason or absent.status
    server = fitting[0] if absent is None else absent.name
    return f"{server}: {why.removeprefix(f'{server}: ')}; decided by the name only"


def _servers_of(name: str, configuration: Configuration) -> list[str]:
    """The servers that may have the tool, the likeliest first; for a shortened name, all of them."""
    from dragoman.catalog.naming import LIMIT, prefix

    fitting = [server for server in configuration.servers if name.startswith(prefix(server))]
    if not fitting and name.startswith(RESERVED) and len(name) >= LIMIT:
        fitting = list(configuration.servers)
    return sorted(fitting, key=len, reverse=True)


def show_evaluation(evaluation: Evaluation, *, with_all: bool = False) -> None:
    verdict = evaluation.verdict
    word = click.style(_WORDS[verdict.behaviour], fg=_COLOURS[verdict.behaviour], bold=True)
    click.echo(f"{click.style(one_line(verdict.call.tool), bold=True)} {word}")
    if evaluation.is_by_hook and evaluation.hook_decision is not None:
        by = f" (hook {one_line(evaluation.hook_decision.hook)})"
    else:
        by = f" (mode {evaluation.mode})" if verdict.rule is None else ""
    echo_wrapped(f"{one_line(verdict.reason)}{by}", label="  ")
    _show_hooks(evaluation)
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
            "it decides" if rule is verdict.rule else "it applies, but another rule decides"
        )
        if with_all and each.why_not and not verdict.call.arguments and _depends_on_arguments(rule):
            why = "it depends on the arguments"
        echo_wrapped(f"{rule.scope}, {one_line(rule.source)}: {one_line(why)}", label="      ", dim=True)
    if evaluation.doubt:
        echo_wrapped(one_line(evaluation.doubt), label="  ! ", colour="yellow", err=True)
    may_be_allowed = verdict.behaviour != "allow" and verdict.rule is None and evaluation.mode != "plan"
    if may_be_allowed and not evaluation.is_by_hook and not evaluation.doubt:
        rule = verdict.call.tool if verdict.call.command is None else rule_for(verdict.call)
        if rule and one_line(rule) == rule:  # a rule with invisible characters cannot be typed
            click.echo(f"  allow it with: dragoman permissions add allow {shlex.quote(rule)}")


def _show_hooks(evaluation: Evaluation) -> None:
    """Shows the hooks that can decide about the call, and whether they were run."""
    texts = {
        "PreToolUse": "was asked"
        if evaluation.hook_decision is not None
        else "runs before each call, and may decide",
        "PermissionRequest": "runs before a permission question, and may answer it",
    }
    for each in evaluation.hooks:
        click.echo(f"  hook {click.style(one_line(each.name), bold=True)} {texts[each.event]} ({each.event})")


def _depends_on_arguments(rule: Rule) -> bool:
    """Whether all conditions of the rule are about arguments. Annotations of a tool are known without a
    call."""
    hints = (isinstance(condition, HintCondition) for condition in rule.conditions)
    return bool(rule.conditions) and not any(hints)

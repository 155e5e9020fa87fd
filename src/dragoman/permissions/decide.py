"""Decides whether a call may be made, and why. Pure.

The order in which rules, hooks, grants and the mode decide:

1. a deny rule, or a hook's deny                         → deny, in every mode
2. mode plan, and the tool does not only read            → deny
3. an administrator's ask rule                           → ask
4. an administrator's allow rule                         → allow
5. any other ask rule, or a hook's ask                   → ask, in every mode
6. an allow rule, a hook's allow, a session grant        → allow
7. a built-in tool that needs no permission, or that
   reads the person's folder, or a program's own request
   for a resource or a prompt                            → allow
8. the mode: bypassPermissions allows, dontAsk denies, auto asks a classifier, the others ask a person

In dontAsk, every call that would cause a question is denied. So a deny always decides, and no mode but
bypassPermissions allows a call that no rule, hook or person allowed. Even bypassPermissions asks about a
shell command if it is unclear whether a deny or an ask rule applies to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.hooks.verdicts import HookDecision
from dragoman.names import RESERVED
from dragoman.permissions.conditions import BadRule, HintCondition, is_larger
from dragoman.permissions.grants import Granted, is_rememberable
from dragoman.permissions.modes import PermissionMode
from dragoman.permissions.rules import DIGEST_SHORTEST, Behaviour, Call, Rule, ToolRules, key_of, parse
from dragoman.permissions.shell import compare as shell
from dragoman.permissions.shell.pattern import pattern_for

Asks = Literal["person", "classifier"]

HEAVY_PARTS: Final = 200
HEAVY_TEXT: Final = 4000
HEAVY_COMMAND: Final = 500
"""The numbers of values, characters of arguments and characters of a command from which a decision takes
long."""

DEFINITION_CHANGED: Final = "its definition has changed since it was allowed"
"""The reason for a question that front ends may replace by a warning of their own."""


class Considered(Struct, frozen=True):
    """A rule about the tool, and its result for this call."""

    rule: Rule
    matched: bool
    why_not: str | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    behaviour: Behaviour
    reason: str
    rule: Rule | None = None
    """The rule that decided, if one did."""
    has_changed: bool = False
    """Whether the tool was approved with an earlier definition."""
    asks: Asks = "person"
    """Who is asked, if the behaviour is `ask`."""
    is_rememberable: bool = False
    """Whether an approval for longer than this call would prevent the next question."""
    call: Call
    rules: ToolRules

    @property
    def considered(self) -> tuple[Considered, ...]:
        """Every rule about the tool, the strictest first. Computed on demand, because few decisions are
        explained."""
        return tuple(_considered(rule, self.call) for rule in self.rules)


def decide(
    call: Call,
    rules: Sequence[Rule],
    mode: PermissionMode,
    *,
    granted: Granted = "no",
    hook_decision: HookDecision | None = None,
) -> Verdict:
    """Decides about a call. `rules`: any rules; the result of `Rulebook.about` for the call is not searched
    again."""
    tool_rules = _rules_of_tool(rules, call)
    rule = _hit(tool_rules.deny, call)
    if rule is not None:
        return _deny(call, tool_rules, _reason(rule, call), rule)
    if hook_decision is not None and hook_decision.behaviour == "deny":
        return _deny(call, tool_rules, _hook_reason(hook_decision))
    if mode == "plan" and not (call.hints.read_only or call.is_own):
        return _deny(call, tool_rules, "permission mode plan allows only read-only tools")
    rule = _asking(tool_rules.managed_ask, call)
    if rule is not None:
        return _ask(call, tool_rules, mode, _reason(rule, call), rule)
    rule = _allowing(tool_rules.managed_allow, call, tool_rules)
    if rule is not None:
        return _allow(call, tool_rules, rule.description, rule)
    rule = _asking(tool_rules.ask, call)
    if rule is not None:
        return _ask(call, tool_rules, mode, _reason(rule, call), rule)
    if hook_decision is not None and hook_decision.behaviour == "ask":
        return _ask(call, tool_rules, mode, _hook_reason(hook_decision))
    rule = _allowing(tool_rules.allow, call, tool_rules)
    if rule is not None:
        return _allow(call, tool_rules, rule.description, rule)
    if hook_decision is not None:
        return _allow(call, tool_rules, _hook_reason(hook_decision))
    if call.is_own:
        return _allow(call, tool_rules, "it needs no permission by itself")
    if granted == "yes":
        return _allow(call, tool_rules, "allowed by the person for this session")
    if call.is_own_request:
        return _allow(call, tool_rules, "a program's or person's own request needs no rule")
    if call.reads_workspace:
        return _allow(call, tool_rules, "it only reads the folder that the person works in")
    return _by_mode(call, tool_rules, mode, granted)


def is_heavy(call: Call, rules: Sequence[Rule]) -> bool:
    """Whether `decide` may take so long that it should run in a thread, not in the event loop.

    Takes no time if no rule has conditions on arguments, and little for small calls.
    """
    tool_rules = _rules_of_tool(rules, call)
    if tool_rules.compares_commands and call.command is not None and len(call.command) > HEAVY_COMMAND:
        return True
    return tool_rules.compares_arguments and is_larger(call.arguments, HEAVY_PARTS, HEAVY_TEXT)


def _rules_of_tool(rules: Sequence[Rule], call: Call) -> ToolRules:
    if isinstance(rules, ToolRules) and rules.key == key_of(call):
        return rules
    return ToolRules.of(rules, call)


def _by_mode(call: Call, tool_rules: ToolRules, mode: PermissionMode, granted: Granted) -> Verdict:
    """The decision of the mode about a call that nothing else decided."""
    has_changed = granted == "lapsed" or any(rule.digest and rule.is_stale(call) for rule in tool_rules.allow)
    doubt = None if call.command is None else shell.doubt(call.command, tool_rules)
    if mode == "bypassPermissions" and doubt is None:
        return _allow(call, tool_rules, "permission mode bypassPermissions")
    if mode == "dontAsk":
        reason = "permission mode dontAsk refuses what no rule allows"
        return _deny(call, tool_rules, reason, has_changed=has_changed)
    reason = "no rule allows it"
    if call.command is not None:
        reason = doubt or shell.uncovered(call.command, tool_rules)
    elif has_changed:
        reason = DEFINITION_CHANGED
    asks: Asks = "classifier" if mode == "auto" and doubt is None else "person"
    return Verdict(
        behaviour="ask",
        reason=reason,
        has_changed=has_changed,
        asks=asks,
        is_rememberable=is_rememberable(call),
        call=call,
        rules=tool_rules,
    )


def _allow(call: Call, tool_rules: ToolRules, reason: str, rule: Rule | None = None) -> Verdict:
    return Verdict(behaviour="allow", reason=reason, rule=rule, call=call, rules=tool_rules)


def _deny(
    call: Call, tool_rules: ToolRules, reason: str, rule: Rule | None = None, *, has_changed: bool = False
) -> Verdict:
    return Verdict(
        behaviour="deny", reason=reason, rule=rule, has_changed=has_changed, call=call, rules=tool_rules
    )


def _ask(
    call: Call, tool_rules: ToolRules, mode: PermissionMode, reason: str, rule: Rule | None = None
) -> Verdict:
    """A decision to ask, by an ask rule or a hook. It applies to every call again, whatever the answer is."""
    if mode == "dontAsk":
        return _deny(call, tool_rules, f"permission mode dontAsk refuses what would be asked: {reason}", rule)
    return Verdict(behaviour="ask", reason=reason, rule=rule, call=call, rules=tool_rules)


def _reason(rule: Rule, call: Call) -> str:
    reason = rule.reason(call)
    unread = shell.unread(call.command) if rule.shell is not None else None
    return reason if unread is None else f"{reason}; {unread}"


def _hook_reason(hook_decision: HookDecision) -> str:
    verb = {"allow": "allowed", "ask": "a question is required", "deny": "refused"}[hook_decision.behaviour]
    reason = f": {one_line(hook_decision.reason, 500)}" if hook_decision.reason else ""
    return f"{verb} by the hook {one_line(hook_decision.hook, 200)}{reason}"


def _hit(rules: tuple[Rule, ...], call: Call) -> Rule | None:
    """The first deny or ask that applies to the call."""
    for rule in rules:
        if rule.applies(call) and (rule.shell is None or shell.hits(rule.shell, call.command)):
            return rule
    return None


def _asking(rules: tuple[Rule, ...], call: Call) -> Rule | None:
    """The first ask that applies to the call. An ask for everything does not apply to tools that need no
    permission, such as the search for tools."""
    if call.is_own:
        rules = tuple(rule for rule in rules if rule.subject.text.strip("*"))
    return _hit(rules, call)


def _allowing(rules: tuple[Rule, ...], call: Call, tool_rules: ToolRules) -> Rule | None:
    """The first allow that covers the call, or the first of several that cover it together."""
    if call.command is not None:
        return _allowing_command(rules, call, call.command, tool_rules)
    for rule in rules:
        if rule.shell is None and rule.applies(call):
            return rule
    return None


def _allowing_command(
    rules: tuple[Rule, ...], call: Call, command: str, tool_rules: ToolRules
) -> Rule | None:
    patterns = [rule for rule in rules if rule.shell is not None and rule.applies(call)]
    covering = shell.covering(command, patterns, tool_rules)
    if covering:
        return covering[0]
    for rule in rules:
        if rule.shell is None and _may_allow_commands(rule) and rule.applies(call):
            # Even if everything is allowed, a command that a deny may mean is not.
            return rule if shell.doubt(command, tool_rules) is None else None
    return None


def _may_allow_commands(rule: Rule) -> bool:
    """Whether the rule may allow shell commands. A condition on an argument does not parse the command, so it
    allows none."""
    return all(isinstance(each, HintCondition) for each in rule.conditions)


def _considered(rule: Rule, call: Call) -> Considered:
    why_not = rule.why_not(call)
    if why_not is None and rule.shell is not None:
        why_not = shell.why_not(rule, call.command)
    if why_not is None and rule.behaviour == "allow" and call.command is not None:
        why_not = None if _may_allow_commands(rule) else "commands are allowed by Bash(…), not by arguments"
    return Considered(rule, why_not is None, why_not)


def rule_for(call: Call) -> str:
    """The rule that would allow exactly this: the tool with its current definition, or this shell command.

    Empty if no such rule can be written: there is no command, it is too long, or it runs in another folder (a
    rule applies in every folder). It is never a wider rule.
    """
    if call.folder:
        return ""
    text = _written_for(call)
    try:
        parse(text, "allow", scope="user", source="")
    except BadRule:
        return ""
    return text


def server_rule_for(call: Call) -> str:
    """The rule that would allow every tool of the call's server, and no other tool; empty if none can be
    written."""
    if not call.server or "*" in call.server:
        return ""
    text = f"{RESERVED}{call.server}"
    try:
        rule = parse(text, "allow", scope="user", source="")
    except BadRule:
        return ""
    return text if rule.is_bare and rule.is_about(call) else ""


def _written_for(call: Call) -> str:
    if call.command is not None:
        return f"{call.tool}({pattern_for(call.command)})"
    if not call.server:
        return call.tool
    return f"{call.tool}@{call.digest[:DIGEST_SHORTEST]}" if call.digest else call.tool

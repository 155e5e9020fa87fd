r"""Permission rules: how they are written, and which calls they are about. Pure.

Contains the grammar, rules as values, the check whether a rule applies to a call, and the collection of all
rules. `decide.py` combines several rules.

    rule       = ( tools | shell ) ;
    tools      = subject , [ "@" , digest ] , [ "(" , condition , { "," , condition } , ")" ] ;
    shell      = "Bash" , [ "@" , digest ] , [ "(" , words of a command , ")" ] ;
    subject    = "mcp__" , server                        every tool of the server
               | "mcp__" , server , "__" , tool          one tool; * anywhere matches any run of characters
               | name of a built-in tool                 with * likewise
               | "*" ;                                   everything
    digest     = 32 or more hexadecimal digits ;         the beginning of the digest of the tool's definition
    condition  = [ "!" ] , ( "readOnly" | "destructive" | "idempotent" | "openWorld" )
               | argument , ( "=" | "!=" ) , value ;
    argument   = name , { "." , name } ;                 dots lead into objects, and through lists
    value      = text without , ) "                      * matches any run of characters
               | '"' , text with \" \\ \* for the characters themselves , '"' ;

`subjects.py`, `conditions.py` and `shell/pattern.py` read the parts. In doubt an allow does not apply, and a
deny or an ask does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, structs

from dragoman.catalog.annotations import Hints
from dragoman.cleaning import one_line
from dragoman.config.schema import PermissionRules
from dragoman.interaction import LOCAL_CALLER, Caller
from dragoman.names import RESERVED
from dragoman.permissions.conditions import ArgumentCondition, BadRule, Condition, read_conditions
from dragoman.permissions.patterns import fold
from dragoman.permissions.shell.pattern import ShellPattern, read_pattern
from dragoman.permissions.subject_form import SHELL, UNFINISHED, check_single, check_subject, subjects_meant
from dragoman.permissions.subjects import Subject

__all__ = ["BEHAVIOURS", "BadRule", "Behaviour", "Call", "Rule", "Rulebook", "ToolRules", "parse"]

Behaviour = Literal["allow", "ask", "deny"]
BEHAVIOURS: Final[tuple[Behaviour, ...]] = ("deny", "ask", "allow")
"""The behaviours of rules, the strictest first."""

LENGTH_LIMIT: Final = 20_000
DIGEST_SHORTEST: Final = 32
_CACHED_TOOLS: Final = 50_000
_RULES_COMPARED: Final = 100
"""How many rules are compared with the names of servers, to find those that have no effect."""

_DIGEST = re.compile(r"@([0-9a-fA-F]+)\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Call(Struct, frozen=True, kw_only=True):
    """A call as permission rules and classifiers see it, before it is made."""

    tool: str
    """Its name in the pool: `mcp__server__tool`, or a built-in's."""
    server: str = ""
    """The server's configured name; empty for a built-in tool."""
    wire_name: str = ""
    """The wire name of the tool."""
    arguments: Mapping[str, Any] = {}
    by_other_names: Mapping[str, Any] | None = None
    """The arguments with all other names of the same file: rules that deny or ask apply to them as well."""
    hints: Hints = Hints()
    digest: str = ""
    """The digest of the tool's definition, in hexadecimal digits."""
    command: str | None = None
    """The shell command."""
    folder: str = ""
    """The folder in which the shell would run it, if it is not the person's working directory."""
    is_own: bool = False
    """Whether it is a built-in tool that needs no permission of its own: it reads only the host, or its
    actions are checked call by call."""
    target_server: str = ""
    """The server that a built-in tool deals with: rules that deny or ask about the whole server apply."""
    target_name: str = ""
    """The name of the resource or prompt on that server."""
    is_own_request: bool = False
    """Whether a program or person, not a model, requests a resource, a prompt or a list."""
    reads_workspace: bool = False
    """Whether it is a built-in tool that only reads the person's working directory."""
    caller: Caller = LOCAL_CALLER


class Rule(Struct, frozen=True):
    text: str
    """The rule as it was written."""
    behaviour: Behaviour
    scope: str
    source: str
    """The file that contains it, or "code"."""
    subject: Subject
    description: str
    """The rule in messages to people: behaviour, text, scope and file."""
    digest: str = ""
    conditions: tuple[Condition, ...] = ()
    shell: ShellPattern | None = None

    @property
    def is_managed(self) -> bool:
        return self.scope == "enterprise"

    @property
    def is_bare(self) -> bool:
        """Whether it applies to every call of its tools."""
        return not self.conditions and not self.digest and self.shell is None

    @property
    def ignores_arguments(self) -> bool:
        """Whether it applies to all calls of a tool or to none, whatever the arguments."""
        return self.shell is None and not self.compares_arguments

    @property
    def compares_arguments(self) -> bool:
        return any(isinstance(each, ArgumentCondition) for each in self.conditions)

    @property
    def excludes_arguments(self) -> bool:
        """Whether it applies to all but some arguments."""
        return any(isinstance(each, ArgumentCondition) and each.is_negated for each in self.conditions)

    def is_about(self, call: Call) -> bool:
        """Whether it could concern the tool, whatever the arguments."""
        if self.behaviour == "allow":
            return self.subject.means(call.tool, call.server, call.wire_name)
        return self.subject.may_mean(call.tool, call.server, call.wire_name)

    def is_stale(self, call: Call) -> bool:
        """Whether it allowed an earlier definition of the tool."""
        return self.behaviour == "allow" and bool(call.digest) and not call.digest.startswith(self.digest)

    def why_not(self, call: Call) -> str | None:
        """Why it does not apply to a call of its tool; None if it does. Shell patterns are judged
        elsewhere."""
        if self.digest and self.behaviour == "allow" and not call.digest.startswith(self.digest):
            return "the tool's definition is not the one that was allowed"
        is_allow = self.behaviour == "allow"
        for condition in self.conditions:
            if not condition.holds(call.arguments, call.hints, carefully=is_allow):
                return f"{one_line(condition.spelled(), 200)} is not met{self._size_note(call)}"
        return None

    def reason(self, call: Call) -> str:
        """The reason of a decision by this rule."""
        return self.description + self._size_note(call)

    def _size_note(self, call: Call) -> str:
        is_allow = self.behaviour == "allow"
        for each in self.conditions:
            if isinstance(each, ArgumentCondition) and each.is_beyond(call.arguments, carefully=is_allow):
                return "; there is too much in the arguments to compare it"
        return ""

    def applies(self, call: Call) -> bool:
        """Whether the rule applies to a call of its tool; executed for every call."""
        if self.is_bare:
            return True
        is_allow = self.behaviour == "allow"
        if is_allow and self.digest and not call.digest.startswith(self.digest):
            return False
        return all(each.holds(call.arguments, call.hints, carefully=is_allow) for each in self.conditions)

    def spelled(self) -> str:
        """The rule in a canonical spelling: rules that mean exactly the same have the same spelling."""
        digest = f"@{self.digest}" if self.digest else ""
        inside = ""
        if self.shell is not None:
            inside = f"({self.shell.text})"
        elif self.conditions:
            inside = f"({', '.join(condition.spelled() for condition in self.conditions)})"
        return f"{self.subject.text}{digest}{inside}"


def parse(text: str, behaviour: Behaviour, *, scope: str, source: str) -> Rule:
    """Parses a rule; raises `BadRule` with an explanation."""
    written, text = text, text.strip()
    if not text:
        raise BadRule("a rule is empty; write mcp__server, mcp__server__tool or Bash(command)")
    if len(text) > LENGTH_LIMIT:
        raise BadRule(f"a rule has at most {LENGTH_LIMIT} characters")
    head, opening, inside = text.partition("(")
    name, digest = _read_head(head.strip())
    check_subject(name, is_allow=behaviour == "allow")
    conditions: tuple[Condition, ...] = ()
    shell: ShellPattern | None = None
    if opening:
        if not inside.endswith(")"):
            raise BadRule("there is no closing parenthesis at the end")
        if fold(name) == SHELL.lower():
            check_single(inside[:-1])
            shell = read_pattern(inside[:-1], is_allow=behaviour == "allow")
        else:
            conditions = read_conditions(inside)
    description = _description(behaviour, text, scope, source)
    subject = Subject.of(name)
    return Rule(written, behaviour, scope, source, subject, description, digest, conditions, shell)


def parse_prohibited_tool(text: str) -> Subject:
    """Which tools a text prohibits that names them as a deny rule does; raises `BadRule` with an
    explanation, also for a part of a tool's calls."""
    rule = parse(text, "deny", scope="", source="")
    if not rule.is_bare:
        raise BadRule("only whole tools are named here; for some calls of a tool write a deny rule")
    return rule.subject


def _read_head(head: str) -> tuple[str, str]:
    """The subject, and the digest if there is one."""
    name, digest = head, ""
    found = _DIGEST.search(head)
    if found:
        name, digest = head[: found.start()].rstrip(), found[1].lower()
        if len(digest) < DIGEST_SHORTEST:
            raise BadRule(f"after @ there must be at least {DIGEST_SHORTEST} digits of the tool's digest")
    if not name:
        raise BadRule("there is no tool name before the parenthesis or the @; for every tool write *")
    if ")" in name or _CONTROL.search(name):
        raise BadRule("the name of a tool has no closing parenthesis and no control characters")
    if UNFINISHED.fullmatch(name):
        raise BadRule("a server or a tool is missing; write mcp__server or mcp__server__tool")
    return name, digest


def _description(behaviour: Behaviour, text: str, scope: str, source: str) -> str:
    return f"{behaviour} rule {one_line(text, 300)} of {scope} ({one_line(source, 300)})"


Key = tuple[str, str, str]


class ToolRules(tuple[Rule, ...]):
    """The rules about one tool, sorted by what they do."""

    key: Key
    deny: tuple[Rule, ...]
    managed_ask: tuple[Rule, ...]
    managed_allow: tuple[Rule, ...]
    ask: tuple[Rule, ...]
    allow: tuple[Rule, ...]
    always_allows: Rule | None
    """The rule that allows every call of a server's tool: no rule denies or asks, and the first allow has no
    condition. (Mode plan and hooks may still refuse.)"""
    compares_arguments: bool
    compares_commands: bool

    @staticmethod
    def of(rules: Iterable[Rule], call: Call) -> ToolRules:
        about = [rule for rule in rules if rule.is_about(call)]
        about.sort(key=lambda rule: (BEHAVIOURS.index(rule.behaviour), not rule.is_managed))
        self = ToolRules(about)
        self.key = key_of(call)
        self.deny = tuple(rule for rule in about if rule.behaviour == "deny")
        self.managed_ask = tuple(rule for rule in about if rule.behaviour == "ask" and rule.is_managed)
        self.managed_allow = tuple(rule for rule in about if rule.behaviour == "allow" and rule.is_managed)
        self.ask = tuple(rule for rule in about if rule.behaviour == "ask")
        self.allow = tuple(rule for rule in about if rule.behaviour == "allow")
        first = self.allow[0] if self.allow and not self.deny and not self.ask else None
        self.always_allows = first if first is not None and first.is_bare else None
        self.compares_arguments = any(rule.compares_arguments for rule in about)
        self.compares_commands = any(rule.shell is not None for rule in about)
        return self


def key_of(call: Call) -> Key:
    return call.tool, call.server, call.wire_name


class Rulebook:
    """All rules in effect."""

    def __init__(self, rules: Iterable[Rule] = (), problems: Iterable[str] = ()) -> None:
        self.rules = tuple(rules)
        self.problems = tuple(problems)
        """Descriptions of the rules that could not be read, and of what applies instead."""
        self._about: dict[Key, ToolRules] = {}

    @staticmethod
    def of(
        parts: Iterable[tuple[str, str, PermissionRules]],
        *,
        servers: Collection[str] = (),
        chosen: Collection[str] = (),
    ) -> Rulebook:
        """`servers`: the names of the configured servers; a deny or an ask whose server is not among them,
        but is similar to one, is a problem. `chosen`: the names that were not chosen by a project; such a
        rule most probably means one of them."""
        rules: list[Rule] = []
        problems: list[str] = []
        for scope, source, given in parts:
            for behaviour in BEHAVIOURS:
                for text in getattr(given, behaviour):
                    names = (servers, chosen) if len(rules) < _RULES_COMPARED else ((), ())
                    _add(text, behaviour, scope, source, rules, problems, names)
        return Rulebook(rules, problems)

    def about(self, call: Call) -> ToolRules:
        """The rules that could concern the tool, the strictest first."""
        return self.about_tool(call.tool, call.server, call.wire_name)

    def about_tool(self, tool: str, server: str, wire_name: str) -> ToolRules:
        key = tool, server, wire_name
        found = self._about.get(key)
        if found is None:
            if len(self._about) >= _CACHED_TOOLS:
                self._about.clear()
            call = Call(tool=tool, server=server, wire_name=wire_name)
            found = self._about[key] = ToolRules.of(self.rules, call)
        return found


def _add(
    text: str,
    behaviour: Behaviour,
    scope: str,
    source: str,
    rules: list[Rule],
    problems: list[str],
    names: tuple[Collection[str], Collection[str]],
) -> None:
    servers, chosen = names
    try:
        rule = parse(text, behaviour, scope=scope, source=source)
        others = [] if behaviour == "allow" else list(_meant_instead(rule, chosen))
        rules.extend((rule, *others))
        if behaviour == "allow" or (reason := rule.subject.why_without_effect(servers)) is None:
            return
        held = " and ".join(one_line(each.subject.text, 200) for each in others)
        effect = f"until it is corrected it applies to {held}, too" if others else "it has no effect"
    except BadRule as error:
        reason = str(error)
        replacements = [] if behaviour == "allow" else _replacements(text, behaviour, scope, source)
        replacements += [other for each in replacements for other in _meant_instead(each, chosen)]
        rules.extend(replacements)
        held = " and ".join(one_line(each.subject.text, 200) for each in replacements)
        effect = (
            f"until it is corrected it applies to all calls of {held}" if replacements else "it is left out"
        )
    problems.append(f"{one_line(source)}: {behaviour} rule {one_line(text, 200)!r}: {reason}; {effect}")


def _meant_instead(rule: Rule, chosen: Collection[str]) -> Iterator[Rule]:
    """The rule that a deny or an ask most probably means, if it names no configured server."""
    meant = rule.subject.meant_instead(chosen)
    if meant is not None and meant.is_certain:
        yield structs.replace(rule, subject=Subject.of(meant.subject))


def _replacements(text: str, behaviour: Behaviour, scope: str, source: str) -> list[Rule]:
    """The rules that replace a deny or an ask that cannot be read: for its tools, whatever the arguments.

    If the tools cannot be read either, an administrator's rule applies to everything, because it was meant to
    restrict something. So does a rule that begins with `!`, which may mean all other tools.
    """
    text_read = text.strip()[:LENGTH_LIMIT]
    names = subjects_meant(text_read)
    if scope == "enterprise" and (text_read.startswith("!") or not names):
        names = ["*"]
    description = _description(behaviour, f"{text!r} (which cannot be read)", scope, source)
    return [Rule(text, behaviour, scope, source, Subject.of(each), description) for each in names]


_PATH_ARGUMENTS: Final = frozenset({"file_path", "path", "file", "filepath"})
"""Arguments of built-in tools that are paths, folded."""


def without_effect(rules: Iterable[Rule], tools: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Descriptions of rules that deny or ask about a built-in tool and apply to no call: there is no such
    tool, or it has no such argument. `tools`: the arguments of each, by name."""
    prohibiting = [rule for rule in rules if rule.behaviour != "allow"]
    elsewhere = {rule.text for rule in prohibiting if rule.subject.text.startswith((RESERVED, "*"))}
    for rule in prohibiting:
        if "*" in rule.subject.text or fold(rule.subject.text).startswith(RESERVED) or rule.text in elsewhere:
            continue
        found = [name for name in tools if rule.subject.may_mean(name, "", "")]
        arguments = {fold(each): each for name in found for each in tools[name]}
        wanted = [
            each for each in rule.conditions if isinstance(each, ArgumentCondition) and not each.is_negated
        ]
        missing = next((each for each in wanted if fold(each.path[0]) not in arguments), None)
        paths = (each.glob for each in wanted if fold(each.path[0]) in _PATH_ARGUMENTS)
        variable = next(filter(None, (glob.variable for glob in paths)), None)
        if not found:
            yield f"{rule.description}: no built-in tool has that name; it has no effect"
        elif missing is not None:
            argument, known = one_line(".".join(missing.path), 80), ", ".join(arguments.values())
            reason = f"{found[0]} has no argument {argument} (it has {known})"
            yield f"{rule.description}: {reason}; it has no effect"
        elif variable is not None:
            reason = f"rules replace $HOME and no other variable, such as {one_line(variable, 80)}"
            yield f"{rule.description}: {reason}; it has no effect"

r"""Compares shell rules such as `Bash(git *)` with a command.

Decides whether a deny or an ask applies to a command, and whether allows cover all of it. Every simple
command of a text must be allowed by itself. An unclear text, a redirection to a file, and programs that run
other programs are covered by no wildcard; a rule that is exactly the text covers it, whatever it is. A deny
also applies to other ways to start a program: `command git`, `\git`, `/usr/bin/git`, `env git`, `sh -c 'git
…'`, `xargs git`. Where the program that runs cannot be seen, as with `sh ./script`, `… | sh` or `GIT_SSH=…
git fetch`, it is in doubt whether a deny or an ask applies, if there is any.

To allow a program means to allow everything that it does: `Bash(python *)` allows every program there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.paths import normal_path
from dragoman.permissions.conditions import TEXT_LIMIT
from dragoman.permissions.rules import Rule
from dragoman.permissions.shell.nested_programs import (
    PROGRAM,
    SHELLS,
    STARTERS,
    base,
    git_subcommand,
    is_duration,
    may_change_programs,
    may_run_named_program,
    may_run_unknown_program,
    started,
    undashed,
)
from dragoman.permissions.shell.options import hits_past_options, may_hit_past_options
from dragoman.permissions.shell.pattern import (
    FILES,
    UNKNOWN,
    ShellPattern,
    is_known,
    spaced,
)
from dragoman.permissions.shell.script import NO_PARSER, Script, SimpleCommand, parse_script

_SUFFIXES: Final = 64
"""How many of a starter's arguments are compared as the possible program, for a deny."""
_NESTED: Final = 3


def hits(pattern: ShellPattern, command: str | None) -> bool:
    """Whether a deny or an ask applies to the command or a part of it. It always applies to a command that is
    too long to be compared, and to every command if there is no parser."""
    if command is None or len(command) > TEXT_LIMIT or pattern.is_exactly(command):
        return True
    script = parse_script(command)
    return script.is_unread or any(_hits(each, command, script) for each in pattern.readings)


def _hits(pattern: ShellPattern, command: str, script: Script) -> bool:
    if pattern.is_any or pattern.hits(command.split()) or pattern.hits(spaced(command).split()):
        return True
    return any(
        pattern.hits(words) or hits_past_options(pattern, words)
        for each in script.commands
        for words in _readings(each.words)
    )


def covering(command: str, allows: Sequence[Rule], rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The allow rules that together cover the command; empty if any part is not covered. `rules`: all rules
    for the shell."""
    for rule in allows:
        if rule.shell is not None and rule.shell.is_exactly(command):
            return (rule,)
    for rule in allows:
        if rule.shell is not None and rule.shell.is_any:
            return (rule,) if doubt(command, rules) is None else ()
    script = parse_script(command)
    if script.unclear is not None or script.redirection is not None:
        return ()
    strict = _strict_patterns(rules)
    covering: list[Rule] = []
    for each in script.commands:
        rule = _covering_one(each, allows)
        if rule is None or _may_be_hit(each, strict):
            return ()
        covering.append(rule)
    return tuple(dict.fromkeys(covering))


def doubt(command: str, rules: Sequence[Rule]) -> str | None:
    """Why it is unclear whether a deny or an ask applies to the command; None if it is clear that none
    does."""
    strict = _strict_patterns(rules)
    if not strict:
        return None
    script = parse_script(command)
    if script.unclear is not None:
        return f"it cannot be compared with the rules for the shell: {one_line(script.unclear, 200)}"
    for each in script.commands:
        rule = _may_be_hit(each, strict)
        if rule is not None:
            return (
                f"parts of it are known only when it runs, and may be what a rule means: {rule.description}"
            )
        if may_change_programs(each.assignments) or may_run_unknown_program(each.words):
            description = strict[0].rule.description
            return f"what {_shown(each)} runs cannot be compared with the rules for the shell: {description}"
    return None


def uncovered(command: str, rules: Sequence[Rule]) -> str:
    """Describes the part of the command that no rule allows."""
    script = parse_script(command)
    if script.unclear is not None:
        return f"it cannot be split into parts: {one_line(script.unclear, 200)}"
    allows = [rule for rule in rules if rule.behaviour == "allow" and rule.shell is not None]
    for each in script.commands:
        if _covering_one(each, allows) is None:
            return f"no rule allows {_shown(each)}"
    if script.redirection is not None:
        return f"no rule allows the redirection {one_line(script.redirection, 200)}"
    return "no rule allows it"


def why_not(rule: Rule, command: str | None) -> str | None:
    """Why a shell rule alone does not apply to the command; None if it does."""
    if rule.shell is None or command is None:
        return None if rule.behaviour != "allow" else "there is no command"
    if rule.behaviour != "allow":
        return None if hits(rule.shell, command) else "no part of the command is meant"
    if covering(command, [rule], []):
        return None
    script = parse_script(command)
    if script.is_unread or any(_covers(rule.shell, each) for each in script.commands):
        return f"it does not allow all of the command: {uncovered(command, [rule])}"
    return "no part of the command is meant"


def _shown(command: SimpleCommand) -> str:
    return one_line(" ".join(command.all_words).replace(UNKNOWN, "…").replace(FILES, "…"), 200)


def unread(command: str | None) -> str | None:
    """Why the parts of the command are unknown, if there is no parser."""
    return NO_PARSER if command is not None and parse_script(command).is_unread else None


class _Strict(Struct, frozen=True):
    rule: Rule
    pattern: ShellPattern


def _strict_patterns(rules: Sequence[Rule]) -> list[_Strict]:
    return [
        _Strict(rule, reading)
        for rule in rules
        if rule.behaviour != "allow" and rule.shell is not None
        for reading in rule.shell.readings
    ]


def _may_be_hit(command: SimpleCommand, strict: Sequence[_Strict]) -> Rule | None:
    if not strict or all(map(is_known, command.words)):
        return None
    readings = list(_readings(command.words))
    for each in strict:
        pattern = each.pattern
        if any(pattern.may_hit(words) or may_hit_past_options(pattern, words) for words in readings):
            return each.rule
    return None


def _covering_one(command: SimpleCommand, allows: Sequence[Rule]) -> Rule | None:
    """The allow for one simple command: exact before wildcard."""
    found = [rule for rule in allows if rule.shell is not None and _covers(rule.shell, command)]
    return min(found, key=lambda rule: rule.shell is None or rule.shell.exact is None, default=None)


def _covers(pattern: ShellPattern, command: SimpleCommand) -> bool:
    """Whether the pattern covers the command, or the command that a plain starter starts."""
    words = command.words
    while not _covers_plainly(pattern, command):
        words = () if command.assignments else started(words)
        if not words:
            return False
        command = SimpleCommand(words)
    return True


def _covers_plainly(pattern: ShellPattern, command: SimpleCommand) -> bool:
    if not pattern.covers(command.all_words, len(command.assignments)):
        return False
    if pattern.exact is not None or not may_run_named_program(command.words):
        return True
    return _names_what_starts(pattern, command)


def _names_what_starts(pattern: ShellPattern, command: SimpleCommand) -> bool:
    """Whether wildcards come only after the name of the started program: `sudo apt *`."""
    if command.assignments or command.words[0] not in STARTERS:
        return False
    count = 3 if command.words[0] == "timeout" else 2
    head = pattern.words[:count]
    if len(head) < count or not all(word.is_exact for word in head):
        return False
    inner = command.words[count - 1 :]
    has_time = count == 2 or is_duration(command.words[1])
    return has_time and PROGRAM.fullmatch(inner[0]) is not None and not may_run_named_program(inner)


def _readings(words: Sequence[str], depth: int = 0) -> Iterator[Sequence[str]]:
    """The forms of a command that a deny may mean: itself, with its bare program name, and every command that
    it would start."""
    if not words:
        return
    yield words
    bare = (base(words[0]), *words[1:])
    yield bare
    if "/" in words[0]:
        yield (normal_path(words[0]), *words[1:])
    if (plain := undashed(words)) is not words:
        yield plain
    elif bare[0] == "git" and (at := git_subcommand(words)) < len(words):
        yield (f"git-{words[at]}", *words[at + 1 :])
    if depth >= _NESTED or not (may_run_named_program(words) or bare[0] in SHELLS):
        return
    for start in range(1, min(len(words), _SUFFIXES)):
        rest = words[start:]
        yield rest
        yield (base(rest[0]), *rest[1:])
        if "/" in rest[0]:
            yield (normal_path(rest[0]), *rest[1:])
        yield undashed(rest)
        if bare[0].startswith("git"):  # `git bisect view push` runs `git push`
            yield ("git", *rest)
    for text in (*words[1:], " ".join(words[1:])):
        if " " in text or "\t" in text or "\n" in text or ";" in text or bare[0] in SHELLS:
            for each in parse_script(text.replace(UNKNOWN, "$_").replace(FILES, "?")).commands:
                yield from _readings(each.words, depth + 1)

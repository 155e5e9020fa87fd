"""Reads the policy lists of all files into one `Policy`. Pure.

A rule that cannot be understood never admits a server; a deny rule denies what can be read of it, or
everything. `Policy.problems` describes errors. No content of a file raises an exception here.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from msgspec import UNSET, Struct, structs

from dragoman.cleaning import one_line
from dragoman.config.masking import masked_url, masked_words
from dragoman.config.model import PROBLEM_LIMIT
from dragoman.config.policy import (
    ADMITTED_VARIABLES,
    ALLOWED,
    DENIED,
    Kind,
    Policy,
    PolicyRule,
    place,
)
from dragoman.errors import ConfigError
from dragoman.names import separate_names
from dragoman.paths import normal_path
from dragoman.urls import UrlPattern, parse_pattern

_KINDS: Final[dict[str, Kind]] = {"serverName": "name", "serverUrl": "url", "serverCommand": "command"}
_MAY_ALLOW: Final = ("enterprise", "user")
_MANY_PROGRAMS: Final = frozenset({"busybox", "toybox", "coreutils"})
"""Executables that contain many programs, each started through a link: the file does not show which one is
meant."""
_VARIABLE: Final = re.compile(r"\$\{[^}]*(?:\}|\Z)|\$[A-Za-z_][A-Za-z0-9_]*")


class PolicyPart(Struct, frozen=True, kw_only=True):
    """The policy lists of one file, as read."""

    scope: str
    source: str
    allowed: Any = UNSET
    denied: Any = UNSET
    managed_only: Any = UNSET
    """Whether only the administrator's allow list applies. Used in scope `enterprise`."""
    environment: tuple[str, ...] = ()
    """Names of variables that entries may set beside an allowed command."""


def gather(
    parts: Iterable[PolicyPart],
    *,
    broken: str | None = None,
    servers: Iterable[str] = (),
    resolve: Callable[[str], str] = str,
) -> Policy:
    """Combines the policy lists of the files. Errors in them are in `problems`.

    `servers`: the names that the person, the program or the administrator chose; `resolve`: gives the real
    path of a path.
    """
    parts = tuple(parts)
    names = frozenset(servers)
    problems: list[str] = []
    denied = [
        other
        for part in parts
        for rule in _deny_rules(part, problems)
        for other in _spellings(rule, names, resolve)
    ]
    allowing = _parts_that_allow(parts, problems)
    lists = [(part.source, _allow_list(part, problems)) for part in allowing if part.allowed is not UNSET]
    allowed = [rule for source, entries in lists for rule in _rules(entries, source, ALLOWED, problems)]
    keys = {key for _, entries in lists for entry in entries for key in _keys(entry)}
    return Policy(
        denied=tuple(denied),
        allowed=tuple(allowed) if lists else None,
        broken=broken,
        problems=tuple(problems),
        urls_decide="serverurl" in keys,
        commands_decide="servercommand" in keys,
        environment=(*ADMITTED_VARIABLES, *(name for part in allowing for name in part.environment)),
    )


def _parts_that_allow(parts: tuple[PolicyPart, ...], problems: list[str]) -> list[PolicyPart]:
    """The parts whose allow lists and names of variables apply."""
    for part in parts:
        if part.allowed is not UNSET and part.scope not in _MAY_ALLOW:
            problems.append(
                f"{place(part.source, ALLOWED)}: ignored: scope {one_line(part.scope, 60)} cannot allow"
            )
    managed = [part for part in parts if part.scope == "enterprise"]
    if not _managed_only(parts, problems):
        return managed + [part for part in parts if part.scope == "user"]
    if all(part.allowed is UNSET for part in managed):
        problems.append(f"only the managed {ALLOWED} is used, and there is none: no server is restricted")
    return managed


def _managed_only(parts: tuple[PolicyPart, ...], problems: list[str]) -> bool:
    answer = False
    for part in parts:
        if part.managed_only is UNSET:
            continue
        if part.scope != "enterprise":
            problems.append(
                f"{one_line(part.source)}: the managed-only setting applies in managed files only"
            )
            continue
        if not isinstance(part.managed_only, bool):
            problems.append(
                f"{one_line(part.source)}: the managed-only setting is not true or false: taken as true"
            )
        answer = answer or part.managed_only is not False
    return answer


def _allow_list(part: PolicyPart, problems: list[str]) -> list[Any]:
    entries = _as_list(part.allowed)
    if entries is None:
        problems.append(f"{place(part.source, ALLOWED)}: not a list: nothing is allowed by it")
    return entries or []


def _deny_rules(part: PolicyPart, problems: list[str]) -> Iterator[PolicyRule]:
    if part.denied is UNSET:
        return
    entries = _as_list(part.denied)
    if entries is not None:
        yield from _rules(entries, part.source, DENIED, problems)
        return
    problems.append(f"{place(part.source, DENIED)}: not a list: everything is denied")
    yield PolicyRule("name", "*", part.source, f"{DENIED}, which is not a list,")


def _spellings(
    rule: PolicyRule, servers: frozenset[str], resolve: Callable[[str], str]
) -> Iterator[PolicyRule]:
    """A deny rule, and other rules that it may mean: several names, or a command, in one text; a program in
    other spellings of its path."""
    yield rule
    values: list[str | tuple[str, ...]] = []
    if isinstance(rule.value, str):
        values += separate_names(rule.value, servers)
    elif isinstance(rule.value, tuple):
        for words in dict.fromkeys((rule.value, _words_meant(rule.value))):
            values += [(program, *words[1:]) for program in _program_spellings(words[0], resolve)]
    for value in dict.fromkeys(values):
        if value != rule.value:
            yield structs.replace(rule, value=value)


def _words_meant(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words as a shell would split them, without quotes and blanks around them."""
    text = " ".join(words)
    try:
        return tuple(shlex.split(text)) or words
    except ValueError:  # a quote that does not end
        return tuple(text.split()) or words


def _program_spellings(program: str, resolve: Callable[[str], str]) -> Iterator[str]:
    """A program as written, with a normalized path, and with the links of its folder and of itself resolved.
    After the first `*` nothing can be resolved."""
    yield program
    path = posixpath.expanduser(program)
    if "/" not in path:
        return
    path = normal_path(path)
    yield path
    folder, _, name = path.partition("*")[0].rpartition("/")
    if folder:
        yield normal_path(posixpath.join(resolve(folder), path[len(folder) + 1 :]))
    if "*" not in path and name and posixpath.basename(real := resolve(path)) not in _MANY_PROGRAMS:
        yield real


def _as_list(said: Any) -> list[Any] | None:
    return list(cast("list[Any]", said)) if isinstance(said, list | tuple) else None


def _rules(entries: Iterable[Any], source: str, field: str, problems: list[str]) -> Iterator[PolicyRule]:
    """The rules of a list. In an allow list, an entry that cannot be read admits nothing; in a deny list, it
    denies what can be read of it, or everything."""
    wrong = 0
    for number, entry in enumerate(entries):
        deny = field == DENIED
        try:
            yield _rule(_meant(entry) if deny else entry, source, deny=deny)
        except ConfigError as error:
            wrong += 1
            found = list(_readable_rules(entry, source)) if deny else []
            if wrong <= PROBLEM_LIMIT:
                effect = "" if found or not deny else "; everything is denied until it is corrected"
                problems.append(f"{place(source, f'{field}[{number}]')}: {error}{effect}")
            if deny:
                everything = PolicyRule("name", "*", source, f"{DENIED}[{number}], which cannot be read,")
                yield from found or [everything]
    if wrong > PROBLEM_LIMIT:
        problems.append(f"{place(source, field)}: and {wrong - PROBLEM_LIMIT} more problems")


def _meant(entry: Any) -> Any:
    """A deny entry in its intended form: a plain name, or a key in another spelling, denies as well."""
    if isinstance(entry, str):
        return {"serverName": entry}
    if not isinstance(entry, dict):
        return entry
    pairs = cast("dict[Any, Any]", entry).items()
    return {_KEYS_MEANT.get(str(key).casefold(), key): value for key, value in pairs}


def _readable_rules(entry: Any, source: str) -> Iterator[PolicyRule]:
    """The rules of a deny entry in the wrong form: one for each known key and each of its values."""
    meant = _meant(entry)
    pairs = cast("dict[str, Any]", meant).items() if isinstance(meant, dict) else ()
    for key, value in pairs:
        if key in _KINDS:
            for each in _values_meant(key, value):
                with contextlib.suppress(ConfigError):
                    yield _rule({key: each}, source, deny=True)


def _values_meant(key: str, value: Any) -> list[Any]:
    if key != "serverCommand":
        return _as_list(value) or [value]
    try:
        return [shlex.split(value)] if isinstance(value, str) else [value]
    except ValueError:  # a quote that does not end
        return []


_KEYS_MEANT: Final = {
    **{key.casefold(): key for key in _KINDS},
    **{kind: key for key, kind in _KINDS.items()},
}


def _rule(entry: Any, source: str, *, deny: bool) -> PolicyRule:
    key, said = _only_pair(entry)
    kind = _KINDS[key]
    words = _words(key, said)
    text = ", ".join(f'"{one_line(word, 200)}"' for word in _shown(kind, words))
    if not deny and any("${" in word for word in words):
        raise ConfigError("variables are not expanded in policy, so this entry admits nothing")
    if deny:
        words = tuple(_VARIABLE.sub("*", word) for word in words)
    if kind == "command":
        return PolicyRule(kind, words, source, f"{key} [{text}]")
    value = _url_pattern(words[0], variable=words[0] != said) if kind == "url" else words[0]
    return PolicyRule(kind, value, source, f"{key} {text}")


def _shown(kind: Kind, words: tuple[str, ...]) -> list[str]:
    """The words without secrets: a rule that means a server repeats its command or its URL, and is named in
    reasons, which models read too."""
    if kind == "url":
        return [masked_url(word) for word in words]
    return masked_words(list(words)) if kind == "command" else list(words)


def _url_pattern(text: str, *, variable: bool) -> UrlPattern:
    # A variable may contain the scheme too, as in `${BASE}/mcp`.
    return parse_pattern(f"*://{text}" if variable and "://" not in text else text)


def _only_pair(entry: Any) -> tuple[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError("not an object with serverName, serverUrl or serverCommand")
    pairs = list(cast("dict[str, Any]", entry).items())
    if len(pairs) != 1:
        raise ConfigError("needs exactly one of serverName, serverUrl and serverCommand, and nothing else")
    key, said = pairs[0]
    if key not in _KINDS:
        raise ConfigError(f"{one_line(str(key), 60)} is none of serverName, serverUrl and serverCommand")
    return key, said


def _words(key: str, said: Any) -> tuple[str, ...]:
    """The strings of an entry: a single one, or the words of a command."""
    if key != "serverCommand":
        if not isinstance(said, str) or not said.strip(" ,"):
            raise ConfigError(f"{key} is not a text")
        return (said,)
    words = _as_list(said)
    if not words or not words[0] or not all(isinstance(word, str) for word in words):
        raise ConfigError("serverCommand is not a list of words")
    return tuple(words)


def _keys(entry: Any) -> Iterator[str]:
    """The keys of an entry, even an invalid one: a misspelled serverUrl still shows the intention."""
    if isinstance(entry, dict):
        yield from (str(key).casefold() for key in cast("dict[Any, Any]", entry))

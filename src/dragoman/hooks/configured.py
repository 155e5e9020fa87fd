"""Hooks from configuration files.

Reads the key `hooks` of the person's and the administrator's file, entry by entry; an entry that cannot be
used is reported with its position. Files in a project have no such key: they may come from unknown authors,
and a hook is a program that runs without permission.

A person's hook that cannot be read is left out. An administrator's hook, or a hook that blocks on errors, is
kept: if its matcher cannot be read it applies to everything, and if it cannot be run it blocks. A hook with a
condition that Dragoman cannot evaluate (`if`) never runs; on an event that decides about calls it blocks, in
every scope.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.config.expand import expand_entry, variables_in
from dragoman.config.files import FileSettings, Problems
from dragoman.errors import ConfigError
from dragoman.hooks import matchers
from dragoman.hooks.declared import (
    LONGEST_TIMEOUT_SECONDS,
    TIMEOUT_SECONDS,
    CommandHook,
    Hook,
    HttpHook,
    UnusableHook,
    name_of_command,
)
from dragoman.hooks.events import EVENTS
from dragoman.names import letters_of
from dragoman.urls import parse_url

_SCOPES: Final = ("user", "enterprise")
_GROUP_KEYS: Final = frozenset({"matcher", "hooks", "if"})
_ENTRY_KEYS: Final = frozenset({"type", "command", "url", "headers", "timeout", "onError", "if", "shell"})
_DECIDING: Final = ("PreToolUse", "PermissionRequest")
"""Events whose hooks decide whether a call is made: leaving a hook out would allow what it forbids."""
_CONDITION: Final = (
    'the condition "if" cannot be judged here; use the matcher, or let the hook itself look at the call'
)
_NAMELESS: Final = "that cannot be read"
_UNREADABLE: Final = "the administrator's hooks cannot be read"

Place = tuple[str | int, ...]


class Configured(Struct, frozen=True):
    hooks: tuple[Hook, ...]
    """The hooks in declared order, the administrator's last: of several changes the last one wins."""
    problems: tuple[str, ...]


def from_parts(
    parts: Iterable[FileSettings],
    environ: Mapping[str, str] = os.environ,
    fault_of_name: Callable[[str], str | None] = lambda _: None,
) -> Configured:
    """The hooks of all files. `environ`: the variables that headers may use. `fault_of_name`: why no tool can
    have this name."""
    hooks: list[Hook] = []
    problems: list[str] = []
    for part in sorted(parts, key=lambda part: part.scope == "enterprise"):
        if part.scope in _SCOPES and "hooks" in part.values:
            reader = _Reader(part, environ, fault_of_name)
            hooks += reader.all(part.values["hooks"])
            problems += reader.problems()
    return Configured(tuple(hooks), tuple(problems))


class _Wrong(Exception):
    """Why an entry cannot be used."""


class _Reader:
    def __init__(
        self, part: FileSettings, environ: Mapping[str, str], fault_of_name: Callable[[str], str | None]
    ) -> None:
        self._part = part
        self._fault_of_name = fault_of_name
        self._environ = environ
        self._path = part.path or Path(part.source)
        self._is_managed = part.scope == "enterprise"
        self._problems = Problems(self._path, part.text)

    def problems(self) -> tuple[str, ...]:
        return self._problems.texts()

    def all(self, block: object) -> Iterator[Hook]:
        events = _as_object(block)
        if events is None:  # reported where the file is read
            yield from self._blocking_hooks("PreToolUse", _UNREADABLE)
            return
        for event, groups in events.items():
            if event not in EVENTS:
                self._add_problem(("hooks", event), lambda event=event: _unknown_event(event))
                if self._is_managed and (near := _near(event)):
                    yield from self._blocking_hooks(near[0], _UNREADABLE)
            else:
                yield from self._event(event, groups)

    def _event(self, event: str, groups: object) -> Iterator[Hook]:
        place: Place = ("hooks", event)
        if not isinstance(groups, list):
            self._add_problem(place, f"hooks: {event} must be a list")
            yield from self._blocking_hooks(event, _UNREADABLE)
            return
        for number, group in enumerate(cast("list[object]", groups)):
            yield from self._group(event, group, (*place, number))

    def _group(self, event: str, group: object, place: Place) -> Iterator[Hook]:
        fields = _as_object(group)
        entries = None if fields is None else fields.get("hooks")
        if fields is None or not isinstance(entries, list):
            self._add_problem(place, f'hooks: each item of {event} must be an object with a list "hooks"')
            yield from self._blocking_hooks(event, _UNREADABLE)
            return
        self._unknown(fields, _GROUP_KEYS, place)
        matches = self._matcher(event, fields.get("matcher"), place)
        condition = {"if": fields["if"]} if fields.get("if") is not None else {}
        for number, entry in enumerate(cast("list[object]", entries)):
            entry_fields = {**(_as_object(entry) or {}), **condition}
            yield from self._entry(event, matches, entry_fields, (*place, "hooks", number))

    def _matcher(self, event: str, text: object, place: Place) -> matchers.Matcher | None:
        if text is None:
            return matchers.EVERYTHING
        try:
            if not isinstance(text, str):
                raise matchers.BadMatcher("a matcher must be text")
            matches = matchers.parse(text)
            for name in matchers.listed_names(text) if EVENTS[event] == "tool_name" else ():
                if (fault := self._fault_of_name(name)) is not None:
                    self._add_problem(
                        (*place, "matcher"), f"hooks: the matcher {one_line(text, 60)}: {fault}"
                    )
            return matches
        except matchers.BadMatcher as error:
            self._add_problem((*place, "matcher"), f"hooks: {error}")
            return None

    def _entry(
        self, event: str, matches: matchers.Matcher | None, fields: Mapping[str, Any], place: Place
    ) -> Iterator[Hook]:
        blocks = self._blocks(fields, place)
        if fields.get("if") is not None and event in _DECIDING:
            blocks = True
        if matches is None and not blocks:
            return  # reported already
        seconds = self._seconds(fields, place)
        try:
            what, name = self._what(fields)
        except _Wrong as wrong:
            effect = "" if blocks else "; the hook is left out"
            self._add_problem(place, f"hooks: {event}: {wrong}{effect}")
            if not blocks:
                return
            what, name = UnusableHook(f"it cannot be used: {wrong}"), _NAMELESS
        self._unknown(fields, _ENTRY_KEYS, place)
        yield Hook(
            event=event,
            what=what,
            name=f"{name} (the administrator's)" if self._is_managed else name,
            matches=matches or matchers.EVERYTHING,
            timeout_seconds=seconds,
            blocks_on_error=blocks,
            is_managed=self._is_managed,
        )

    def _what(self, fields: Mapping[str, Any]) -> tuple[CommandHook | HttpHook, str]:
        if fields.get("if") is not None:
            raise _Wrong(_CONDITION)
        kind = fields.get("type", "http" if "url" in fields else "command")
        kind = kind.strip().lower() if isinstance(kind, str) else kind
        if kind == "command":
            command = fields.get("command")
            if not isinstance(command, str) or not command.strip():
                raise _Wrong('a hook of type command needs a "command"')
            return CommandHook(_for_shell(fields.get("shell"), command)), name_of_command(command)
        if kind == "http":
            return self._post(fields)
        raise _Wrong(f"hooks of type {one_line(str(kind), 40)} cannot be used, only command and http")

    def _post(self, fields: Mapping[str, Any]) -> tuple[HttpHook, str]:
        url, headers = fields.get("url"), _as_object(fields.get("headers", {}))
        if not isinstance(url, str):
            raise _Wrong('a hook of type http needs a "url"')
        if headers is None or not all(isinstance(value, str) for value in headers.values()):
            raise _Wrong('"headers" must be an object of texts')
        written = {"url": url, "headers": headers}
        if missing := variables_in(written) - self._environ.keys():
            raise _Wrong(f"it needs the variable {min(missing)}, which is not set")
        try:
            expanded = expand_entry("hook", written, self._environ)
            address = parse_url(expanded["url"])
        except ConfigError as error:
            raise _Wrong(str(error)) from None
        if address.scheme not in ("http", "https"):
            raise _Wrong("its url must begin with http:// or https://")
        return HttpHook(str(address), tuple(expanded["headers"].items())), address.origin

    def _blocks(self, fields: Mapping[str, Any], place: Place) -> bool:
        wanted = fields.get("onError")
        if wanted in ("block", "ignore"):
            return wanted == "block"
        if wanted is not None:
            # An entry with this key is intended to react to failures.
            self._add_problem((*place, "onError"), 'hooks: "onError" must be block or ignore; taken as block')
            return True
        return self._is_managed

    def _seconds(self, fields: Mapping[str, Any], place: Place) -> float:
        seconds = fields.get("timeout")
        if seconds is None:
            return TIMEOUT_SECONDS
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if is_number and 0 < seconds <= LONGEST_TIMEOUT_SECONDS:
            return float(seconds)
        self._add_problem(
            (*place, "timeout"),
            f'hooks: "timeout" must be a number of seconds, at most a day; {TIMEOUT_SECONDS:g} is used',
        )
        return TIMEOUT_SECONDS

    def _blocking_hooks(self, event: str, reason: str) -> Iterator[Hook]:
        """For an administrator's entry: a hook that blocks, because the entry may have forbidden
        something."""
        if self._is_managed:
            yield Hook(
                event=event,
                what=UnusableHook(reason),
                name=f"{_NAMELESS} (the administrator's)",
                blocks_on_error=True,
                is_managed=True,
            )

    def _unknown(self, fields: Mapping[str, Any], known: frozenset[str], place: Place) -> None:
        for key in fields.keys() - known:
            self._add_problem((*place, key), f"hooks: {one_line(key, 60)} has no effect here")

    def _add_problem(self, place: Place, reason: str | Callable[[], str]) -> None:
        self._problems.add(place, reason)


def _for_shell(shell: object, command: str) -> str:
    """The command in the form for /bin/sh."""
    if shell in (None, "sh"):
        return command
    if shell == "bash":
        return f"exec bash -c {shlex.quote(command)}"
    raise _Wrong(f'"shell" must be sh or bash, not {one_line(str(shell), 40)}')


def _as_object(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None


def _unknown_event(event: str) -> str:
    near = _near(event)
    problem = f"hooks: there is no event {one_line(event, 60)}"
    return f"{problem}; did you mean {near[0]}?" if near else f"{problem}; it is ignored"


def _near(event: str) -> list[str]:
    import difflib  # only for an event that is not known

    events = {letters_of(each): each for each in EVENTS}
    return [events[found] for found in difflib.get_close_matches(letters_of(event), events, 1)]

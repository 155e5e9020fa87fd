"""Finds a key of a settings file that was meant to restrict something, and has no effect as it is written: in
another spelling, in the wrong place, or, in the administrator's file, nearly the right key. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.cleaning import one_line
from dragoman.config import schema
from dragoman.config.scopes import Scope
from dragoman.json_values import as_list, as_object
from dragoman.names import letters_of
from dragoman.settings import NAMES

_DECIDING_EVENTS: Final = ("PreToolUse", "PermissionRequest")
"""Events whose hooks can refuse a call."""

Place = list[str | int]

_FORBIDDING: Final = ("deniedMcpServers", "disabledMcpServers", "disabledMcpjsonServers", "permissions")
_FORBIDDING_HERE: Final[Mapping[Scope, tuple[str, ...]]] = {
    "user": (*_FORBIDDING, "allowedMcpServers", "hooks"),
    "local": _FORBIDDING,
    "enterprise": (
        *_FORBIDDING, "allowedMcpServers", "allowManagedMcpServersOnly", "env", "hooks", "mcpServers"
    ),
}  # fmt: skip
"""Keys of a file that restrict something."""
_HOOK_KEYS: Final = ("type", "command", "url", "timeout", "onError")
_NEAR: Final = 0.75
_NEAR_RULES: Final = 0.6
"""The similarity from which a key is treated as a misspelling, at the top level and in `permissions`."""


def miswritten_key(scope: Scope, document: Mapping[str, Any]) -> tuple[Place, str] | None:
    """The place of such a key, and what is wrong with it."""
    faults = (_spelled_otherwise, _misplaced, _nearly_written)
    return next((fault for each in faults for fault in each(scope, document)), None)


def _rules(scope: Scope) -> tuple[str, ...]:
    only_here = ("disableBypassPermissionsMode",) if scope == "enterprise" else ()
    return ("ask", "deny", "defaultMode", *only_here)


def _spelled_otherwise(scope: Scope, document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Keys with the letters and digits of a known key."""
    owners: list[tuple[Place, Mapping[str, Any], Iterable[str]]] = [
        ([], document, _FORBIDDING_HERE[scope]),
        (["permissions"], document.get("permissions", {}), _rules(scope)),
    ]
    if scope == "user":
        owners.append((["hooks"], document.get("hooks", {}), _DECIDING_EVENTS))
        owners.extend(_deciding_hooks(document.get("hooks", {})))
    if scope == "enterprise":
        owners.append((["env"], document.get("env", {}), NAMES))
    for place, owner, keys in owners:
        right = {letters_of(key): key for key in keys}
        for key in owner:
            wanted = right.get(letters_of(key), key)
            if wanted != key:
                yield [*place, key], f'{_quoted([*place, key])} must be written "{wanted}"'


def _misplaced(scope: Scope, document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Keys in the wrong object, such as rules beside `permissions`."""
    right: dict[str, tuple[str, str]] = {}
    owners = ["", "permissions"]
    _add_keys(right, "permissions", _rules(scope))
    if scope != "local":
        owners.append("hooks")
        _add_keys(right, "hooks", _DECIDING_EVENTS)
    if scope == "enterprise":
        _add_keys(right, "env", NAMES)
    _add_keys(right, "", _FORBIDDING_HERE[scope])
    for owner in owners:
        for key in as_object(document.get(owner)) if owner else document:
            wanted_owner, wanted = right.get(letters_of(key), (owner, key))
            if wanted_owner != owner:
                name = "" if wanted == key else f' "{wanted}"'
                where = f'in "{wanted_owner}"' if wanted_owner else "at the top level"
                place: Place = [owner, key] if owner else [key]
                yield place, f"{_quoted(place)} must be{name} {where}"


def _add_keys(right: dict[str, tuple[str, str]], owner: str, keys: Iterable[str]) -> None:
    right.update({letters_of(key): (owner, key) for key in keys})


def _nearly_written(scope: Scope, document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Unknown keys of the administrator's file that are similar to one that restricts something."""
    if scope != "enterprise":
        return
    known = {"$schema", *schema.keys_of(schema.ManagedFile)}
    rules = {field.encode_name for field in msgspec.structs.fields(schema.PermissionRules)}
    yield from _near_keys([], document, known, _FORBIDDING_HERE[scope], _NEAR)
    yield from _near_keys(["permissions"], document.get("permissions", {}), rules, _rules(scope), _NEAR_RULES)


def _near_keys(
    place: Place,
    owner: Mapping[str, Any],
    known: Collection[str],
    restricting: Collection[str],
    similarity: float,
) -> Iterator[tuple[Place, str]]:
    by_letters = {letters_of(key): key for key in known}
    for key in owner:
        if key in known:
            continue
        import difflib  # only for an unknown key

        near = difflib.get_close_matches(letters_of(key), by_letters, 1, similarity)
        for wanted in (by_letters[found] for found in near):
            if wanted in restricting:
                name = f"{_quoted(place)}: " if place else ""
                yield [*place, key], f'{name}unknown key {_quoted([key])}; did you mean "{wanted}"?'


def _deciding_hooks(events: Any) -> Iterator[tuple[Place, Mapping[str, Any], Iterable[str]]]:
    """Each hook that can refuse a call, as far as it can be read: its place, the object, and its keys."""
    for event in _DECIDING_EVENTS:
        for number, group in enumerate(_list(events, event)):
            for place, entry in enumerate(_list(group, "hooks")):
                if isinstance(entry, dict):
                    fields = cast("dict[str, Any]", entry)
                    yield ["hooks", event, number, "hooks", place], fields, _HOOK_KEYS


def _list(owner: Any, key: str) -> list[Any]:
    return as_list(as_object(owner).get(key))


def _quoted(place: Place) -> str:
    return ": ".join(f'"{one_line(str(part), 60)}"' for part in place)

"""Adds and removes permission rules, and decides which file is changed.

A rule that the person writes into a file of a project is stored as the person's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from dragoman.config import approval, jsonc
from dragoman.config.edits import edit_file
from dragoman.config.file_reading import read_object
from dragoman.config.scopes import IN_PROJECT, Scope, Sources
from dragoman.errors import ConfigError

Kind = Literal["allow", "ask", "deny"]
KINDS: Final[tuple[Kind, ...]] = ("allow", "ask", "deny")


def add_rule(sources: Sources, scope: Scope, kind: Kind, rule: str) -> Path:
    """Writes a rule to the file of a scope; replaces the same rule of another kind there."""
    path = sources.file_of(scope)
    edit_file(sources, scope, path, lambda text: _with_rule(text, kind, rule))
    if scope in IN_PROJECT and kind == "allow":
        approval.remember_rule(sources.approvals_file, path, rule)
    return path


def remove_rule(
    sources: Sources, scope: Scope, path: Path, rule: str, kinds: Sequence[Kind] = KINDS
) -> tuple[Kind, ...]:
    """Removes a rule of these kinds from a file; returns the kinds that it had."""
    read = read_object(path)
    found: tuple[Kind, ...] = tuple(kind for kind in kinds if read and rule in _listed(read[1], kind))
    if found:
        edit_file(sources, scope, path, lambda text: _without_rule(text, rule, found))
    if scope in IN_PROJECT and "allow" in kinds:
        approval.forget_rule(sources.approvals_file, path, rule)
    return found


def files_with_rules(sources: Sources) -> list[tuple[Scope, Path]]:
    """The person's files that may contain rules, nearest first."""
    own = sources.in_use(sources.local_files())
    local: list[tuple[Scope, Path]] = [("local", path) for path in own]
    return [*local, ("user", sources.user_file)]


def _listed(document: dict[str, Any], kind: Kind) -> list[str]:
    block: Any = document.get("permissions", {})
    rules: Any = cast("dict[str, Any]", block).get(kind, []) if isinstance(block, dict) else None
    if not isinstance(rules, list):
        raise ConfigError(
            f'"permissions" in the file is not as it should be: "{kind}" must be a list',
            hint="Correct it by hand; nothing was written.",
        )
    return cast("list[str]", rules)


def _with_rule(text: str, kind: Kind, rule: str) -> str:
    document = cast("dict[str, Any]", jsonc.parse(text)) if text else {}
    others: list[Kind] = [each for each in KINDS if each != kind and rule in _listed(document, each)]
    text = _without_rule(text, rule, others)
    listed = _listed(document, kind)
    return text if rule in listed else jsonc.set_value(text, ["permissions", kind], [*listed, rule])


def _without_rule(text: str, rule: str, kinds: Iterable[Kind]) -> str:
    for kind in kinds:
        kept = [each for each in _listed(jsonc.parse(text), kind) if each != rule]
        text = jsonc.set_value(text, ["permissions", kind], kept)
    return text

"""Permission rules in files: which of them count.

A file in a project's folder may have come from a stranger: its `allow` rules count only if the person wrote
them through Dragoman. What it denies, or wants to be asked, counts at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from dragoman.cleaning import one_line
from dragoman.config import approval
from dragoman.config.files import Part
from dragoman.config.schema import PermissionRules
from dragoman.config.scopes import IN_PROJECT, Scope


class PermissionPart(Struct, frozen=True, kw_only=True):
    """The permission rules of one file."""

    scope: Scope
    source: str
    rules: PermissionRules
    unapproved: tuple[str, ...] = ()
    """Its `allow` rules that do not count, because the person did not write them."""

    @property
    def problem(self) -> str | None:
        if not self.unapproved:
            return None
        first, *others = self.unapproved
        also = f" (and {len(others)} more)" if others else ""
        shown = one_line(first, 200)
        # No command that would make it count: whoever wrote the project chose the rule.
        return f"{self.source}: the allow rule {shown}{also} is defined by the project and is not used"


def effective_rules(parts: Iterable[Part], answers: approval.Answers) -> Iterator[PermissionPart]:
    """The rules of every part, without those that do not count."""
    for part in parts:
        rules = part.values.get("permissions")
        if not isinstance(rules, PermissionRules):
            continue
        unapproved: tuple[str, ...] = ()
        if part.scope in IN_PROJECT:
            approved = tuple(rule for rule in rules.allow if answers.approves_rule(part.path, rule))
            known = frozenset(approved)
            unapproved = tuple(rule for rule in rules.allow if rule not in known)
            rules = structs.replace(rules, allow=approved)
        yield PermissionPart(scope=part.scope, source=part.source, rules=rules, unapproved=unapproved)

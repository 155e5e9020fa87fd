"""Combines the settings of all parts: choices by name, disabled servers, numbers, variables, and permission
rules. Pure, except that `environment_of` looks at the environment.

A file in a project's folder may come from an unknown author: its `allow` rules apply only if the person wrote
them through Dragoman. Its `deny` and `ask` rules always apply.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from dragoman.cleaning import one_line
from dragoman.config import approval
from dragoman.config.expand import expand_entry
from dragoman.config.files import FileSettings
from dragoman.config.model import PROBLEM_LIMIT, fingerprint
from dragoman.config.policy import DENIED, Policy
from dragoman.config.schema import ConnectorsConfig, PermissionRules, XaaIdpConfig
from dragoman.config.scopes import IN_PROJECT, MAY_TRUST, Scope, Sources
from dragoman.names import ProhibitedNames, nearest_server
from dragoman.settings import NAMES, Layer, Settings


def choices_of(parts: tuple[FileSettings, ...]) -> approval.Choices:
    """The choices about servers. An approval is valid only in the person's own file or the administrator's; a
    rejection in any file."""
    enabled: dict[str, str] = {}
    disabled: dict[str, str] = {}
    everything: str | None = None
    for part in parts:
        disabled |= dict.fromkeys(part.values.get("disabledMcpjsonServers", ()), part.source)
        if part.scope in ("user", "enterprise"):
            enabled |= dict.fromkeys(part.values.get("enabledMcpjsonServers", ()), part.source)
            if part.values.get("enableAllProjectMcpServers"):
                everything = part.source
    exact = _exact_names(parts, "disabledMcpjsonServers")
    declined = ProhibitedNames(disabled, chosen_names(parts), exact)
    return approval.Choices(enabled=enabled, disabled=declined, all_enabled_by=everything)


def disabled_server_names(parts: tuple[FileSettings, ...]) -> ProhibitedNames:
    sources = {
        name: part.source for part in reversed(parts) for name in part.values.get("disabledMcpServers", ())
    }
    return ProhibitedNames(sources, chosen_names(parts), _exact_names(parts, "disabledMcpServers"))


def _exact_names(parts: tuple[FileSettings, ...], key: str) -> frozenset[str]:
    """Names that are only in lists of a project, and that are exactly the name of a server."""
    lists: dict[bool, set[str]] = {True: set(), False: set()}
    for part in parts:
        lists[part.scope in IN_PROJECT].update(part.values.get(key, ()))
    return frozenset((lists[True] - lists[False]) & {name for part in parts for name in part.servers})


def names_without_effect(
    parts: tuple[FileSettings, ...], rules: Policy, servers: Collection[str]
) -> Iterator[str]:
    """Names in lists of prohibited servers that mean none of the servers, but are similar to the name of one.

    Other unknown names are not a problem: a list may name servers of another folder or another machine.
    """
    lists = [
        (part.source, key, part.values.get(key, ()))
        for part in parts
        for key in ("disabledMcpServers", "disabledMcpjsonServers")
    ]
    for part in parts:
        denied = [rule.value for rule in rules.denied if rule.kind == "name" and rule.source == part.source]
        lists.append((part.source, DENIED, [value for value in denied if isinstance(value, str)]))
    for source, key, names in lists:
        reported = 0
        for written in islice(dict.fromkeys(names), _NAMES_COMPARED):
            meant = nearest_server(written, servers) if _is_alone(written) else None
            if meant is not None and reported < PROBLEM_LIMIT:
                reported += 1
                yield f"{source}: {key}: {_without_effect(written, meant)}"


_NAMES_COMPARED: Final = 100
"""How many names of one list are compared."""


def _is_alone(written: str) -> bool:
    """Whether the text is one name. Several names in one text are checked separately."""
    return len(written.split()) == 1


def _without_effect(written: str, meant: str) -> str:
    shown = one_line(written, 60)
    return f"no server has the name {shown!r}, so it has no effect; did you mean {one_line(meant, 60)!r}?"


def chosen_names(parts: tuple[FileSettings, ...]) -> frozenset[str]:
    """The names of servers that the person, the program or the administrator configured.

    A prohibition that is exactly one of them means that server alone. Names that a project chose are not
    used: its entry would lift a prohibition that means another server with a different spelling.
    """
    return frozenset(name for part in parts if part.scope in MAY_TRUST for name in part.servers)


def settings_of(sources: Sources, parts: tuple[FileSettings, ...]) -> Settings:
    def layers(scope: Scope) -> list[Layer]:
        found = [part for part in parts if part.scope == scope and "env" in part.values]
        return [Layer(part.source, part.values["env"]) for part in found]

    return Settings(sources.overrides, managed=layers("enterprise"), files=layers("user"))


def environment_of(
    parts: tuple[FileSettings, ...], answers: approval.Answers
) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """The variables that entries may use, and the administrator's variables that are not confirmed yet."""
    by_scope = {
        part.scope: part.values.get("env", {}) for part in parts if part.scope in ("user", "enterprise")
    }
    personal, managed = (
        {key: str(value) for key, value in by_scope.get(scope, {}).items() if key not in NAMES}
        for scope in ("user", "enterprise")
    )
    environ = {**personal, **os.environ}
    if managed and answers.confirmed_variables != fingerprint(managed):
        return environ, managed
    return {**environ, **managed}, {}


def xaa_idp_of(
    parts: tuple[FileSettings, ...], settings: Settings, environ: Mapping[str, str]
) -> XaaIdpConfig | None:
    """The identity provider of the highest scope that names one; None unless it is switched on."""
    named = (part.values.get("xaaIdp") for part in reversed(parts))
    config: XaaIdpConfig | None = next((each for each in named if each is not None), None)
    if config is None or not (config.enabled or settings["DRAGOMAN_ENABLE_XAA"]):
        return None
    return msgspec.convert(expand_entry("xaaIdp", msgspec.to_builtins(config), environ), XaaIdpConfig)


def connectors_of(parts: tuple[FileSettings, ...]) -> ConnectorsConfig | None:
    """The connector list of the highest scope that has one."""
    named = (part.values.get("connectors") for part in reversed(parts))
    return next((config for config in named if config is not None), None)


class PermissionPart(Struct, frozen=True, kw_only=True):
    """The permission rules of one file."""

    scope: Scope
    source: str
    rules: PermissionRules
    unapproved: tuple[str, ...] = ()
    """Its `allow` rules that are ignored, because the person did not write them."""

    @property
    def problem(self) -> str | None:
        if not self.unapproved:
            return None
        first, *others = self.unapproved
        also = f" (and {len(others)} more)" if others else ""
        shown = one_line(first, 200)
        # The message names no command that would approve it: the author of the project chose the rule.
        return f"{self.source}: the allow rule {shown}{also} is defined by the project and is not used"


def effective_rules(parts: Iterable[FileSettings], answers: approval.Answers) -> Iterator[PermissionPart]:
    """The rules of every part, without those that are ignored."""
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

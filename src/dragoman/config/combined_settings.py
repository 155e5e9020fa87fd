"""What the settings in all parts come to: choices by name, switched-off servers, numbers, variables. Pure,
except that `environment_of` looks at the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.config import approval
from dragoman.config.files import Part
from dragoman.config.model import fingerprint
from dragoman.config.schema import ConnectorsConfig
from dragoman.config.scopes import Scope, Sources
from dragoman.names import ProhibitedNames
from dragoman.settings import NAMES, Layer, Settings


def choices_of(parts: tuple[Part, ...]) -> approval.Choices:
    """A yes counts only from the person's own file or the administrator's; a no from anywhere."""
    enabled: dict[str, str] = {}
    disabled: dict[str, str] = {}
    everything: str | None = None
    for part in parts:
        disabled |= dict.fromkeys(part.values.get("disabledMcpjsonServers", ()), part.source)
        if part.scope in ("user", "enterprise"):
            enabled |= dict.fromkeys(part.values.get("enabledMcpjsonServers", ()), part.source)
            if part.values.get("enableAllProjectMcpServers"):
                everything = part.source
    declined = ProhibitedNames(disabled, _names_in(parts))
    return approval.Choices(enabled=enabled, disabled=declined, all_enabled_by=everything)


def switched_off_by(parts: tuple[Part, ...]) -> ProhibitedNames:
    sources = {
        name: part.source for part in reversed(parts) for name in part.values.get("disabledMcpServers", ())
    }
    return ProhibitedNames(sources, _names_in(parts))


def _names_in(parts: tuple[Part, ...]) -> Iterator[str]:
    return (name for part in parts for name in part.servers)


def settings_of(sources: Sources, parts: tuple[Part, ...]) -> Settings:
    def layers(scope: Scope) -> list[Layer]:
        own = [part for part in parts if part.scope == scope and "env" in part.values]
        return [Layer(part.source, part.values["env"]) for part in own]

    return Settings(sources.overrides, managed=layers("enterprise"), files=layers("user"))


def environment_of(
    parts: tuple[Part, ...], answers: approval.Answers
) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """The variables that entries may use, and those of the administrator's still to be confirmed."""
    said = {part.scope: part.values.get("env", {}) for part in parts if part.scope in ("user", "enterprise")}
    own, managed = (
        {key: str(value) for key, value in said.get(scope, {}).items() if key not in NAMES}
        for scope in ("user", "enterprise")
    )
    environ = {**own, **os.environ}
    if managed and answers.confirmed_variables != fingerprint(managed):
        return environ, managed
    return {**environ, **managed}, {}


def connectors_of(parts: tuple[Part, ...]) -> ConnectorsConfig | None:
    """The highest scope that names a list."""
    named = (part.values.get("connectors") for part in reversed(parts))
    return next((config for config in named if config is not None), None)

"""The difference between two configurations: the changes of a reload, as a value that can be shown in
advance. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.config.file_reading import read_object
from dragoman.config.load import Configuration
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import fingerprint
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigFileError


class ServerSnapshot(Struct, frozen=True, rename="camel"):
    """The state of a server at one time, without its values."""

    eligibility: str
    fingerprint: str
    reason: str | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """What changes, by name."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.removed or self.changed)


def snapshots_of(configuration: Configuration) -> dict[str, ServerSnapshot]:
    return {name: _snapshot_of(server) for name, server in configuration.servers.items()}


def _snapshot_of(server: ConfiguredServer) -> ServerSnapshot:
    return ServerSnapshot(server.eligibility, _identity(server), server.reason)


def compare(before: Mapping[str, ServerSnapshot], after: Mapping[str, ServerSnapshot]) -> Plan:
    shared = [name for name in after if name in before]
    same = [name for name in shared if _same(before[name], after[name])]
    return Plan(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in shared if name not in same),
        unchanged=tuple(same),
    )


def _same(before: ServerSnapshot, after: ServerSnapshot) -> bool:
    return before.eligibility == after.eligibility and before.fingerprint == after.fingerprint


def _identity(server: ConfiguredServer) -> str:
    given: Any = server.candidate.given
    if isinstance(given, Mapping):
        config = server.config.fingerprint() if server.config is not None else ""
        return fingerprint([given, config])
    if isinstance(given, Struct) and server.config is not None:
        return server.config.fingerprint()
    return str(id(given)) if server.scope == "dynamic" else fingerprint(given)


def last_snapshots(sources: Sources) -> dict[str, ServerSnapshot]:
    """The servers that a host last used in this folder; empty if none ran here."""
    try:
        read = read_object(_snapshots_file(sources))
    except ConfigFileError:
        return {}
    return _snapshots(read[1].get("servers")) if read else {}


def _snapshots(document: Any) -> dict[str, ServerSnapshot]:
    try:
        return msgspec.convert(document, dict[str, ServerSnapshot])
    except msgspec.ValidationError:
        return {}


def remember(sources: Sources, snapshots: Mapping[str, ServerSnapshot]) -> None:
    """Stores which servers are in use, without values."""
    from dragoman.config.writer import edit_state

    document = {"folder": str(sources.cwd), "servers": msgspec.to_builtins(dict(snapshots))}
    edit_state(_snapshots_file(sources), lambda _: document)


def _snapshots_file(sources: Sources) -> Path:
    name = hashlib.sha256(str(sources.cwd).encode()).hexdigest()[:32]
    return sources.config_dir / "state" / "in-use" / f"{name}.json"

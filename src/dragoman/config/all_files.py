"""Reads all configuration files together, and decides what applies if one cannot be read.

While a host runs, the version of a file that was read before stays in effect. Without an earlier version a
file that can only name servers is left out; one that can forbid something (`files.CAN_DENY`) makes the host
refuse every server and call, since what it forbids is unknown. `ignore_broken_settings` leaves out the
person's and the project's files for one run, never the administrator's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from dragoman.config.files import (
    CAN_DENY,
    ENTRY_LIMIT,
    NESTED_FILES,
    RULE_LIMIT,
    SERVER_CHARACTERS,
    Content,
    FileContent,
    FileSettings,
    characters_of,
    content_of,
    read_file,
    within,
)
from dragoman.config.schema import PermissionRules, restricting_mode
from dragoman.config.scopes import IN_PROJECT, LOCAL_FILE, USER_FILE, Scope, Sources

_POLICY: Final = frozenset({"allowedMcpServers", "deniedMcpServers"})
_USUAL_USER_FILE: Final = f"~/.dragoman/{USER_FILE}"
_KEPT: Final = "the version read before stays in effect"


class Reading(Struct, frozen=True, kw_only=True):
    """The contents of all files."""

    parts: tuple[FileSettings, ...] = ()
    problems: tuple[str, ...] = ()
    broken: str | None = None
    """Why the administrator's file cannot be read. Nothing is started or called then."""
    unreadable: tuple[str, ...] = ()
    """Why other files that can forbid something cannot be read. Nothing is started or called then."""
    failed: frozenset[str] = frozenset()
    """The files of which no version could be read."""
    contents: Mapping[str, Content | None] = {}
    """The content of each file that can forbid something, and of the file of answers."""


def read_parts(sources: Sources, before: Reading | None = None) -> Reading:
    """Reads all parts, from the lowest scope to the highest; within a scope the nearest last.

    `before`: the last reading of a running host.
    """
    reader = _Reader(sources, before)
    # Before the answers themselves are read: a change in between is noticed later, not missed.
    reader.note("user", sources.approvals_file)
    reader.read_all("plugin", () if sources.only_given else sources.plugin_files())
    reader.read_all("user", (sources.user_file,))
    reader.read_all("project", reversed(sources.project_files()))
    reader.read_all("local", reversed(sources.local_files()))
    reader.report_ignored(sources)
    if sources.only_given:
        reader.keep_policy()
    if sources.given:
        reader.parts.append(FileSettings(scope="dynamic", source=sources.given_source, servers=sources.given))
    reader.read_all("enterprise", (sources.managed_file,))
    return reader.reading()


def is_current(reading: Reading, sources: Sources) -> bool:
    """Whether the files that can forbid something are unchanged since they were read.

    Contents are compared, not time stamps: two changes can have the same time stamp.
    """
    own = (sources.user_file, sources.approvals_file)
    files: list[tuple[Scope, Path]] = [
        ("enterprise", sources.managed_file),
        *(("user", path) for path in own),
    ]
    files.extend(("local", path) for path in sources.local_files())
    return all(content_of(scope, path) == reading.contents.get(str(path)) for scope, path in files)


class _Reader:
    def __init__(self, sources: Sources, before: Reading | None) -> None:
        self._ignores = sources.ignore_broken_settings
        self._before = before
        self.parts: list[FileSettings] = []
        self._problems: list[str] = []
        self._unreadable: list[str] = []
        self._broken: str | None = None
        self._failed: set[str] = set()
        self._contents: dict[str, Content | None] = {}
        self._rule_count = 0

    def reading(self) -> Reading:
        return Reading(
            parts=tuple(self.parts),
            problems=tuple(self._problems),
            broken=self._broken,
            unreadable=tuple(self._unreadable),
            failed=frozenset(self._failed),
            contents=self._contents,
        )

    def note(self, scope: Scope, path: Path) -> None:
        self._contents[str(path)] = content_of(scope, path)

    def read_all(self, scope: Scope, paths: Iterable[Path]) -> None:
        for path in paths:
            read = self._within_limits(path, read_file(scope, path))
            if scope in CAN_DENY:
                self._contents[str(path)] = read.content
            fault = read.fault or read.servers_fault
            if fault is not None and self._has_earlier(path):
                self._keep_earlier(path, fault)
            else:
                self._take(scope, path, read)

    def report_ignored(self, sources: Sources) -> None:
        """Reports files in projects that are named like the person's settings: their rules have no effect."""
        own = {os.path.realpath(path) for path in (sources.user_file, os.path.expanduser(_USUAL_USER_FILE))}
        for local in reversed(sources.local_files()):
            path = local.with_name(USER_FILE)
            if os.path.isfile(path) and os.path.realpath(path) not in own:
                self._problems.append(f"{path} is not read: settings of a project are in {LOCAL_FILE}")

    def _within_limits(self, path: Path, read: FileContent) -> FileContent:
        """The file. If all files of its scope so far exceed the limits together, it has a fault (too many
        rules), or is without some of its servers."""
        self._rule_count += read.rule_count
        if read.rule_count and self._rule_count > (limit := NESTED_FILES * RULE_LIMIT):
            fault = f"{path}: it and the files of the folders above have more than {limit} rules"
            return structs.replace(read, fault=fault)
        part = read.part
        if part is None or part.scope not in IN_PROJECT:
            return read
        others = [named for each in self.parts if each.scope == part.scope for named in each.servers.items()]
        count = NESTED_FILES * ENTRY_LIMIT - len(others)
        characters = NESTED_FILES * SERVER_CHARACTERS - sum(map(characters_of, others))
        used = dict(within(part.servers.items(), count, characters))
        if len(used) == len(part.servers):
            return read
        problem = (
            f"{path}: it and the files of the folders above have too many servers: "
            f"{len(used)} of its own are used"
        )
        part = structs.replace(part, servers=used)
        return structs.replace(read, part=part, problems=(*read.problems, problem))

    def _take(self, scope: Scope, path: Path, read: FileContent) -> None:
        self._problems.extend(read.problems)
        if read.part is not None:
            self.parts.append(read.part)
        if read.fault is None:
            return
        self._failed.add(str(path))
        if scope == "enterprise":
            self._broken = read.fault
        elif scope in CAN_DENY and not self._ignores:
            self._unreadable.append(read.fault)
        else:
            lost = "; what it forbids is not applied in this run" if scope in CAN_DENY else ""
            self._problems.append(f"{read.fault}; the file is left out{lost}")

    def _has_earlier(self, path: Path) -> bool:
        """Whether a version was read before; a missing file counts as a version."""
        return self._before is not None and str(path) not in self._before.failed

    def _keep_earlier(self, path: Path, fault: str) -> None:
        earlier = self._before.parts if self._before is not None else ()
        self.parts.extend(part for part in earlier if part.source == str(path))
        self._problems.append(f"{fault}; {_KEPT}")

    def keep_policy(self) -> None:
        """Keeps only the prohibitions of the person's files: they apply to servers from other sources too."""
        self.parts = [
            FileSettings(scope=part.scope, source=part.source, values=policy)
            for part in self.parts
            if (policy := _forbidding(part.values))
        ]


def _forbidding(values: Mapping[str, Any]) -> dict[str, Any]:
    """The deny and ask rules of a part."""
    kept = {key: value for key, value in values.items() if key in _POLICY}
    rules = values.get("permissions")
    if isinstance(rules, PermissionRules):
        mode = restricting_mode(rules.default_mode or "")
        if mode == "default":
            mode = None
        if rules.ask or rules.deny or mode:
            kept["permissions"] = PermissionRules(ask=rules.ask, deny=rules.deny, default_mode=mode)
    return kept

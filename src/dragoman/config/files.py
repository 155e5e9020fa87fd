"""Configuration files, read one by one.

I own: what each file says, judged key by key: one wrong key costs that key, a broken file costs that
file, and both are told with file, line and column. The exception is the administrator's file: if it
cannot be read, that is told as `broken`, and policy lets nothing start. What the parts mean together is
`merge.py`'s and `load.py`'s.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.config import schema
from dragoman.config.reading import read_object
from dragoman.config.schema import PermissionRules
from dragoman.config.scopes import IN_PROJECT, Scope, Sources
from dragoman.errors import ConfigError, ConfigFileError

_RAW: Final = frozenset(
    {"allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly", "hooks", "mcpServers"}
)
"""Keys that others judge, entry by entry."""

_POLICY: Final = frozenset({"allowedMcpServers", "deniedMcpServers"})

_SALVAGED: Final[Mapping[str, type]] = {
    "disabledMcpServers": list,
    "disabledMcpjsonServers": list,
    "enabledMcpjsonServers": list,
    "env": dict,
    "permissions": dict,
}
"""Keys whose items are judged one by one, if they are of the right kind at all."""

_SHAPES: Final[Mapping[Scope, type[schema.ProjectFile]]] = {
    "plugin": schema.ProjectFile,
    "project": schema.ProjectFile,
    "local": schema.LocalFile,
    "user": schema.UserFile,
    "enterprise": schema.ManagedFile,
}


class Part(Struct, frozen=True, kw_only=True):
    """What one place says."""

    scope: Scope
    source: str
    """The file, or who gave it, as people are told."""
    path: Path | None = None
    text: str = ""
    servers: Mapping[str, object] = {}
    declares_servers: bool = False
    """Whether there is a block of servers at all, be it empty."""
    values: Mapping[str, Any] = {}
    """Everything else it says, by key; keys that could not be used are left out."""

    def __repr__(self) -> str:
        return f"<Part {self.scope} {self.source}>"


class Reading(Struct, frozen=True):
    parts: tuple[Part, ...]
    problems: tuple[str, ...]
    broken: str | None
    """Why the administrator's file cannot be read."""


def read_parts(sources: Sources) -> Reading:
    """Every part there is, from the lowest scope to the highest; within a scope the nearest last."""
    reader = _Reader()
    for path in () if sources.only_given else sources.plugin_files():
        reader.read("plugin", path)
    reader.read("user", sources.user_file)
    for path in reversed(sources.project_files()):
        reader.read("project", path)
    for path in reversed(sources.local_files()):
        reader.read("local", path)
    if sources.only_given:
        reader.keep_policy()
    if sources.given:
        reader.parts.append(Part(scope="dynamic", source=sources.given_source, servers=sources.given))
    broken = reader.read_managed(sources.managed_file)
    return Reading(tuple(reader.parts), tuple(reader.problems), broken)


class _Reader:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.problems: list[str] = []

    def read(self, scope: Scope, path: Path) -> None:
        if scope in IN_PROJECT and (target := Sources.target_outside_project(path)) is not None:
            if os.path.lexists(path):
                self.problems.append(_ignored(path, target))
            return
        try:
            read = read_object(path)
        except ConfigFileError as error:
            self.problems.append(f"{error}; the file is left out")
            return
        if read is not None:
            self.parts.append(self._part(scope, path, *read))

    def keep_policy(self) -> None:
        """Leaves of the person's files what they forbid: that holds for servers from elsewhere too."""
        self.parts = [
            Part(scope=part.scope, source=part.source, values=policy)
            for part in self.parts
            if (policy := _forbidding(part.values))
        ]

    def read_managed(self, path: Path) -> str | None:
        try:
            read = read_object(path)
        except ConfigFileError as error:
            return str(error)
        if read is None:
            return _hidden(path)
        part = self._part("enterprise", path, *read)
        self.parts.append(part)
        if "mcpServers" in read[1] and not isinstance(read[1]["mcpServers"], dict):
            return f'{path}: "mcpServers" must be an object'
        return _unreadable_rules(path, read[1].get("permissions", {}))

    def _part(self, scope: Scope, path: Path, text: str, document: dict[str, Any]) -> Part:
        keys = schema.keys_of(_SHAPES[scope])
        values: dict[str, Any] = {}
        for key, value in document.items():
            if key == "$schema":
                continue
            if key not in keys:
                self._complain(path, text, [key], _unknown_key(key, keys, scope))
            elif key in _RAW:
                values[key] = value
                if key == "hooks" and not isinstance(value, dict):
                    self._complain(path, text, [key], '"hooks" must be an object')
            else:
                self._take(values, path, text, key, value, keys[key])
        declares = "mcpServers" in values
        servers = self._servers(path, text, values.pop("mcpServers", None) if declares else {})
        return Part(
            scope=scope,
            source=str(path),
            path=path,
            text=text,
            servers=servers,
            declares_servers=declares,
            values=values,
        )

    def _take(
        self, values: dict[str, Any], path: Path, text: str, key: str, value: object, kind: Any
    ) -> None:
        try:
            values[key] = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            if isinstance(value, _SALVAGED.get(key, ())):
                values[key] = self._salvaged(path, text, [key], value, kind)
            else:
                self._complain(path, text, [key], f"{key}: {error}; the key is left out")

    def _salvaged(self, path: Path, text: str, place: list[str | int], value: Any, kind: Any) -> Any:
        """What of a list or object can be used: one wrong item must not cost a person's other choices."""
        if isinstance(value, list):
            items = list(enumerate(cast("list[Any]", value)))
            return tuple(
                item for number, item in items if self._fits(path, text, [*place, number], item, str)
            )
        pairs = list(cast("dict[str, Any]", value).items())
        if kind is PermissionRules:
            return PermissionRules(**self._rules(path, text, pairs))
        return {name: item for name, item in pairs if self._fits(path, text, [*place, name], item, str | int)}

    def _rules(self, path: Path, text: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        rules: dict[str, Any] = {}
        for name, item in pairs:
            place: list[str | int] = ["permissions", name]
            if name in ("allow", "ask", "deny") and isinstance(item, list):
                rules[name] = self._salvaged(path, text, place, item, None)
            elif name in ("allow", "ask", "deny"):
                self._complain(path, text, place, f"permissions: {name} must be a list; it is left out")
            elif name == "defaultMode" and self._fits(path, text, place, item, str | None):
                rules["default_mode"] = item
            elif name == "disableBypassPermissionsMode":
                # Whatever it says, somebody wanted it off.
                rules["disable_bypass_permissions_mode"] = item if isinstance(item, str | bool) else True
        return rules

    def _fits(self, path: Path, text: str, place: list[str | int], item: Any, kind: Any) -> bool:
        try:
            msgspec.convert(item, kind)
            return True
        except msgspec.ValidationError as error:
            self._complain(path, text, place, f"{place[0]}: {error}; the item is left out")
            return False

    def _servers(self, path: Path, text: str, block: object) -> Mapping[str, object]:
        if not isinstance(block, dict):
            self._complain(path, text, ["mcpServers"], '"mcpServers" must be an object')
            return {}
        return cast("dict[str, object]", block)

    def _complain(self, path: Path, text: str, place: Sequence[str | int], reason: str) -> None:
        self.problems.append(str(at(path, text, place, reason)))


def _forbidding(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a part forbids, or wants to be asked."""
    kept = {key: value for key, value in values.items() if key in _POLICY}
    rules = values.get("permissions")
    if isinstance(rules, PermissionRules):
        mode = rules.default_mode if rules.default_mode in ("plan", "dontAsk") else None
        if rules.ask or rules.deny or mode:
            kept["permissions"] = PermissionRules(ask=rules.ask, deny=rules.deny, default_mode=mode)
    return kept


def _ignored(path: Path, target: Path) -> str:
    """Why a project's file that is a link does not count: another project's approvals would apply to it."""
    reason = f"the file is ignored: it leads to {target}, outside its project"
    advice = "copy it into the project, or put its servers and rules into your own settings (-s user)"
    return f"{ConfigFileError(str(path), reason)}; {advice}"


def _unreadable_rules(path: Path, block: object) -> str | None:
    """Why what the administrator forbids cannot be known."""
    if not isinstance(block, dict):
        return f'{path}: "permissions" must be an object'
    rules = cast("dict[str, Any]", block)
    wrong = [kind for kind in ("ask", "deny") if not isinstance(rules.get(kind, []), list)]
    return f'{path}: "permissions": "{wrong[0]}" must be a list' if wrong else None


def _hidden(path: Path) -> str | None:
    """Why a file that seems to be missing may be there all the same: then it is not the same as none."""
    if os.path.lexists(path):
        return f"{path}: it is a link that leads nowhere"
    if os.path.lexists(path.parent) and not os.path.isdir(path.parent):
        return f"{path.parent}: it is not a folder"
    return None


def at(path: Path, text: str, place: Sequence[str | int], reason: str) -> ConfigFileError:
    """An error about a place in a file."""
    from dragoman.config.jsonc import locate

    line, column = locate(text, place) or (None, None)
    return ConfigFileError(str(path), reason, line=line, column=column)


def entry_error(part: Part | None, name: str, error: ConfigError) -> ConfigError:
    """The same error, with the place of the entry it speaks of."""
    if part is None or part.path is None:
        return error
    placed = at(part.path, part.text, ["mcpServers", name], str(error))
    placed.hint = error.hint
    return placed


def _unknown_key(key: str, keys: Mapping[str, Any], scope: Scope) -> str:
    if key == "servers":
        return 'found "servers"; the block is called "mcpServers"'
    elsewhere = next((kind for kind, shape in schema.FILES.items() if key in schema.keys_of(shape)), None)
    if elsewhere is not None:
        return f"{key} has no effect here; it belongs in the {elsewhere} file"
    near = difflib.get_close_matches(key, keys, 1)
    return f"unknown key {key!r}" + (f"; did you mean {near[0]}?" if near else "; it is ignored")

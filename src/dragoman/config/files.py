"""One configuration file, read and judged key by key.

An invalid key is dropped, and reported with file, line and column. If the file as a whole, or a part that
forbids something, cannot be read, that is its `fault`; `all_files.py` decides the consequences of a fault.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.config import schema
from dragoman.config.file_reading import check_reachable, parse_object, read_text
from dragoman.config.masking import masked_name
from dragoman.config.miswritten_keys import miswritten_key
from dragoman.config.model import PROBLEM_LIMIT
from dragoman.config.schema import PermissionRules
from dragoman.config.scopes import IN_PROJECT, Scope, Sources
from dragoman.errors import ConfigError, ConfigFileError
from dragoman.names import letters_of
from dragoman.settings import NAMES, fault_of_value

_RAW: Final = frozenset(
    {"allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly", "hooks", "mcpServers"}
)
"""Keys that other modules check, entry by entry."""

CAN_DENY: Final[frozenset[Scope]] = frozenset({"user", "local", "enterprise"})
"""Scopes whose files can forbid something. Project and plugin files hold servers only."""

_SALVAGED: Final[Mapping[str, type]] = {
    "allowedMcpEnvironment": list,
    "disabledMcpServers": list,
    "disabledMcpjsonServers": list,
    "enabledMcpjsonServers": list,
    "env": dict,
    "permissions": dict,
}
"""Keys whose items are checked one by one, if the value has the right type."""

_SHAPES: Final[Mapping[Scope, type[schema.ProjectFile]]] = {
    "plugin": schema.ProjectFile,
    "project": schema.ProjectFile,
    "local": schema.LocalFile,
    "user": schema.UserFile,
    "enterprise": schema.ManagedFile,
}


UNTRUSTED: Final[frozenset[Scope]] = frozenset({"plugin", "project", "local"})
"""Scopes whose files come from a repository: their size is limited."""

ENTRY_LIMIT: Final = 256
"""The maximum number of servers in one such file."""

SERVER_CHARACTERS: Final = 200_000
"""The maximum number of characters of these servers, all together, as JSON."""

RULE_LIMIT: Final = 1000
"""The maximum number of rules and names in the lists of one such file, all together."""

Named = tuple[str, Any]
"""The name of a server, and its entry."""

_NO_OBJECT: Final = '"mcpServers" must be an object'
NESTED_FILES: Final = 4
"""The files of nested project folders together may have the servers and rules of this many files."""


class FileSettings(Struct, frozen=True, kw_only=True):
    """The settings of one source."""

    scope: Scope
    source: str
    """The file, or the origin of the text, as shown to people."""
    path: Path | None = None
    text: str = ""
    servers: Mapping[str, object] = {}
    declares_servers: bool = False
    """Whether there is a block of servers, even an empty one."""
    values: Mapping[str, Any] = {}
    """All other settings, by key; keys that could not be used are left out."""

    def __repr__(self) -> str:
        return f"<Part {self.scope} {self.source}>"


Content = tuple[Literal["text", "error"], str]
"""The content of a file, or why it is unknown."""


class FileContent(Struct, frozen=True, kw_only=True):
    """The result of reading one file."""

    content: Content | None
    """The content, for finding out whether it has changed; None: no file."""
    part: FileSettings | None = None
    problems: tuple[str, ...] = ()
    fault: str | None = None
    """Why the file, or a part that forbids something, cannot be read. The rest may be available as a part."""
    servers_fault: str | None = None
    """Why the servers cannot be read, although the rest of the file can be."""
    rule_count: int = 0
    """How many rules and names are in the lists of a file of a repository."""


def content_of(scope: Scope, path: Path) -> Content | None:
    """The current content of a file, in the form of `content` of `read_file`."""
    try:
        if scope in CAN_DENY:
            check_reachable(path)
        if scope in IN_PROJECT and Sources.target_outside_project(path) is not None:
            return None
        text = read_text(path)
    except ConfigFileError as error:
        return "error", str(error)
    return None if text is None else ("text", text)


def read_file(scope: Scope, path: Path) -> FileContent:
    """Reads a file of a scope. No content of the file makes it raise."""
    content = content_of(scope, path)
    if content is None:
        return FileContent(content=None, problems=_ignored(scope, path))
    kind, text = content
    if kind == "error":
        return FileContent(content=content, fault=text)
    try:
        document = parse_object(path, text)
    except ConfigFileError as error:
        return FileContent(content=content, fault=str(error))
    reader = _PartReader(scope, path, text)
    part = reader.part(document)
    fault = _unknown_prohibitions(scope, path, text, document)
    rules = _rule_count(document) if scope == "local" and fault is None else 0
    servers_fault = None
    if not isinstance(document.get("mcpServers", {}), dict):
        servers_fault = str(at(path, text, ["mcpServers"], _NO_OBJECT))
    return FileContent(
        content=content,
        part=part,
        problems=reader.problems.texts(),
        fault=fault,
        servers_fault=servers_fault,
        rule_count=rules,
    )


class Problems:
    """The problems of one file. Only the first `PROBLEM_LIMIT` are described; more are counted, so that a
    file with very many takes no longer than others."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._problems: list[str] = []
        self._more = 0

    def texts(self) -> tuple[str, ...]:
        """The first problems, and how many more there are."""
        more = [f"{self._path}: and {self._more} more problems"] if self._more else []
        return (*self._problems, *more)

    def add(self, place: Sequence[str | int], reason: str | Callable[[], str]) -> None:
        if len(self._problems) >= PROBLEM_LIMIT:
            self._more += 1
            return
        reason = reason if isinstance(reason, str) else reason()
        self._problems.append(str(at(self._path, self._text, place, reason)))


class _PartReader:
    def __init__(self, scope: Scope, path: Path, text: str) -> None:
        self._scope: Scope = scope
        self._path = path
        self._text = text
        self.problems = Problems(path, text)
        self._add_problem = self.problems.add

    def part(self, document: dict[str, Any]) -> FileSettings:
        keys = schema.keys_of(_SHAPES[self._scope])
        values: dict[str, Any] = {}
        for key, value in document.items():
            if key == "$schema":
                continue
            if key not in keys:
                self._add_problem([key], lambda key=key: _unknown_key(key, keys))
            elif key in _RAW:
                values[key] = value
                if key == "hooks" and not isinstance(value, dict):
                    self._add_problem([key], '"hooks" must be an object')
            else:
                self._take(values, key, value, keys[key])
                if key == "permissions" and isinstance(value, dict):
                    self._unknown_permissions(cast("dict[str, Any]", value))
                if key == "env" and isinstance(value, dict) and self._scope == "user":
                    self._miswritten_settings(cast("dict[str, Any]", value))
        declares = "mcpServers" in values
        servers = self._servers(values.pop("mcpServers", None) if declares else {})
        return FileSettings(
            scope=self._scope,
            source=str(self._path),
            path=self._path,
            text=self._text,
            servers=servers,
            declares_servers=declares,
            values=values,
        )

    def _take(self, values: dict[str, Any], key: str, value: object, kind: Any) -> None:
        try:
            values[key] = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            if isinstance(value, _SALVAGED.get(key, ())):
                values[key] = self._salvaged([key], value, kind)
            else:
                self._add_problem([key], f"{key}: {error}; the key is left out")

    def _unknown_permissions(self, rules: dict[str, Any]) -> None:
        known = [field.encode_name for field in msgspec.structs.fields(PermissionRules)]
        for name in rules:
            if name not in known:
                reason = f"permissions: {_unknown_name(name, known)}"
                self._add_problem(["permissions", name], reason)
            elif name == "disableBypassPermissionsMode" and self._scope != "enterprise":
                reason = f"permissions: {name} has no effect here; it belongs in the managed file"
                self._add_problem(["permissions", name], reason)

    def _miswritten_settings(self, variables: dict[str, Any]) -> None:
        settings = {letters_of(name): name for name in NAMES}
        for name in variables:
            wanted = settings.get(letters_of(name), name)
            if wanted != name:
                reason = f'env: "{one_line(name, 60)}" is a variable, not a setting; the setting is written'
                self._add_problem(["env", name], f'{reason} "{wanted}"')

    def _salvaged(self, place: list[str | int], value: Any, kind: Any) -> Any:
        """The usable items of a list or object: one wrong item does not affect the others."""
        if isinstance(value, list):
            items = list(enumerate(cast("list[Any]", value)))
            return tuple(item for number, item in items if self._fits([*place, number], item, str))
        pairs = list(cast("dict[str, Any]", value).items())
        if kind is PermissionRules:
            return PermissionRules(**self._rules(pairs))
        return {name: item for name, item in pairs if self._fits([*place, name], item, str | int)}

    def _rules(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        rules: dict[str, Any] = {}
        for name, item in pairs:
            place: list[str | int] = ["permissions", name]
            if name in ("allow", "ask", "deny") and isinstance(item, list):
                rules[name] = self._salvaged(place, item, None)
            elif name in ("allow", "ask", "deny"):
                self._add_problem(place, f"permissions: {name} must be a list; it is left out")
            elif name == "defaultMode":
                # A value that is no text is kept as text: it must not give way to a mode of a weaker file.
                fits = self._fits(place, item, str | None)
                rules["default_mode"] = item if fits else str(item)
            elif name == "disableBypassPermissionsMode":
                # Whatever the value is, the intention was to disable the mode.
                rules["disable_bypass_permissions_mode"] = item if isinstance(item, str | bool) else True
        return rules

    def _fits(self, place: list[str | int], item: Any, kind: Any) -> bool:
        try:
            msgspec.convert(item, kind)
            return True
        except msgspec.ValidationError as error:
            self._add_problem(place, f"{place[0]}: {error}; the item is left out")
            return False

    def _servers(self, block: object) -> Mapping[str, object]:
        if not isinstance(block, dict):
            self._add_problem(["mcpServers"], _NO_OBJECT)
            return {}
        servers = cast("dict[str, object]", block)
        if self._scope not in UNTRUSTED:
            return servers
        used, problems = first_servers(list(servers.items()))
        for problem in problems:
            self._add_problem(["mcpServers"], problem)
        return dict(used)


def first_servers(servers: Sequence[Named]) -> tuple[list[Named], list[str]]:
    """The servers of an untrusted file that are used, and a description of those that are refused."""
    used = within(servers, ENTRY_LIMIT, SERVER_CHARACTERS)
    problems: list[str] = []
    if len(servers) > ENTRY_LIMIT:
        problems.append(f"it has {len(servers)} servers; those after the first {ENTRY_LIMIT} are refused")
    names = {name for name, _ in used}
    if too_long := [name for name, _ in servers[:ENTRY_LIMIT] if name not in names]:
        more = f" and {len(too_long) - 1} more" if len(too_long) > 1 else ""
        reason = f"its servers have more than {SERVER_CHARACTERS} characters"
        problems.append(f"{reason}; refused: {one_line(too_long[0], 80)!r}{more}")
    return used, problems


def within(servers: Iterable[Named], count: int, characters: int) -> list[Named]:
    """The first `count` servers, without each with which they would have more characters together."""
    used: list[Named] = []
    for named in islice(servers, count):
        if (needed := characters_of(named)) <= characters:
            characters -= needed
            used.append(named)
    return used


def characters_of(named: Named) -> int:
    return len(json.dumps(named))


def _ignored(scope: Scope, path: Path) -> tuple[str, ...]:
    """Why a project's file that is a link is ignored: another project's approvals would apply to it."""
    target = Sources.target_outside_project(path) if scope in IN_PROJECT else None
    if target is None or not os.path.lexists(path):
        return ()
    reason = f"the file is ignored: it leads to {target}, outside its project"
    advice = "copy it into the project, or put its servers and rules into your own settings (-s user)"
    return (f"{ConfigFileError(str(path), reason)}; {advice}",)


def _unknown_prohibitions(scope: Scope, path: Path, text: str, document: dict[str, Any]) -> str | None:
    """Why the prohibitions of a file are unknown, although it is JSON."""
    if scope not in CAN_DENY:
        return None
    for place, kind in _prohibitions(scope, document):
        owner = document if len(place) == 1 else document.get(place[0], {})
        if not isinstance(owner.get(place[-1], kind()), kind):
            name = ": ".join(f'"{one_line(key, 60)}"' for key in place)
            return str(at(path, text, place, f"{name} must be {'a list' if kind is list else 'an object'}"))
    if (found := miswritten_key(scope, document)) is not None:
        return str(at(path, text, *found))
    if scope == "enterprise" and (fault := _unusable_settings(path, text, document)) is not None:
        return fault
    if (fault := _unknown_rules(path, text, document)) is not None:
        return fault
    if scope == "user" and (fault := _unknown_hooks(path, text, document)) is not None:
        return fault
    if scope in UNTRUSTED and (count := _rule_count(document)) > RULE_LIMIT:
        return str(ConfigFileError(str(path), f"it has {count} rules, and at most {RULE_LIMIT} are read"))
    return None


def _unusable_settings(path: Path, text: str, document: dict[str, Any]) -> str | None:
    """The error of a setting whose value cannot be used: the environment could set another one."""
    for name, value in document.get("env", {}).items():
        if name in NAMES and (fault := fault_of_value(name, value)) is not None:
            return str(at(path, text, ["env", name], f"env: {one_line(fault, 200)}"))
    return None


def _unknown_rules(path: Path, text: str, document: dict[str, Any]) -> str | None:
    """The error of a deny, an ask, or a disabled server's name that is not text."""
    rules = document.get("permissions", {})
    lists = [(["permissions", key], rules.get(key, []), "a rule") for key in ("ask", "deny")]
    names = ("disabledMcpServers", "disabledMcpjsonServers")
    lists.extend(([key], document.get(key, []), "a name") for key in names)
    for place, items, what in lists:
        for number, item in enumerate(cast("list[object]", items)):
            if not isinstance(item, str):
                reason = f"{': '.join(place)}: {what} must be text"
                return str(at(path, text, [*place, number], reason))
    return None


def _unknown_hooks(path: Path, text: str, document: dict[str, Any]) -> str | None:
    """The error of a group of hooks that cannot be read: it may contain a hook that blocks."""
    for event, groups in document.get("hooks", {}).items():
        for number, group in enumerate(groups):
            if not isinstance(group, dict) or not isinstance(
                cast("dict[str, Any]", group).get("hooks"), list
            ):
                reason = f'hooks: each item of {one_line(event, 60)} must be an object with a list "hooks"'
                return str(at(path, text, ["hooks", event, number], reason))
    return None


def _rule_count(document: dict[str, Any]) -> int:
    """How many rules and names are in the lists of a file."""
    lists = [*document.get("permissions", {}).values(), *document.values()]
    return sum(len(cast("list[Any]", each)) for each in lists if isinstance(each, list))


def _prohibitions(scope: Scope, document: dict[str, Any]) -> Iterator[tuple[list[str], type]]:
    """The places of a file that forbid something, the outer ones first, with the required type.

    Not included: `deniedMcpServers`, which denies everything if it is not a list, and the administrator's
    hooks, which block if they cannot be read.
    """
    if scope == "enterprise":
        yield ["mcpServers"], dict
        yield ["env"], dict
    yield ["permissions"], dict
    yield ["permissions", "ask"], list
    yield ["permissions", "deny"], list
    yield ["disabledMcpServers"], list
    yield ["disabledMcpjsonServers"], list
    if scope == "user":
        yield ["hooks"], dict
        for event in document.get("hooks", {}):
            yield ["hooks", event], list


def at(path: Path, text: str, place: Sequence[str | int], reason: str) -> ConfigFileError:
    """An error about a place in a file."""
    from dragoman.config.jsonc import locate

    line, column = locate(text, place) or (None, None)
    return ConfigFileError(str(path), reason, line=line, column=column)


def entry_error(part: FileSettings | None, name: str, error: ConfigError) -> ConfigError:
    """The error with the position of its entry."""
    if part is None or part.path is None:
        return error
    placed = at(part.path, part.text, ["mcpServers", name], str(error))
    placed.hint = error.hint
    return placed


def _unknown_key(key: str, keys: Mapping[str, Any]) -> str:
    if key == "servers":
        return 'found "servers"; the block is called "mcpServers"'
    elsewhere = next((kind for kind, shape in schema.FILES.items() if key in schema.keys_of(shape)), None)
    if elsewhere is not None:
        return f"{key} has no effect here; it belongs in the {elsewhere} file"
    return _unknown_name(key, keys)


def _unknown_name(key: str, keys: Iterable[str]) -> str:
    import difflib  # only for an unknown key

    near = difflib.get_close_matches(key, keys, 1)
    return f"unknown key {masked_name(key)!r}" + (f"; did you mean {near[0]}?" if near else "; it is ignored")

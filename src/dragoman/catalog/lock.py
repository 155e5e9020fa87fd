"""The tool lock: the definitions of tools, prompts and resource templates as a person has seen them, in the
project's `.mcp.lock`.

Reads and writes the file, finds changes since it was written, and decides what a host with a tool lock leaves
out. Servers are listed by the names they are configured under, tools by their wire names; a prompt is `prompt
NAME`, a resource template `resource template URI`. The same definitions produce the same file, byte for byte;
invisible characters are escaped in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.catalog.prompts import PromptDefinition
from dragoman.catalog.resources import ResourceTemplate
from dragoman.catalog.tools import ServerTool, is_same
from dragoman.cleaning import one_line, replaced
from dragoman.config.file_reading import read_object
from dragoman.config.jsonc import locate
from dragoman.config.writer import edit
from dragoman.errors import ConfigFileError
from dragoman.json_values import nests_deeper

LOCK_FILE: Final = ".mcp.lock"
VERSION: Final = 1
DEFINITION_LIMIT_BYTES: Final = 64 * 1024
DEPTH_LIMIT: Final = 60
"""The maximum depth of a definition that is written to the file; of a deeper or larger one only the digest is
written."""
PARTS: Final = (
    "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "execution", "arguments",
    "displayName", "mimeType", "_meta"
)  # fmt: skip

Json = dict[str, Any]
Lockable = ServerTool | PromptDefinition | ResourceTemplate
Kind = Literal["added", "removed", "changed"]


class Locked(Struct, frozen=True):
    """One tool as it is recorded in the lock."""

    digest: str
    definition: Mapping[str, Any] | None = None
    """The definition; None if it was too large to be written."""


class Lock(Struct, frozen=True):
    servers: Mapping[str, Mapping[str, Locked]] = {}

    def find(self, item: Lockable) -> Locked | None:
        return self.servers.get(item.server, {}).get(_key(item))


class Change(Struct, frozen=True):
    server: str
    tool: str
    """The wire name of a tool; for a prompt or a template its key in the lock."""
    kind: Kind
    parts: tuple[str, ...] = ()
    """Those of `PARTS` that changed."""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


# --- decisions ---


def updated(
    lock: Lock, items: Iterable[object], *, read: Collection[str], known: Collection[str] | None = None
) -> Lock:
    """The lock updated with the servers in `read`; the records of other servers stay.

    With `known`, servers that are no longer configured are removed.
    """
    servers = {
        name: dict(entries)
        for name, entries in lock.servers.items()
        if name not in read and (known is None or name in known)
    }
    servers.update((name, {}) for name in read)
    for item in _lockable(items):
        if item.server in read:
            servers[item.server][_key(item)] = _locked(item)
    return Lock(servers)


def compare(
    lock: Lock, items: Iterable[object], *, read: Collection[str] | None = None
) -> tuple[Change, ...]:
    """What has changed, by server and tool.

    `read`: the servers whose tools were read; by default those that have any. Only their tools can be
    reported as removed.
    """
    present = {(str(item.server), _key(item)): item for item in _lockable(items)}
    looked_at = {server for server, _ in present} if read is None else set(read)
    changes = [_change(lock.find(item), item) for item in present.values() if item.server in looked_at]
    changes += [
        Change(server, name, "removed", before=entry.definition)
        for server in looked_at
        for name, entry in lock.servers.get(server, {}).items()
        if (server, name) not in present
    ]
    return tuple(sorted(filter(None, changes), key=lambda change: (change.server, change.tool)))


def why_left_out(lock: Lock, item: Lockable) -> str | None:
    """Why a host with a tool lock does not offer it; None if it does. Pure."""
    change = _change(lock.find(item), item)
    if change is None:
        return None
    if change.kind == "added":
        return f"it is not in {LOCK_FILE}"
    what = ", ".join(change.parts) or "its definition"
    return f"it is not as {LOCK_FILE} has it ({what} changed)"


def _change(entry: Locked | None, item: Lockable) -> Change | None:
    if entry is None:
        return Change(item.server, _key(item), "added", after=_definition(item))
    if entry.digest == _digest(item):
        return None
    before, after = entry.definition, _definition(item)
    parts = [part for part in PARTS if before and not is_same(before.get(part), after.get(part))]
    return Change(item.server, _key(item), "changed", tuple(parts), before, after)


def _lockable(items: Iterable[object]) -> Iterable[Lockable]:
    return (item for item in items if isinstance(item, Lockable))


def _key(item: Lockable) -> str:
    match item:
        case ServerTool():
            return str(item.wire_name)
        case PromptDefinition():
            return f"prompt {item.wire_name}"
        case ResourceTemplate():
            return f"resource template {item.uri_template}"


def _definition(item: Lockable) -> Json:
    match item:
        case ServerTool():
            return {part: value for part, value in item.as_listed().items() if part in PARTS}
        case PromptDefinition():
            described: Json = {"arguments": msgspec.to_builtins(item.arguments)}
        case ResourceTemplate():
            described = {
                "displayName": item.name,
                "mimeType": item.mime_type,
                "annotations": item.annotations,
            }
    described |= {"title": item.title, "description": item.description, "_meta": item.meta}
    return {part: value for part, value in described.items() if value}


def _digest(item: Lockable) -> str:
    return item.digest if isinstance(item, ServerTool) else digest_of(_key(item), _definition(item))


def _locked(item: Lockable) -> Locked:
    definition = _definition(item)
    is_small = len(msgspec.json.encode(definition)) <= DEFINITION_LIMIT_BYTES
    return Locked(
        _digest(item), definition if is_small and not nests_deeper(definition, DEPTH_LIMIT - 1) else None
    )


# --- the file ---


def read_lock(path: Path) -> Lock:
    """Reads the lock; without a file, nothing is locked. Blocks on disk access."""
    found = read_object(path)
    if found is None:
        return Lock()
    text, content = found
    reading = _Reading(path, text)
    if content.get("version") != VERSION:
        raise reading.problem(("version",), f"this Dragoman reads version {VERSION} of a tool lock")
    servers = reading.object_at(content, "servers")
    return Lock(
        {
            server: {name: reading.entry(server, name, tools) for name in tools}
            for server in servers
            for tools in [reading.object_at(servers, "servers", server)]
        }
    )


def write_lock(path: Path, lock: Lock) -> None:
    """Replaces the file atomically. Blocks on disk access."""
    content = as_text(lock)
    edit(path, lambda _: content, private=False, boundary=path.parent)


def as_text(lock: Lock) -> str:
    servers = {
        server: {name: _as_json(entry) for name, entry in entries.items()}
        for server, entries in lock.servers.items()
    }
    content = {"version": VERSION, "servers": servers}
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return replaced(text, _escaped) + "\n"


def _escaped(unsafe: str) -> str:
    """The text with characters that are invisible in a review as JSON escapes."""
    return json.dumps(unsafe)[1:-1].replace("\x7f", "\\u007f")


def _as_json(entry: Locked) -> Json:
    if entry.definition is None:
        return {"digest": entry.digest}
    definition = dict(entry.definition)
    description = definition.get("description")
    if isinstance(description, str) and "\n" in description:
        definition["description"] = description.split("\n")  # so that a diff shows lines
    return {"digest": entry.digest, "definition": definition}


class _Reading:
    """Parses one lock file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def object_at(self, owner: Mapping[str, Any], *place: str) -> Json:
        value = owner.get(place[-1])
        if not isinstance(value, dict):
            raise self.problem(place, f'"{one_line(place[-1], 100)}" is not an object')
        return cast("Json", value)

    def entry(self, server: str, name: str, tools: Json) -> Locked:
        place = ("servers", server, name)
        content = self.object_at(tools, *place)
        digest = content.get("digest")
        if not isinstance(digest, str):
            raise self.problem(place, f'tool "{one_line(name, 100)}" has no digest')
        if "definition" not in content:
            return Locked(digest)
        definition = self.object_at(content, *place, "definition")
        lines: Any = definition.get("description")
        if isinstance(lines, list):
            definition["description"] = "\n".join(str(line) for line in cast("list[Any]", lines))
        try:
            fits = digest_of(name, definition) == digest
        except UnicodeEncodeError:  # a lone surrogate: no definition of a server has one
            fits = False
        if not fits:
            raise self.problem(place, f'the digest of tool "{one_line(name, 100)}" is not of its definition')
        return Locked(digest, definition)

    def problem(self, place: tuple[str, ...], reason: str) -> ConfigFileError:
        line, column = locate(self._text, place) or (None, None)
        return ConfigFileError(
            str(self._path),
            reason,
            line=line,
            column=column,
            hint="Restore the file, or delete it and run `dragoman tools lock`.",
        )


def digest_of(name: str, definition: Mapping[str, Any]) -> str:
    """The digest of a definition, equal to `Tool.digest`."""
    listed = {"name": name, **definition}
    return hashlib.sha256(msgspec.json.encode(listed, order="sorted")).hexdigest()


def admission(path: Path) -> Callable[[Lockable], str | None]:
    """A function that returns why a host with this lock leaves something out. A missing lock would admit
    nothing."""
    if not path.exists():
        raise ConfigFileError(
            str(path), "there is no tool lock", hint="Write one with `dragoman tools lock`."
        )
    lock = read_lock(path)
    return lambda item: why_left_out(lock, item)

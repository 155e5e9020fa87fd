"""Whole files of other hosts: where they contain servers, and which of these are disabled. Pure.

Covers the blocks, servers that a host stores per project, and the ways in which hosts disable a server.
Entries are converted elsewhere; `jsonc` and `toml` read the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from dragoman.config.interchange.notes import Notebook

Document = Mapping[str, Any]
KeyPath = tuple[str, ...]


class NotABlock(Exception):
    """What stands at the path cannot hold servers."""

    def __init__(self, path: KeyPath) -> None:
        super().__init__()
        self.path = path


def block_of(document: Document, blocks: Sequence[KeyPath]) -> tuple[KeyPath, dict[str, Any] | None]:
    """The first block that is there, and what it holds; the usual one and None if none is."""
    for path in blocks:
        value = _at(document, path)
        if value is not None:
            return path, dict(value)
    return blocks[0], None


def _at(document: Document, path: KeyPath) -> Document | None:
    here = document
    for depth, key in enumerate(path, start=1):
        value: Any = here.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise NotABlock(path[:depth])
        here = cast("Document", value)
    return here


def project_servers(document: Document, project: Path | None) -> dict[str, Any]:
    """Servers that Claude Code keeps for one project only."""
    return _mapping(_project(document, project).get("mcpServers"))


def with_project(servers: dict[str, Any], nearer: Mapping[str, Any], book: Notebook) -> dict[str, Any]:
    for name in nearer:
        if name in servers:
            book.add(
                name, None, "it is defined for all projects and for this one; the one of this project is used"
            )
    return {**servers, **nearer}


def switched_off_for_project(document: Document, project: Path | None) -> set[str]:
    """Claude Code's lists for one project."""
    mine = _project(document, project)
    return _names(mine.get("disabledMcpServers")) | _names(mine.get("disabledMcpjsonServers"))


def list_at(document: Document, path: KeyPath) -> list[Any]:
    """A list of a file; an empty one if there is none."""
    here: Any = document
    for key in path:
        here = _mapping(here).get(key)
    return cast("list[Any]", here) if isinstance(here, list) else []


def switched_off_by_list(document: Document, names: Sequence[str]) -> set[str]:
    """Gemini CLI's two lists: those excluded, and, if there is a list of those allowed, all others."""
    lists = _mapping(document.get("mcp"))
    off = _names(lists.get("excluded"))
    if isinstance(lists.get("allowed"), list):
        off |= set(names) - _names(lists["allowed"])
    return off


def is_switched_off(entry: Any) -> bool:
    """By a field of its own."""
    fields = _mapping(entry)
    return fields.get("disabled") is True or fields.get("enabled") is False


def switch_of(entry: Any) -> dict[str, Any]:
    """The fields of an entry that say whether it is on."""
    kept = _mapping(without_switch(entry))
    return {key: value for key, value in _mapping(entry).items() if key not in kept}


def input_defaults(document: Document) -> dict[str, str]:
    """The defaults of what VS Code would ask for, by the input's id."""
    inputs: Any = document.get("inputs", _mapping(document.get("mcp")).get("inputs"))
    found = (_mapping(each) for each in cast("list[Any]", inputs)) if isinstance(inputs, list) else ()
    pairs = ((each.get("id"), each.get("default")) for each in found)
    return {name: text for name, text in pairs if isinstance(name, str) and isinstance(text, str)}


def fields_of(entry: Any) -> set[str]:
    return set(_mapping(entry))


def without_switch(entry: Any) -> Any:
    """The entry without the fields that only say whether it is on."""
    if not isinstance(entry, Mapping):
        return entry
    pairs = cast("Mapping[str, Any]", entry).items()
    return {
        key: value
        for key, value in pairs
        if key not in ("disabled", "enabled") or not isinstance(value, bool)
    }


def _project(document: Document, project: Path | None) -> Mapping[str, Any]:
    if project is None:
        return {}
    projects = _mapping(document.get("projects"))
    return _mapping(projects.get(str(project), projects.get(project.as_posix())))


def _mapping(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _names(value: Any) -> set[str]:
    if not isinstance(value, list):
        return set()
    return {name for name in cast("list[Any]", value) if isinstance(name, str)}

"""The files of other hosts, JSON or TOML: parses them, finds servers and disabled servers, inserts entries.

Syntax errors are raised with file, line and column. Entries are inserted so that the rest stays unchanged. A
changed TOML text is parsed again before it is returned, and contains exactly the intended values; where that
is not possible, an error is raised and nothing is changed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from dragoman.config import jsonc
from dragoman.config.file_reading import misread
from dragoman.config.interchange.hosts import Format
from dragoman.config.interchange.shared import Notes
from dragoman.errors import ConfigFileError


def parse(row: Format, text: str, source: str) -> dict[str, Any]:
    """The document, or a `ConfigFileError`. An empty file is an empty document."""
    if row.is_toml:
        return _parse_toml(text, source)
    if not text.strip("\ufeff \t\r\n"):
        return {}
    try:
        document = jsonc.parse(text, comments=row.comments)
    except jsonc.SyntaxProblem as problem:
        raise misread(source, problem, _json_hint(row, text)) from None
    if not isinstance(document, dict):
        raise ConfigFileError(source, "expected a JSON object", line=1)
    return cast("dict[str, Any]", document)


def _json_hint(row: Format, text: str) -> str | None:
    try:
        jsonc.parse(text, comments=True)
    except jsonc.SyntaxProblem:
        return None
    return f"It has comments or trailing commas, which {row.title} does not accept."


def block(
    row: Format, document: Mapping[str, Any], text: str, source: str
) -> tuple[KeyPath, dict[str, Any] | None]:
    """The path of the servers in the document, and the current value there, if any."""
    try:
        return block_of(document, row.blocks)
    except NotABlock as problem:
        line, column = (None, None) if row.is_toml else jsonc.locate(text, problem.path) or (None, None)
        raise ConfigFileError(
            source,
            f'"{".".join(problem.path)}" is not an object',
            line=line,
            column=column,
            hint="It maps each server's name to its entry.",
        ) from None


def with_disabled(row: Format, text: str, names: Sequence[str], source: str) -> str:
    """The text with these names in the host's list of disabled servers."""
    if row.disabled_list is None or not names:
        return text
    try:
        listed = list_at(jsonc.parse(text, comments=True), row.disabled_list)
        return jsonc.set_value(text, row.disabled_list, [*listed, *names])
    except jsonc.SyntaxProblem as problem:
        raise misread(source, problem, None) from None


def with_entries(
    row: Format,
    text: str,
    path: KeyPath,
    found: Mapping[str, Any] | None,
    changes: Mapping[str, dict[str, Any]],
    source: str,
) -> str:
    """The text with the entries in it. `found` is what `block` found."""
    new = {name: entry for name, entry in changes.items() if name not in (found or {})}
    if row.is_toml:
        return _put_tables(text, path, changes, new, source)
    if found is None and (changes or not text.strip()):
        text = jsonc.set_value(text, path, {})
    text = jsonc.set_members(text, path, {name: changes[name] for name in changes if name not in new})
    return jsonc.add_members(text, path, new) if new else text


# ---- the parsed file


Document = Mapping[str, Any]
KeyPath = tuple[str, ...]


class NotABlock(Exception):
    """The value at the path cannot hold servers."""

    def __init__(self, path: KeyPath) -> None:
        super().__init__()
        self.path = path


def block_of(document: Document, blocks: Sequence[KeyPath]) -> tuple[KeyPath, dict[str, Any] | None]:
    """The first existing block and its value; the usual path and None if there is none."""
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
    """The servers that Claude Code stores for one project only."""
    return _mapping(_project(document, project).get("mcpServers"))


def with_project(servers: dict[str, Any], nearer: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    for name in nearer:
        if name in servers:
            notes.add(
                name, None, "it is defined for all projects and for this one; the one of this project is used"
            )
    return {**servers, **nearer}


def disabled_for_project(document: Document, project: Path | None) -> set[str]:
    """Claude Code's lists for one project."""
    own = _project(document, project)
    return _names(own.get("disabledMcpServers")) | _names(own.get("disabledMcpjsonServers"))


def list_at(document: Document, path: KeyPath) -> list[Any]:
    """A list of a file; an empty one if there is none."""
    here: Any = document
    for key in path:
        here = _mapping(here).get(key)
    return cast("list[Any]", here) if isinstance(here, list) else []


def disabled_by_lists(document: Document, names: Sequence[str]) -> set[str]:
    """Gemini CLI's two lists: those excluded, and, if there is a list of those allowed, all others."""
    lists = _mapping(document.get("mcp"))
    off = _names(lists.get("excluded"))
    if isinstance(lists.get("allowed"), list):
        off |= set(names) - _names(lists["allowed"])
    return off


def is_disabled_entry(entry: Any) -> bool:
    """Whether a field of the entry disables it. One that is neither true nor false does, too."""
    fields = _mapping(entry)
    return fields.get("disabled") not in (None, False) or fields.get("enabled") not in (None, True)


def enabling_fields(entry: Any) -> dict[str, Any]:
    """The fields of an entry that enable or disable it."""
    kept = _mapping(without_enabling_fields(entry))
    return {key: value for key, value in _mapping(entry).items() if key not in kept}


def input_defaults(document: Document) -> dict[str, str]:
    """The defaults of VS Code's inputs, by id."""
    inputs: Any = document.get("inputs", _mapping(document.get("mcp")).get("inputs"))
    found = (_mapping(each) for each in cast("list[Any]", inputs)) if isinstance(inputs, list) else ()
    pairs = ((each.get("id"), each.get("default")) for each in found)
    return {name: text for name, text in pairs if isinstance(name, str) and isinstance(text, str)}


def fields_of(entry: Any) -> set[str]:
    return set(_mapping(entry))


def without_enabling_fields(entry: Any) -> Any:
    """The entry without the fields that only enable or disable it."""
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


# ---- TOML


_BYTE_ORDER_MARK: Final = "\ufeff"
_TOML_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
# The standard library's reader needs time that grows with the cube of a dotted key's length.
_ENDLESS_KEY: Final = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){100}""")


def _parse_toml(text: str, source: str) -> dict[str, Any]:
    """The document, or a `ConfigFileError` with its place."""
    if _ENDLESS_KEY.search(text):
        raise ConfigFileError(source, "it is nested too deeply")
    try:
        return tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except RecursionError:
        raise ConfigFileError(source, "it is nested too deeply") from None
    except ValueError as error:
        raise _toml_error(text, source, str(error)) from None


def _toml_error(text: str, source: str, message: str) -> ConfigFileError:
    found = _TOML_PLACE.search(message)
    reason = f"it is not valid TOML: {_TOML_PLACE.sub('', message)}"
    if found is None:
        return ConfigFileError(source, reason)
    if found.group(1) is None:
        return ConfigFileError(source, reason, line=text.count("\n") + 1)
    return ConfigFileError(source, reason, line=int(found.group(1)), column=int(found.group(2)))


def _put_tables(
    text: str, block: KeyPath, tables: Mapping[str, dict[str, Any]], new: Mapping[str, Any], source: str
) -> str:
    """The text with the tables at `[block.name]`; all are put there at once where that is possible."""
    if len(tables) > 1:
        meant = _parse_toml(text, source)
        for name, table in tables.items():
            meant = _with(meant, (*block, name), table)
        mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
        changed = _tried(lambda: _all_put(text.removeprefix(mark), block, tables, new), meant)
        if changed is not None:
            return mark + changed
    for name, table in tables.items():
        text = _put_table(text, block, name, table, source)
    return text


def _all_put(text: str, block: KeyPath, tables: Mapping[str, dict[str, Any]], new: Mapping[str, Any]) -> str:
    text = _edited(text, block, {name: table for name, table in tables.items() if name not in new})
    for name, table in new.items():
        text = _appended(text, (*block, name), table)
    return text


def _put_table(text: str, block: Sequence[str], name: str, table: Mapping[str, Any], source: str) -> str:
    """The text with the table at `[block.name]`; an existing table of that name is replaced."""
    meant = _with(_parse_toml(text, source), (*block, name), table)
    mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
    bare = text.removeprefix(_BYTE_ORDER_MARK)
    for attempt in _attempts(bare, (*block, name), table):
        changed = _tried(attempt, meant)
        if changed is not None:
            return mark + changed
    raise ConfigFileError(
        source, "a table cannot be put there without changing the rest", hint="Change the file by hand."
    )


def _attempts(text: str, path: tuple[str, ...], table: Mapping[str, Any]) -> list[Callable[[], str]]:
    """An addition to the end touches nothing else, so it comes first; it fails where the name is taken."""
    return [lambda: _appended(text, path, table), lambda: _edited(text, path[:-1], {path[-1]: table})]


def _tried(attempt: Callable[[], str], meant: dict[str, Any]) -> str | None:
    # tomlkit raises errors of many kinds for tables that are spread over a file; each means the same here.
    try:
        changed = attempt()
        return changed if _canonical(tomllib.loads(changed)) == _canonical(meant) else None
    except Exception:
        return None


def _appended(text: str, path: tuple[str, ...], table: Mapping[str, Any]) -> str:
    import tomlkit

    value: Any = table
    for key in reversed(path):
        value = {key: value}
    addition = tomlkit.dumps(value)
    if text and not text.endswith("\n"):
        text += "\n"
    joined = text + ("\n" if text else "") + addition
    return joined.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else joined


def _edited(text: str, block: KeyPath, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Changes the tables in place, member by member, so that comments beside them stay."""
    if not tables:
        return text
    import tomlkit

    document: Any = tomlkit.parse(text)
    owner: Any = document
    for key in block:
        owner = owner[key]
    for name, table in tables.items():
        _edit_table(owner, name, table)
    return tomlkit.dumps(document)


def _edit_table(owner: Any, name: str, table: Mapping[str, Any]) -> None:
    old: Any = owner.get(name)
    if old is None:
        owner[name] = dict(table)
        return
    before: dict[str, Any] = old.unwrap()
    for key in [key for key in before if key not in table]:
        del old[key]
    for key, value in table.items():
        if key not in before or _canonical(before[key]) != _canonical(value):
            old[key] = value


def _with(document: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    if len(path) == 1:
        return {**document, path[0]: value}
    inner = cast("dict[str, Any]", document.get(path[0], {}))
    return {**document, path[0]: _with(inner, path[1:], value)}


def _canonical(value: Any) -> Any:
    """A form for comparison: the order of keys is ignored, 1 differs from 1.0 and true, and nan equals
    nan."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return sorted((str(key), _canonical(item)) for key, item in pairs)
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in cast("list[Any]", value)]
    return repr(value)

"""The interface of import and export: `read` and `write`, for seven hosts.

Reads a host's file into Dragoman's entries, and writes entries into the text of a host's file. Takes and
returns text: no file is opened, no program is started, no variable is expanded. An invalid server does not
affect the others. What cannot be converted is noted, without values. The rest of a text that is written into
stays unchanged, and writing twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from dragoman.config.interchange import files, json_entries
from dragoman.config.interchange.hosts import FORMATS, Format, Place, host
from dragoman.config.interchange.shared import CannotTranslate, Note, Notes, Noting, ignore_note, is_default

__all__ = ["FORMATS", "Exported", "Format", "Imported", "Note", "Place", "read", "write"]


class Imported(Struct, frozen=True, kw_only=True):
    """The servers of a host's file, in Dragoman's form."""

    servers: dict[str, dict[str, Any]]
    disabled: tuple[str, ...]
    """Names of servers that the other host has disabled. They are among `servers`."""
    of_project: tuple[str, ...] = ()
    """Names of servers that the other host keeps for the project alone. They are among `servers`."""
    count: int = 0
    """How many servers are in the file, those that cannot be used included."""
    notes: tuple[Note, ...]


class Exported(Struct, frozen=True, kw_only=True):
    """A host's file with Dragoman's servers in it."""

    text: str
    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    conflicts: tuple[str, ...]
    """Names that exist with other content and were not to be replaced: they are unchanged."""
    notes: tuple[Note, ...]


# ---- reading


def read(format_key: str, text: str, *, source: str, project: Path | None = None) -> Imported:
    """The servers of a host's file. `project` adds those Claude Code keeps for that folder alone.

    Raises `ConfigFileError` if the file as a whole cannot be read; a server that cannot be read becomes a
    note.
    """
    row, notes = host(format_key), Notes()
    document = files.parse(row, text, source)
    path, found = files.block(row, document, text, source)
    if found is None:
        notes.add(None, None, f'there is no "{".".join(path)}" in the file')
    raw = found or {}
    nearer = files.project_servers(document, project) if row.key == "claude-code" else {}
    raw = files.with_project(raw, nearer, notes)
    off = _disabled_names(row, document, raw, project)
    servers = _read_entries(_with_inputs(row, document), raw, notes)
    return Imported(
        servers=servers,
        disabled=tuple(name for name in servers if name in off),
        of_project=tuple(name for name in servers if name in nearer),
        count=len(raw),
        notes=notes.all(),
    )


def _with_inputs(row: Format, document: Mapping[str, Any]) -> Format:
    """The format with the defaults of VS Code's inputs."""
    if row.key != "vscode" or row.dialect is None:
        return row
    syntax = structs.replace(row.dialect.syntax, inputs=files.input_defaults(document))
    dialect = structs.replace(row.dialect, syntax=syntax)
    return structs.replace(row, import_entry=partial(json_entries.import_entry, dialect))


def _disabled_names(
    row: Format, document: Mapping[str, Any], raw: Mapping[str, Any], project: Path | None
) -> set[str]:
    off = {name for name, entry in raw.items() if files.is_disabled_entry(entry)}
    if row.key == "claude-code":
        off |= files.disabled_for_project(document, project)
    if row.key == "gemini":
        off |= files.disabled_by_lists(document, tuple(raw))
    return off


def _read_entries(row: Format, raw: Mapping[str, Any], notes: Notes) -> dict[str, dict[str, Any]]:
    servers: dict[str, dict[str, Any]] = {}
    for name, entry in raw.items():
        note = notes.about(name)
        try:
            _check_name(name)
            servers[name] = row.import_entry(files.without_enabling_fields(entry), note)
            json_entries.note_commands_and_other_hosts(servers[name], note)
        except CannotTranslate as problem:
            note(problem.field, f"the server is left out: {problem.reason}")
    return servers


# ---- writing


class _Plan(Struct):
    """The servers to add, to replace and to leave unchanged."""

    changes: dict[str, dict[str, Any]] = {}
    unchanged: list[str] = []
    conflicts: list[str] = []


def write(
    format_key: str,
    text: str | None,
    servers: Mapping[str, Mapping[str, Any]],
    *,
    source: str,
    replace: Collection[str] = (),
    disabled: Collection[str] = (),
) -> Exported:
    """The text of a host's file with the servers in it. `text` is the current content, if the file exists.

    `disabled`: the servers that are disabled. Writing a server never enables it.

    Raises `ConfigFileError` if the text cannot be read, so that a broken file is never changed.
    """
    row, notes, plan = host(format_key), Notes(), _Plan()
    text = text or ""
    document = files.parse(row, text, source)
    path, found = files.block(row, document, text, source)
    off = files.disabled_by_lists(document, tuple(servers)) if row.disabled_list else set[str]()
    for name, entry in servers.items():
        theirs = _translated(row, name, entry, draft := Notes(), off=name in disabled)
        if theirs is not None:
            _decide(plan, row, name, theirs, found or {}, replace, draft)
        if name in off and name in plan.changes and name not in disabled:
            draft.add(name, None, f"it is disabled in {row.title}, and stays disabled")
        if name not in plan.conflicts:  # a server that is not written loses nothing
            notes.extend(draft)
    return Exported(
        text=files.with_disabled(
            row,
            files.with_entries(row, text, path, found, plan.changes, source),
            [name for name in plan.changes if name in disabled and name not in off],
            source,
        ),
        written=tuple(plan.changes),
        unchanged=tuple(plan.unchanged),
        conflicts=tuple(plan.conflicts),
        notes=notes.all(),
    )


def _decide(
    plan: _Plan,
    row: Format,
    name: str,
    theirs: dict[str, Any],
    there: Mapping[str, Any],
    replace: Collection[str],
    notes: Notes,
) -> None:
    """Plans the changes. An existing entry with the same meaning is not changed, even if it is spelled
    differently."""
    if name not in there:
        plan.changes[name] = theirs
    elif _is_same(row, there[name], theirs):
        plan.unchanged.append(name)
        if files.is_disabled_entry(there[name]):
            notes.add(name, None, f"it is present, but disabled in {row.title}")
    elif name not in replace:
        plan.conflicts.append(name)
    else:
        plan.changes[name] = theirs
        if files.is_disabled_entry(there[name]):
            theirs.update(files.enabling_fields(there[name]))
            notes.add(name, None, f"it is disabled in {row.title}, and stays disabled")
        _note_losses(row, name, there[name], notes)


def _note_losses(row: Format, name: str, old: Any, notes: Notes) -> None:
    """Notes the fields of a replaced entry that have no counterpart here, and so are lost."""
    lost = Notes()
    _core(row, old, lost.about(name))
    for note in lost.all():
        if note.field in files.fields_of(old):
            notes.add(name, note.field, f"{row.title}'s own field went with the entry that was replaced")


def _translated(row: Format, name: str, entry: Any, notes: Notes, *, off: bool) -> dict[str, Any] | None:
    note = notes.about(name)
    try:
        _check_name(name)
        if row.names is not None and not row.names.fullmatch(name):
            raise CannotTranslate(None, f"{row.title} does not accept such a name; the server is left out")
        if off and row.disabled_field is None and row.disabled_list is None:
            raise CannotTranslate(
                None, f"it is disabled here, and {row.title} has no such field; the server is left out"
            )
        theirs = row.export_entry(entry, note)
        if off and row.disabled_field is not None:
            theirs[row.disabled_field[0]] = row.disabled_field[1]
        if row.is_toml:
            _check_writable(theirs)
        return theirs
    except CannotTranslate as problem:
        note(problem.field, problem.reason)
        return None


def _is_same(row: Format, there: Any, theirs: dict[str, Any]) -> bool:
    core = _core(row, theirs, ignore_note)
    return there == theirs or (core is not None and core == _core(row, there, ignore_note))


def _core(row: Format, entry: Any, note: Noting) -> dict[str, Any] | None:
    """The meaning of a host's entry: the same for two spellings of it."""
    try:
        ours = row.import_entry(files.without_enabling_fields(entry), note)
    except CannotTranslate:
        return None
    ours.setdefault("type", "stdio")
    return {field: value for field, value in ours.items() if not is_default(field, value)}


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise CannotTranslate(None, "it has no name")


def _check_writable(entry: Mapping[str, Any]) -> None:
    """Checks that the servers can be written as TOML, which is Unicode text; JSON can also contain lone
    surrogates in escapes."""
    try:
        msgspec.json.encode(entry)
    except UnicodeEncodeError:
        raise CannotTranslate(None, "it has characters that cannot be written") from None

"""The door of import and export: seven hosts, two functions.

I own: the table of formats, reading a host's file into our entries, and writing our entries into its text.
I leave to others: files on disk, and where our own entries live. Nothing is looked up, started or expanded.
I guarantee: one bad server never costs the others; what does not carry over is noted, without values;
everything else in the text that is written into stays as it is; writing twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.config import jsonc
from dragoman.config.interchange import arriving, codex, documents, leaving, manners, places, toml
from dragoman.config.interchange.fields import says_nothing
from dragoman.config.interchange.manners import Manner
from dragoman.config.interchange.notes import Note, Notebook, Page, Unusable, silent_page
from dragoman.config.interchange.places import Place
from dragoman.errors import ConfigError, ConfigFileError

__all__ = ["FORMATS", "Exported", "Format", "Imported", "Note", "Place", "read", "write"]

Fate = Literal["written", "unchanged", "conflict"]
Translate = Callable[[Any, Page], dict[str, Any]]
Places = Callable[[Path, Path | None, str, Mapping[str, str]], tuple[Place, ...]]


class Imported(Struct, frozen=True, kw_only=True):
    """What a host's file holds, in our form."""

    servers: dict[str, dict[str, Any]]
    disabled: tuple[str, ...]
    """Names of servers the other host had switched off. They are among `servers`."""
    notes: tuple[Note, ...]


class Exported(Struct, frozen=True, kw_only=True):
    """A host's file with our servers in it."""

    text: str
    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    conflicts: tuple[str, ...]
    """Names that are there with other content and were not to be replaced: left as they are."""
    notes: tuple[Note, ...]


class Format(Struct, frozen=True, kw_only=True):
    """One host's files."""

    key: str
    title: str
    find: Places
    blocks: tuple[tuple[str, ...], ...] = (("mcpServers",),)
    """Where servers may be; the first is the usual one."""
    comments: bool = False
    """The host accepts comments and trailing commas."""
    is_toml: bool = False
    entry_in: Translate
    entry_out: Translate
    names: re.Pattern[str] | None = None
    """Names a server may have, if the host is particular."""

    def places(
        self, home: Path, project: Path | None, platform: str, environ: Mapping[str, str]
    ) -> tuple[Place, ...]:
        """The files that may be there, most usual first. `platform` is spelled as in `sys.platform`."""
        return self.find(home, project, platform, environ)


def _json(key: str, manner: Manner, find: Places, **more: Any) -> Format:
    return Format(
        key=key,
        title=manner.host,
        find=find,
        entry_in=partial(arriving.entry_in, manner),
        entry_out=partial(leaving.entry_out, manner),
        **more,
    )


_ROWS = (
    _json("claude-code", manners.CLAUDE_CODE, places.claude_code),
    _json("claude-desktop", manners.CLAUDE_DESKTOP, places.claude_desktop),
    _json("cursor", manners.CURSOR, places.cursor, comments=True),
    # In a settings.json the block stands one level deeper.
    _json("vscode", manners.VSCODE, places.vscode, comments=True, blocks=(("servers",), ("mcp", "servers"))),
    Format(
        key="codex",
        title="Codex",
        find=places.codex,
        blocks=(("mcp_servers",),),
        is_toml=True,
        entry_in=codex.entry_in,
        entry_out=codex.entry_out,
        names=codex.NAMES,
    ),
    _json("gemini", manners.GEMINI, places.gemini, comments=True),
    _json("windsurf", manners.WINDSURF, places.windsurf),
)

FORMATS: Final[Mapping[str, Format]] = MappingProxyType({row.key: row for row in _ROWS})


# ---- reading


def read(format_key: str, text: str, *, source: str, project: Path | None = None) -> Imported:
    """The servers of a host's file. `project` adds those Claude Code keeps for that folder alone.

    Raises `ConfigFileError` if the file as a whole cannot be read; a server that cannot becomes a note.
    """
    row, book = _row(format_key), Notebook()
    document = _parse(row, text, source)
    path, found = _block(row, document, text, source)
    if found is None:
        book.add(None, None, f'there is no "{".".join(path)}" in the file')
    raw = found or {}
    off: set[str] = set()
    if row.key == "claude-code":
        raw = documents.with_project(raw, documents.project_servers(document, project), book)
        off = documents.switched_off_for_project(document, project)
    elif row.key == "gemini":
        off = documents.switched_off_by_list(document, tuple(raw))
    off |= {name for name, entry in raw.items() if documents.is_switched_off(entry)}
    servers = _read_entries(row, raw, book)
    disabled = tuple(name for name in servers if name in off)
    return Imported(servers=servers, disabled=disabled, notes=book.notes())


def _read_entries(row: Format, raw: Mapping[str, Any], book: Notebook) -> dict[str, dict[str, Any]]:
    servers: dict[str, dict[str, Any]] = {}
    for name, entry in raw.items():
        page = book.page(name)
        try:
            _check_name(name)
            servers[name] = row.entry_in(documents.without_switch(entry), page)
        except Unusable as problem:
            page.say(problem.field, f"the server is left out: {problem.reason}")
    return servers


# ---- writing


def write(
    format_key: str,
    text: str | None,
    servers: Mapping[str, Mapping[str, Any]],
    *,
    source: str,
    replace: Collection[str] = (),
) -> Exported:
    """The text of a host's file with the servers in it. `text` is what the file holds now, if it is there.

    Raises `ConfigFileError` if that cannot be read, so that a broken file is never made worse.
    """
    row, book = _row(format_key), Notebook()
    text = text or ""
    path, found = _block(row, _parse(row, text, source), text, source)
    fates: dict[Fate, list[str]] = {"written": [], "unchanged": [], "conflict": []}
    changes: dict[str, dict[str, Any]] = {}
    for name, entry in servers.items():
        draft = Notebook()
        theirs = _translated(row, name, entry, draft)
        fate = _fate(row, found or {}, name, theirs, replace, draft)
        if fate != "conflict":  # what a server that stays outside would have lost concerns nobody
            book.take(draft)
        if fate is not None:
            fates[fate].append(name)
        if fate == "written" and theirs is not None:
            changes[name] = theirs
    return Exported(
        text=_put(row, text, path, found, changes, source),
        written=tuple(fates["written"]),
        unchanged=tuple(fates["unchanged"]),
        conflicts=tuple(fates["conflict"]),
        notes=book.notes(),
    )


def _translated(row: Format, name: str, entry: Any, book: Notebook) -> dict[str, Any] | None:
    page = book.page(name)
    try:
        _check_name(name)
        if row.names is not None and not row.names.fullmatch(name):
            raise Unusable(None, f"{row.title} does not accept such a name; the server is left out")
        theirs = row.entry_out(entry, page)
        if row.is_toml:
            _check_writable(theirs)
        return theirs
    except Unusable as problem:
        page.say(problem.field, problem.reason)
        return None


def _fate(
    row: Format,
    there: Mapping[str, Any],
    name: str,
    theirs: dict[str, Any] | None,
    replace: Collection[str],
    book: Notebook,
) -> Fate | None:
    """What becomes of one server: what is there already, in other words perhaps, is not touched."""
    if theirs is None:
        return None
    if name not in there:
        return "written"
    page = book.page(name)
    if _core(row, there[name], silent_page()) == _core(row, theirs, silent_page()):
        if documents.is_switched_off(there[name]):
            page.say(None, f"it is there, but switched off in {row.title}")
        return "unchanged"
    if name not in replace:
        return "conflict"
    lost = Notebook()
    _core(row, there[name], lost.page(name))
    for note in lost.notes():
        if note.field in documents.fields_of(there[name]):
            page.say(note.field, f"{row.title}'s own field went with the entry that was replaced")
    return "written"


def _core(row: Format, entry: Any, page: Page) -> dict[str, Any] | None:
    """What a host's entry comes to: the same for two spellings of the same thing."""
    try:
        ours = row.entry_in(documents.without_switch(entry), page)
    except Unusable:
        return None
    ours.setdefault("type", "stdio")
    return {field: value for field, value in ours.items() if not says_nothing(field, value)}


def _put(
    row: Format,
    text: str,
    path: tuple[str, ...],
    found: Mapping[str, Any] | None,
    changes: Mapping[str, dict[str, Any]],
    source: str,
) -> str:
    if row.is_toml:
        for name, entry in changes.items():
            text = toml.put(text, path, name, entry, source)
        return text
    if found is None and (changes or not text.strip()):
        text = jsonc.set_value(text, path, {})
    for name, entry in changes.items():
        text = jsonc.set_value(text, (*path, name), entry)
    return text


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise Unusable(None, "it has no name")


def _check_writable(entry: Mapping[str, Any]) -> None:
    """TOML is Unicode text; JSON can also carry halves of characters, in escapes."""
    try:
        msgspec.json.encode(entry)
    except UnicodeEncodeError:
        raise Unusable(None, "it has characters that cannot be written") from None


# ---- the file as a whole


def _row(key: str) -> Format:
    if key not in FORMATS:
        raise ConfigError(f"there is no format {key!r}", hint=f"Formats: {', '.join(FORMATS)}.")
    return FORMATS[key]


def _parse(row: Format, text: str, source: str) -> dict[str, Any]:
    if row.is_toml:
        return toml.parse(text, source)
    if not text.strip("\ufeff \t\r\n"):
        return {}
    try:
        document = jsonc.parse(text, comments=row.comments)
    except jsonc.SyntaxProblem as problem:
        raise ConfigFileError(
            source, problem.reason, line=problem.line, column=problem.column, hint=_json_hint(row, text)
        ) from None
    if not isinstance(document, dict):
        raise ConfigFileError(source, "expected a JSON object", line=1)
    return cast("dict[str, Any]", document)


def _json_hint(row: Format, text: str) -> str | None:
    try:
        jsonc.parse(text, comments=True)
    except jsonc.SyntaxProblem:
        return None
    return f"It has comments or trailing commas, which {row.title} does not accept."


def _block(
    row: Format, document: Mapping[str, Any], text: str, source: str
) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    try:
        return documents.block_of(document, row.blocks)
    except documents.NotABlock as problem:
        line, column = (None, None) if row.is_toml else jsonc.locate(text, problem.path) or (None, None)
        raise ConfigFileError(
            source,
            f'"{".".join(problem.path)}" is not an object',
            line=line,
            column=column,
            hint="It maps each server's name to its entry.",
        ) from None

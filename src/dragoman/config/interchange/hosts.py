"""The table of the seven hosts: name, files, where the servers are in them, and how an entry is converted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from dragoman.config.interchange import codex, dialects, export_entries, import_entries, places
from dragoman.config.interchange.dialects import Dialect
from dragoman.config.interchange.notes import Page
from dragoman.config.interchange.places import Place
from dragoman.errors import ConfigError

Translate = Callable[[Any, Page], dict[str, Any]]
Places = Callable[[Path, Path | None, str, Mapping[str, str]], tuple[Place, ...]]


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
    dialect: Dialect | None = None
    """How entries are written; None for Codex."""
    entry_in: Translate
    entry_out: Translate
    names: re.Pattern[str] | None = None
    """Names a server may have, if the host is particular."""
    off: tuple[str, bool] | None = None
    """The field of an entry that switches its server off, and its value; None if there is none."""
    off_list: tuple[str, ...] | None = None
    """Where the names of servers that are switched off are listed."""

    def places(
        self, home: Path, project: Path | None, platform: str, environ: Mapping[str, str]
    ) -> tuple[Place, ...]:
        """The files that may be there, most usual first. `platform` is spelled as in `sys.platform`."""
        return self.find(home, project, platform, environ)


def _json(key: str, dialect: Dialect, find: Places, **more: Any) -> Format:
    return Format(
        key=key,
        title=dialect.host,
        find=find,
        dialect=dialect,
        entry_in=partial(import_entries.entry_in, dialect),
        entry_out=partial(export_entries.entry_out, dialect),
        **more,
    )


_ROWS = (
    _json("claude-code", dialects.CLAUDE_CODE, places.claude_code),
    _json("claude-desktop", dialects.CLAUDE_DESKTOP, places.claude_desktop),
    _json("cursor", dialects.CURSOR, places.cursor, comments=True),
    # In a settings.json the block stands one level deeper.
    _json("vscode", dialects.VSCODE, places.vscode, comments=True, blocks=(("servers",), ("mcp", "servers"))),
    Format(
        key="codex",
        title="Codex",
        find=places.codex,
        blocks=(("mcp_servers",),),
        is_toml=True,
        entry_in=codex.entry_in,
        entry_out=codex.entry_out,
        names=codex.NAMES,
        off=("enabled", False),
    ),
    _json("gemini", dialects.GEMINI, places.gemini, comments=True, off_list=("mcp", "excluded")),
    _json("windsurf", dialects.WINDSURF, places.windsurf, off=("disabled", True)),
)

FORMATS: Final[Mapping[str, Format]] = MappingProxyType({row.key: row for row in _ROWS})


def host(key: str) -> Format:
    """The row of that key, or a `ConfigError` that names those there are."""
    if key not in FORMATS:
        raise ConfigError(f"there is no format {key!r}", hint=f"Formats: {', '.join(FORMATS)}.")
    return FORMATS[key]

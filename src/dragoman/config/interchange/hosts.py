"""The table of the seven hosts: names, usual paths of their files on Linux, macOS and Windows, where the
servers are in them, and how an entry is written. No file is accessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from dragoman.config.interchange import codex, variables
from dragoman.config.interchange.json_entries import Dialect, SignIn, export_entry, import_entry
from dragoman.config.interchange.shared import Noting
from dragoman.errors import ConfigError

Environ = Mapping[str, str]


class Place(Struct, frozen=True):
    """A possible file, and its scope."""

    path: Path
    level: str
    """"user" or "project"."""


class HostFile(NamedTuple):
    """Where a host's file usually is."""

    base: Literal["home", "applications", "project"]
    path: str
    folder_variable: str = ""
    """The environment variable that names the file's folder, if it is set."""

    def place(self, bases: Mapping[str, Path | None], environ: Environ) -> Place | None:
        base = bases[self.base]
        if base is None:
            return None
        path = base / self.path
        if folder := environ.get(self.folder_variable):
            path = Path(folder, path.name)
        return Place(path, "project" if self.base == "project" else "user")


def _applications(home: Path, platform: str, environ: Environ) -> Path:
    """The folder in which desktop applications store their settings."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


Translate = Callable[[Any, Noting], dict[str, Any]]


class Format(Struct, frozen=True, kw_only=True):
    """One host's files."""

    key: str
    title: str
    files: tuple[HostFile, ...]
    """The usual files, the most common first."""
    blocks: tuple[tuple[str, ...], ...] = (("mcpServers",),)
    """Where servers may be; the first is the usual one."""
    comments: bool = False
    """The host accepts comments and trailing commas."""
    is_toml: bool = False
    dialect: Dialect | None = None
    """How entries are written; None for Codex."""
    import_entry: Translate
    export_entry: Translate
    names: re.Pattern[str] | None = None
    """A pattern for the names of servers, if the host restricts them."""
    disabled_field: tuple[str, bool] | None = None
    """The field of an entry that disables its server, and its value; None if there is none."""
    disabled_list: tuple[str, ...] | None = None
    """The path of the list of disabled servers."""

    def places(
        self, home: Path, project: Path | None, platform: str, environ: Mapping[str, str]
    ) -> tuple[Place, ...]:
        """The possible files, the most common first. `platform` is spelled as in `sys.platform`."""
        applications = _applications(home, platform, environ)
        bases = {"home": home, "applications": applications, "project": project}
        found = (file.place(bases, environ) for file in self.files)
        return tuple(place for place in found if place is not None)


_ENV_FILE = "files of variables are not read: set what it holds, or write it under env"

CLAUDE_CODE: Final = Dialect(
    syntax=variables.dollar_braces("Claude Code"),
    addresses={"url": "http"},
    spelled={"http": "url", "sse": "url", "ws": "url"},
    # An address without a type is taken for a stdio server there, and skipped.
    typed="always",
    fields={"headersHelper": "headersHelper", "timeout": "timeout"},
    shortest_timeout=1000,
    sign_in=SignIn(
        field="oauth",
        names={name: name for name in ("clientId", "callbackPort", "authServerMetadataUrl", "scopes", "xaa")},
        scopes_are_text=True,
    ),
    keeps_unknown=True,
)

CLAUDE_DESKTOP: Final = Dialect(
    syntax=variables.no_variables("Claude Desktop"), spelled={}, typed="never", addresses={"url": ""}
)

CURSOR: Final = Dialect(
    syntax=variables.editor_variables("Cursor"),
    addresses={"url": ""},
    spelled={"http": "url", "sse": "url"},
    sign_in=SignIn(
        field="auth", names={"clientId": "CLIENT_ID", "clientSecret": "CLIENT_SECRET", "scopes": "scopes"}
    ),
    reasons={"envFile": _ENV_FILE},
)

VSCODE: Final = Dialect(
    syntax=variables.editor_variables("VS Code"),
    addresses={"url": "http"},
    spelled={"http": "url", "sse": "url"},
    typed="always",
    fields={"cwd": "cwd"},
    sign_in=SignIn(field="oauth", names={"clientId": "clientId"}),
    reasons={
        "envFile": _ENV_FILE,
        "sandbox": "sandboxes are not supported",
        "sandboxEnabled": "sandboxes are not supported: the server runs with your own permissions",
        "dev": "servers are not restarted when their files change",
    },
    unremarkable=frozenset({"gallery", "version"}),
)

GEMINI: Final = Dialect(
    syntax=variables.shell_variables("Gemini CLI"),
    # Both are read by every version; `url` alone was SSE first and is tried as HTTP since.
    addresses={"httpUrl": "http", "url": None},
    spelled={"http": "httpUrl", "sse": "url"},
    fields={
        "cwd": "cwd",
        "timeout": "timeout",
        "enabledTools": "includeTools",
        "disabledTools": "excludeTools",
    },
    sign_in=SignIn(
        field="oauth", names={"clientId": "clientId", "clientSecret": "clientSecret", "scopes": "scopes"}
    ),
    reasons={"trust": "trust is not imported: Dragoman's rules decide about calls"},
    unremarkable=frozenset({"description"}),
)

WINDSURF: Final = Dialect(
    syntax=variables.plain_editor_variables("Windsurf"),
    addresses={"serverUrl": "", "url": ""},
    spelled={"http": "serverUrl", "sse": "serverUrl"},
    typed="never",
    fields={"disabledTools": "disabledTools"},
)


def _json(key: str, dialect: Dialect, *files: HostFile, **more: Any) -> Format:
    return Format(
        key=key,
        title=dialect.host,
        files=files,
        dialect=dialect,
        import_entry=partial(import_entry, dialect),
        export_entry=partial(export_entry, dialect),
        **more,
    )


_ROWS = (
    _json(
        "claude-code",
        CLAUDE_CODE,
        HostFile("home", ".claude.json", "CLAUDE_CONFIG_DIR"),
        HostFile("project", ".mcp.json"),
    ),
    _json("claude-desktop", CLAUDE_DESKTOP, HostFile("applications", "Claude/claude_desktop_config.json")),
    _json(
        "cursor",
        CURSOR,
        HostFile("home", ".cursor/mcp.json"),
        HostFile("project", ".cursor/mcp.json"),
        comments=True,
    ),
    _json(
        "vscode",
        VSCODE,
        HostFile("project", ".vscode/mcp.json"),
        HostFile("applications", "Code/User/mcp.json"),
        HostFile("applications", "Code - Insiders/User/mcp.json"),
        comments=True,
        blocks=(("servers",), ("mcp", "servers")),  # in a settings.json the block is one level deeper
    ),
    Format(
        key="codex",
        title="Codex",
        files=(
            HostFile("home", ".codex/config.toml", "CODEX_HOME"),
            HostFile("project", ".codex/config.toml"),
        ),
        blocks=(("mcp_servers",),),
        is_toml=True,
        import_entry=codex.import_entry,
        export_entry=codex.export_entry,
        names=codex.NAMES,
        disabled_field=("enabled", False),
    ),
    _json(
        "gemini",
        GEMINI,
        HostFile("home", ".gemini/settings.json"),
        HostFile("project", ".gemini/settings.json"),
        comments=True,
        disabled_list=("mcp", "excluded"),
    ),
    _json(
        "windsurf",
        WINDSURF,
        HostFile("home", ".codeium/windsurf/mcp_config.json"),
        HostFile("home", ".codeium/mcp_config.json"),  # of its plugins for other editors
        disabled_field=("disabled", True),
    ),
)

FORMATS: Final[Mapping[str, Format]] = MappingProxyType({row.key: row for row in _ROWS})


def host(key: str) -> Format:
    """The format of this host; raises `ConfigError` with the known hosts."""
    if key not in FORMATS:
        raise ConfigError(f"there is no format {key!r}", hint=f"Formats: {', '.join(FORMATS)}.")
    return FORMATS[key]

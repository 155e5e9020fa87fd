"""The table of the seven hosts: names, usual paths of their files on Linux, macOS and Windows, where the
servers are in them, and how an entry is written. No file is accessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from dragoman.config.interchange import codex, variables
from dragoman.config.interchange.json_entries import Dialect, SignIn, export_entry, import_entry
from dragoman.config.interchange.shared import Page
from dragoman.errors import ConfigError

Environ = Mapping[str, str]


class Place(Struct, frozen=True):
    """A file that may be there, and whom it concerns."""

    path: Path
    level: str
    """"user" or "project"."""


def _claude_code(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    folder = _folder(environ, "CLAUDE_CONFIG_DIR", home)
    return (_user_file(folder / ".claude.json"), *_project_file(project, ".mcp.json"))


def _claude_desktop(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    return (_user_file(_applications(home, platform, environ) / "Claude" / "claude_desktop_config.json"),)


def _cursor(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    return (_user_file(home / ".cursor" / "mcp.json"), *_project_file(project, ".cursor", "mcp.json"))


def _vscode(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    applications = _applications(home, platform, environ)
    editions = (_user_file(applications / name / "User" / "mcp.json") for name in ("Code", "Code - Insiders"))
    return (*_project_file(project, ".vscode", "mcp.json"), *editions)


def _codex(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    folder = _folder(environ, "CODEX_HOME", home / ".codex")
    return (_user_file(folder / "config.toml"), *_project_file(project, ".codex", "config.toml"))


def _gemini(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    return (
        _user_file(home / ".gemini" / "settings.json"),
        *_project_file(project, ".gemini", "settings.json"),
    )


def _windsurf(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    # The second is the one its plugins for other editors use.
    folder = home / ".codeium"
    return (_user_file(folder / "windsurf" / "mcp_config.json"), _user_file(folder / "mcp_config.json"))


def _user_file(path: Path) -> Place:
    return Place(path, "user")


def _project_file(project: Path | None, *parts: str) -> tuple[Place, ...]:
    return () if project is None else (Place(project.joinpath(*parts), "project"),)


def _applications(home: Path, platform: str, environ: Environ) -> Path:
    """Where programs with windows keep their settings."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return _folder(environ, "APPDATA", home / "AppData" / "Roaming")
    return _folder(environ, "XDG_CONFIG_HOME", home / ".config")


def _folder(environ: Environ, name: str, otherwise: Path) -> Path:
    given = environ.get(name)
    return Path(given) if given else otherwise


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
    import_entry: Translate
    export_entry: Translate
    names: re.Pattern[str] | None = None
    """Names a server may have, if the host is particular."""
    disabled_field: tuple[str, bool] | None = None
    """The field of an entry that switches its server off, and its value; None if there is none."""
    disabled_list: tuple[str, ...] | None = None
    """Where the names of servers that are switched off are listed."""

    def places(
        self, home: Path, project: Path | None, platform: str, environ: Mapping[str, str]
    ) -> tuple[Place, ...]:
        """The files that may be there, most usual first. `platform` is spelled as in `sys.platform`."""
        return self.find(home, project, platform, environ)


_ENV_FILE = "files of variables are not read: set what it holds, or write it under env"

CLAUDE_CODE: Final = Dialect(
    syntax=variables.like_ours("Claude Code"),
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
    syntax=variables.none_at_all("Claude Desktop"), spelled={}, typed="never", addresses={"url": ""}
)

CURSOR: Final = Dialect(
    syntax=variables.like_an_editor("Cursor"),
    addresses={"url": ""},
    spelled={"http": "url", "sse": "url"},
    sign_in=SignIn(
        field="auth", names={"clientId": "CLIENT_ID", "clientSecret": "CLIENT_SECRET", "scopes": "scopes"}
    ),
    reasons={"envFile": _ENV_FILE},
)

VSCODE: Final = Dialect(
    syntax=variables.like_an_editor("VS Code"),
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
    syntax=variables.like_a_shell("Gemini CLI"),
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
    syntax=variables.like_an_editor_without_words("Windsurf"),
    addresses={"serverUrl": "", "url": ""},
    spelled={"http": "serverUrl", "sse": "serverUrl"},
    typed="never",
    fields={"disabledTools": "disabledTools"},
)


def _json(key: str, dialect: Dialect, find: Places, **more: Any) -> Format:
    return Format(
        key=key,
        title=dialect.host,
        find=find,
        dialect=dialect,
        import_entry=partial(import_entry, dialect),
        export_entry=partial(export_entry, dialect),
        **more,
    )


_ROWS = (
    _json("claude-code", CLAUDE_CODE, _claude_code),
    _json("claude-desktop", CLAUDE_DESKTOP, _claude_desktop),
    _json("cursor", CURSOR, _cursor, comments=True),
    # In a settings.json the block stands one level deeper.
    _json("vscode", VSCODE, _vscode, comments=True, blocks=(("servers",), ("mcp", "servers"))),
    Format(
        key="codex",
        title="Codex",
        find=_codex,
        blocks=(("mcp_servers",),),
        is_toml=True,
        import_entry=codex.import_entry,
        export_entry=codex.export_entry,
        names=codex.NAMES,
        disabled_field=("enabled", False),
    ),
    _json("gemini", GEMINI, _gemini, comments=True, disabled_list=("mcp", "excluded")),
    _json("windsurf", WINDSURF, _windsurf, disabled_field=("disabled", True)),
)

FORMATS: Final[Mapping[str, Format]] = MappingProxyType({row.key: row for row in _ROWS})


def host(key: str) -> Format:
    """The row of that key, or a `ConfigError` that names those there are."""
    if key not in FORMATS:
        raise ConfigError(f"there is no format {key!r}", hint=f"Formats: {', '.join(FORMATS)}.")
    return FORMATS[key]

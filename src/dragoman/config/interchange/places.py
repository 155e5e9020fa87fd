"""The usual paths of other hosts' files on Linux, macOS and Windows, the most usual first. Pure: no file is
accessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

Environ = Mapping[str, str]


class Place(Struct, frozen=True):
    """A file that may be there, and whom it concerns."""

    path: Path
    level: str
    """"user" or "project"."""


def claude_code(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    folder = _folder(environ, "CLAUDE_CONFIG_DIR", home)
    return (_user(folder / ".claude.json"), *_project(project, ".mcp.json"))


def claude_desktop(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    return (_user(_applications(home, platform, environ) / "Claude" / "claude_desktop_config.json"),)


def cursor(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    return (_user(home / ".cursor" / "mcp.json"), *_project(project, ".cursor", "mcp.json"))


def vscode(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    applications = _applications(home, platform, environ)
    editions = (_user(applications / name / "User" / "mcp.json") for name in ("Code", "Code - Insiders"))
    return (*_project(project, ".vscode", "mcp.json"), *editions)


def codex(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    folder = _folder(environ, "CODEX_HOME", home / ".codex")
    return (_user(folder / "config.toml"), *_project(project, ".codex", "config.toml"))


def gemini(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    return (_user(home / ".gemini" / "settings.json"), *_project(project, ".gemini", "settings.json"))


def windsurf(home: Path, project: Path | None, platform: str, environ: Environ) -> tuple[Place, ...]:
    # The second is the one its plugins for other editors use.
    folder = home / ".codeium"
    return (_user(folder / "windsurf" / "mcp_config.json"), _user(folder / "mcp_config.json"))


def _user(path: Path) -> Place:
    return Place(path, "user")


def _project(project: Path | None, *parts: str) -> tuple[Place, ...]:
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

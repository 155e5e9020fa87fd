"""Changes that a person makes to configuration: adding, removing, enabling and disabling servers.

Decides which file is changed and what else is done: a server that a person adds in a project is approved, and
a local file is excluded from git. `writer.py` writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from dragoman.config import approval, jsonc
from dragoman.config.expand import expand_entry, guesses, variables_in
from dragoman.config.file_reading import read_object
from dragoman.config.load import Configuration
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import parse_entry
from dragoman.config.scopes import IN_PROJECT, Scope, Sources
from dragoman.errors import ConfigError, ConfigFileError, PolicyRefused
from dragoman.names import ProhibitedNames

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_IGNORED: Final = ".gitignore\nsettings.local.json\n"


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be a server's name", hint="Up to 64 letters, digits, hyphens and underscores."
        )


def check_entry(configuration: Configuration, name: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Raises `ConfigError` if the entry cannot be used; returns the variables that are not set."""
    missing = tuple(sorted(variables_in(entry) - configuration.environ.keys()))
    errors: list[ConfigError] = []
    for environ in list(guesses(entry, configuration.environ)) or [configuration.environ]:
        try:
            parse_entry(name, expand_entry(name, entry, environ))
            return missing
        except ConfigError as error:
            errors.append(error)
    raise errors[0]


def check_policy(configuration: Configuration, name: str, entry: Mapping[str, Any], scope: Scope) -> None:
    """Raises `PolicyRefused` if a server of this kind is not admitted."""
    verdict = configuration.admit(name, entry, scope=scope)
    if verdict.eligibility == "refused":
        raise PolicyRefused(name, verdict.reason or "")


def entry_in(path: Path, name: str) -> Any | None:
    """The entry of this name in a file; None if there is none."""
    return _entries_in(path).get(name)


def has_entry(path: Path, name: str) -> bool:
    return name in _entries_in(path)


def _entries_in(path: Path) -> dict[str, Any]:
    read = read_object(path)
    servers = read[1].get("mcpServers") if read else None
    return cast("dict[str, Any]", servers) if isinstance(servers, dict) else {}


def put_server(sources: Sources, scope: Scope, name: str, entry: Mapping[str, Any]) -> Path:
    """Writes the entry into the file of the scope; replaces an entry of the same name."""
    path = sources.file_of(scope)
    edit_file(sources, scope, path, lambda text: jsonc.set_value(text, ["mcpServers", name], dict(entry)))
    if scope in IN_PROJECT:
        approval.remember(sources.approvals_file, path, name, entry, "approved")
    return path


def remove_server(sources: Sources, scope: Scope, path: Path, name: str) -> None:
    edit_file(sources, scope, path, lambda text: jsonc.remove(text, ["mcpServers", name]))
    if scope in IN_PROJECT:
        approval.forget(sources.approvals_file, (path,), name)


def places_of(sources: Sources, name: str) -> list[tuple[Scope, Path]]:
    """Where a person's files have an entry of this name, nearest first."""
    files: list[tuple[Scope, Path]] = [
        *(("local", path) for path in sources.in_use(sources.local_files())),
        *(("project", path) for path in sources.in_use(sources.project_files())),
        ("user", sources.user_file),
    ]
    found: list[tuple[Scope, Path]] = []
    for scope, path in files:
        try:
            if has_entry(path, name):
                found.append((scope, path))
        except ConfigFileError:
            continue  # a broken file elsewhere is no reason not to change this one
    return found


def save_disabled(configuration: Configuration, server: ConfiguredServer) -> Path:
    """Disables a server permanently: for its project if it belongs to one, else everywhere."""
    sources = configuration.sources
    scope: Scope = "local" if server.scope in IN_PROJECT else "user"
    path = sources.file_of(scope)
    edit_file(sources, scope, path, lambda text: _with_off(text, server.name))
    return path


def save_enabled(configuration: Configuration, name: str) -> list[Path]:
    """Removes every name that means a server from the lists of the person's own files; returns the changed
    files. A pattern is left to the person, because it may mean other servers, too."""
    sources = configuration.sources
    own: list[tuple[Scope, Path]] = [("user", sources.user_file)]
    own.extend(("local", file) for file in sources.in_use(sources.local_files()))
    changed: list[Path] = []
    for scope, path in own:
        listed = _off_in(path)
        meant = ProhibitedNames(dict.fromkeys(listed, ""), configuration.names).meaning(name)
        if pattern := next((each for each in meant if each != name and "*" in each), None):
            raise ConfigError(
                f"{name!r} is disabled by the pattern {pattern!r} in {path}", hint="Change the pattern there."
            )
        if meant:
            edit_file(sources, scope, path, lambda text, meant=meant: _without_off(text, meant))
            changed.append(path)
    return changed


def _off_in(path: Path) -> list[str]:
    read = read_object(path)
    return _off_of(read[1]) if read else []


def _off_of(document: dict[str, Any]) -> list[str]:
    names = document.get("disabledMcpServers")
    return [str(name) for name in cast("list[Any]", names)] if isinstance(names, list) else []


def _with_off(text: str, name: str) -> str:
    listed = _off_of(jsonc.parse(text)) if text else []
    return text if name in listed else jsonc.set_value(text, ["disabledMcpServers"], [*listed, name])


def _without_off(text: str, names: list[str]) -> str:
    kept = [each for each in _off_of(jsonc.parse(text)) if each not in names]
    return jsonc.set_value(text, ["disabledMcpServers"], kept)


def forget_choices(sources: Sources) -> int:
    """Deletes every approval decision about the files of this project; returns how many."""
    files = (*sources.project_files(), *sources.local_files())
    agents = tuple(folder / ".dragoman" / "agents" for folder in sources.folders())
    return approval.forget_all(sources.approvals_file, files, agents)


def edit_file(sources: Sources, scope: Scope, path: Path, change: Callable[[str], str]) -> None:
    """Changes a file of a scope, with the permissions and checks for such files."""
    from dragoman.config.writer import edit

    boundary = sources.project_root_of(path) if scope in IN_PROJECT else None
    edit(path, change, private=scope != "project", boundary=boundary)
    if scope == "local":
        _keep_out_of_git(path.parent)


def _keep_out_of_git(folder: Path) -> None:
    """Excludes a file from git with a `.gitignore` file beside it, which is created or extended."""
    from dragoman.config.writer import rewrite

    def change(text: str) -> str:
        lines = text.splitlines()
        if {"*", "settings.local.json", "/settings.local.json"} & set(lines):
            return text
        return "\n".join([*lines, "settings.local.json", ""]) if text else _IGNORED

    rewrite(folder / ".gitignore", change, boundary=folder)

"""The folders that the person works in, and which files the model has read there.

Paths are resolved before rules and hooks see them, so that a rule about a path applies to every spelling of
it and to links to it. A rule that denies or asks also applies to the path by which a call named the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman import paths
from dragoman.errors import CallError, InvalidArguments
from dragoman.own_threads import in_own_thread

PATH: Final = "file_path"
PROCESSES: Final = Path("/proc")
"""This folder shows the environment of each process, with keys that commands of a model do not get."""
_NAMES_OF_PATHS: Final = (PATH, "path", "file", "filePath")
"""The names that a rule may use for the argument with the path: `Read` and `Glob` name it differently."""
NAMES_LIMIT: Final = 1000
"""The most paths with links that are remembered."""
Version = tuple[int, int]
"""The modification time and the size of a file."""


class Workspace:
    def __init__(self, folder: Path, extra_folders: Sequence[Path] = ()) -> None:
        self.folder = folder.resolve()
        self.cwd = self.folder
        """The folder in which commands run, and to which relative paths refer."""
        self._folders = [self.folder, *(each.resolve() for each in extra_folders)]
        # Agents and plugins are no secrets, and may be what the person works on.
        links = paths.links_in_config().items()
        own = [target for place, target in links if not place.startswith(("agents", "plugins"))]
        self._private = [paths.config_dir().resolve(), PROCESSES, *own]
        self._read: dict[Path, Version | None] = {}
        """The version of each file when the model last saw its content."""
        self._links: dict[str, Path] = {}
        """The paths with links that calls have named, each with its target."""

    def resolve(self, text: str) -> Path:
        """The absolute path without links. Raises `ValueError` for an invalid path."""
        if "\0" in text:
            raise ValueError("it contains a NUL character")
        try:
            return (self.cwd / Path(text).expanduser()).resolve()
        except (OSError, RuntimeError) as error:  # a long name, a loop of links, no such user
            raise ValueError(str(error)) from None

    def contains(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self._folders)

    def is_path_inside(self, arguments: Mapping[str, Any], name: str = PATH) -> bool:
        """Whether the path in the arguments of a call is inside these folders, and not private."""
        path = Path(str(arguments.get(name, "")))
        return self.contains(path) and not self.is_private(path)

    def is_private(self, path: Path) -> bool:
        """Whether the path is in Dragoman's own folder (settings, tokens, conversations), also through a link
        in that folder, or in /proc."""
        return any(path.is_relative_to(each) for each in self._private)

    async def with_full_path(
        self, tool: str, arguments: Mapping[str, Any], name: str = PATH
    ) -> Mapping[str, Any]:
        """The arguments of a call, with the resolved path; without a path, with the working directory."""
        text = str(arguments.get(name) or ".")
        try:
            path = await in_own_thread(lambda: self.resolve(text))  # a network folder may not answer
        except (OSError, ValueError) as error:
            raise InvalidArguments("", tool, (f"{name} cannot be used: {error}",)) from None
        self._note_link(text, path)
        return {**arguments, name: str(path)}

    def _note_link(self, text: str, path: Path) -> None:
        named = os.path.abspath(self.cwd / Path(text).expanduser())
        if named != str(path):
            self._links.pop(named, None)
            self._links[named] = path
            if len(self._links) > NAMES_LIMIT:
                del self._links[next(iter(self._links))]

    def by_other_names(self, arguments: Mapping[str, Any], name: str = PATH) -> Mapping[str, Any]:
        """The arguments of a call with other paths of the same file: those with links by which calls have
        named it or a folder above it, and those relative to the person's folders. Each path is also given
        under the other argument names that a rule may use."""
        path = Path(str(arguments.get(name, "")))
        linked = [
            Path(named) / path.relative_to(target)
            for named, target in list(self._links.items())  # rules are also compared in threads
            if path.is_relative_to(target)
        ]
        inside = [
            each.relative_to(folder)
            for each in (path, *linked)
            for folder in self._folders
            if each.is_relative_to(folder)
        ]
        others = [*map(str, (*linked, *inside)), *(f"./{each}" for each in inside)]
        every = (str(path), *others)
        return {**arguments, **dict.fromkeys(_NAMES_OF_PATHS, every), name: others}

    def path_in(self, arguments: Mapping[str, Any], name: str = PATH) -> Path:
        """The path of an allowed call. Raises `BuiltinToolError` if it has become a link meanwhile."""
        path = Path(str(arguments[name]))
        if path.resolve() != path:
            raise BuiltinToolError(f"{path} was replaced by a link while permission was asked for")
        return path

    # Files that the model has read.

    def note_read(self, path: Path) -> None:
        self._read[path] = version_of(path)

    def check_read(self, path: Path) -> None:
        """Raises `BuiltinToolError` if the model has not read the current content of an existing file."""
        if path not in self._read:
            raise BuiltinToolError(f"{path} exists, and you have not read it. Read it first.")
        if self._read[path] != version_of(path):
            raise BuiltinToolError(f"{path} was changed after you read it. Read it again.")


class BuiltinToolError(CallError):
    """A built-in tool failed; the reason is text for the model."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


def version_of(path: Path) -> Version | None:
    """The modification time and size of a file; None if there is no such file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size

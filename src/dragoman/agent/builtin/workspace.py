"""The folders that the person works in, and which files the model has read there.

Paths are resolved before rules and hooks see them, so that a rule about a path holds for every spelling of it
and for links to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman import paths
from dragoman.errors import CallError, InvalidArguments

PATH: Final = "file_path"
PROCESSES: Final = Path("/proc")
"""Where systems show the environment of processes, which has the keys that commands are not given."""
Version = tuple[int, int]


class Workspace:
    def __init__(self, folder: Path, extra_folders: Sequence[Path] = ()) -> None:
        self.folder = folder.resolve()
        self.cwd = self.folder
        """Where commands run, and what relative paths are relative to."""
        self._folders = [self.folder, *(each.resolve() for each in extra_folders)]
        self._private = paths.config_dir().resolve()
        self._read: dict[Path, Version | None] = {}
        """Time of change and size of each file when the model last saw its content."""

    def resolve(self, text: str) -> Path:
        """The absolute path without links. Raises `ValueError` for what can be no path."""
        if "\0" in text:
            raise ValueError("it contains a NUL character")
        try:
            return (self.cwd / Path(text).expanduser()).resolve()
        except (OSError, RuntimeError) as error:  # a name that is too long, a loop of links, no such user
            raise ValueError(str(error)) from None

    def contains(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self._folders)

    def holds(self, arguments: Mapping[str, Any], name: str = PATH) -> bool:
        """Whether the path among the arguments of a call is inside these folders, and not private."""
        path = Path(str(arguments.get(name, "")))
        return self.contains(path) and not self.is_private(path)

    def is_private(self, path: Path) -> bool:
        """Whether it is in Dragoman's own folder (settings, tokens, conversations) or about processes."""
        return path.is_relative_to(self._private) or path.is_relative_to(PROCESSES)

    async def with_full_path(
        self, tool: str, arguments: Mapping[str, Any], name: str = PATH
    ) -> Mapping[str, Any]:
        """The arguments of a call with the path resolved; without one, with the working directory."""
        try:
            return {**arguments, name: str(self.resolve(str(arguments.get(name) or ".")))}
        except ValueError as error:
            raise InvalidArguments("", tool, (f"{name} cannot be used: {error}",)) from None

    def path_in(self, arguments: Mapping[str, Any], name: str = PATH) -> Path:
        """The path of a call that was allowed. Raises `FileProblem` if it leads elsewhere by now."""
        path = Path(str(arguments[name]))
        if path.resolve() != path:
            raise FileProblem(f"{path} was replaced by a link while permission was asked for")
        return path

    # What the model has seen.

    def note_read(self, path: Path) -> None:
        self._read[path] = version_of(path)

    def check_read(self, path: Path) -> None:
        """A file is changed only by a model that knows what is in it. Raises `FileProblem`."""
        if path not in self._read:
            raise FileProblem(f"{path} exists, and was not read. Read it first.")
        if self._read[path] != version_of(path):
            raise FileProblem(f"{path} was changed since it was read. Read it again.")


class FileProblem(CallError):
    """Why a built-in tool cannot do what the model wants."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


def version_of(path: Path) -> Version | None:
    """Time of change and size; None if there is no such file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size

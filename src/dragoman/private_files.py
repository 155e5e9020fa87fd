"""Opens files, and keeps them private to their owner, on every system.

The flags that a system does not have are 0 here. Where files have no owner and mode as POSIX has them
(Windows), every file counts as this user's own and closed to others: the access list of the home folder
decides there. `Folder` opens files relative to an open folder where that is possible, so that the folder
cannot be replaced meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

CLOSE_ON_EXEC: Final[int] = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags for every file: not inherited by child processes, and binary."""
NO_LINK: Final[int] = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT: Final[int] = getattr(os, "O_NONBLOCK", 0)
"""A pipe without a writer must not block."""
NO_TERMINAL: Final[int] = getattr(os, "O_NOCTTY", 0)
_DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_HAS_OWNERS: Final = hasattr(os, "geteuid")
_OPENS_RELATIVE: Final = os.open in os.supports_dir_fd


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to this user."""
    return not _HAS_OWNERS or status.st_uid == os.geteuid()


def is_own_user(user: int) -> bool:
    return not _HAS_OWNERS or user == os.geteuid()


def is_open_to(others: int, status: os.stat_result) -> bool:
    """Whether other users have one of these rights (bits of the mode)."""
    return _HAS_OWNERS and bool(status.st_mode & others)


def set_mode(descriptor: int, mode: int) -> None:
    """Sets the mode of an open file or folder. Raises `OSError`."""
    if _HAS_OWNERS:
        os.fchmod(descriptor, mode)


def set_owner(descriptor: int, like: os.stat_result) -> None:
    """Gives an open file the owner and group of another one. Raises `OSError`."""
    if _HAS_OWNERS:
        os.fchown(descriptor, like.st_uid, like.st_gid)


def read_at(descriptor: int, count: int, offset: int) -> bytes:
    """Bytes of an open file. Without `pread` the file position moves, which does not affect appending."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, count)


def read_regular(path: Path | str, limit_bytes: int) -> bytes:
    """The content of a regular file, in bounded time and memory. Raises `OSError` for a larger file, and for
    a pipe, a device or a folder."""
    descriptor = os.open(path, os.O_RDONLY | NO_WAIT | NO_TERMINAL | CLOSE_ON_EXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if status.st_size > limit_bytes:
            raise OSError(errno.EFBIG, "it is too large")
        return os.read(descriptor, limit_bytes)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Writes the names in a folder to disk. Raises `OSError` where that is not possible."""
    descriptor = os.open(folder, os.O_RDONLY | _DIRECTORY | CLOSE_ON_EXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Folder:
    """A folder of this user. All methods raise `OSError`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        if _OPENS_RELATIVE:
            self._descriptor = os.open(path, os.O_RDONLY | _DIRECTORY | NO_LINK | CLOSE_ON_EXEC)

    def status(self) -> os.stat_result:
        return os.stat(self._path) if self._descriptor is None else os.fstat(self._descriptor)

    def close_to_others(self) -> None:
        if self._descriptor is not None and is_open_to(_OTHERS, self.status()):
            set_mode(self._descriptor, stat.S_IRWXU)

    def names(self) -> list[str]:
        return os.listdir(self._path if self._descriptor is None else self._descriptor)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        return os.open(self._at(name), flags | NO_LINK | CLOSE_ON_EXEC, mode, dir_fd=self._descriptor)

    def unlink(self, name: str) -> None:
        os.unlink(self._at(name), dir_fd=self._descriptor)

    def status_of(self, name: str) -> os.stat_result:
        return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _at(self, name: str) -> str | Path:
        return self._path / name if self._descriptor is None else name

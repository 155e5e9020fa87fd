"""Replaces one file atomically.

Handles temporary files, permissions, and writing to disk before the rename. Guarantees: after a failure the
file is unchanged, and permissions are never widened. Hard links, access lists and extended attributes are not
kept, because the file is never written in place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from dragoman import paths
from dragoman.private_files import (
    CLOSE_ON_EXEC,
    NO_LINK,
    is_open_to,
    is_own,
    set_mode,
    set_owner,
    sync_folder,
)
from dragoman.processes import check_exists

PRIVATE_FILE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_CANNOT_BE_REPLACED: Final = (errno.EACCES, errno.EPERM, errno.EBUSY)
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | CLOSE_ON_EXEC


def write_file(real: Path, data: bytes, *, private: bool) -> None:
    """Writes the data as the file's content. `real` is not a link, and the caller holds its lock. Raises
    `OSError`."""
    if private:
        paths.make_private(real.parent)
        restrict_access(real)
    else:
        real.parent.mkdir(parents=True, exist_ok=True)
    _sweep(real)
    _replace(real, data, private)


def write_output(real: Path, data: bytes) -> None:
    """Writes the data to a file that a person or a model has named. `real` is not a link. Raises `OSError`. A
    file that is a mount point, or whose folder cannot be written, is written in place."""
    try:
        write_file(real, data, private=False)
    except OSError as error:
        if error.errno not in _CANNOT_BE_REPLACED or not real.exists():
            raise
        real.write_bytes(data)


def write_cache(path: Path, data: bytes) -> None:
    """Replaces a private file that may be lost: no error is raised, and nothing waits for the disk."""
    with contextlib.suppress(OSError):
        paths.make_private(path.parent)
        _replace(path, data, private=True, is_cache=True)


def restrict_access(real: Path) -> None:
    """Removes the access of other users to the file, if it exists, and to the folders that are Dragoman's
    own.

    Called before anything is written, so that the new content is never readable by others.
    """
    _close_to_others(real, PRIVATE_FILE)
    top = resolved(paths.config_dir())
    home = Path(os.path.realpath(os.path.expanduser("~")))
    for folder in real.parents:
        if folder.is_relative_to(top) and folder != home:
            _close_to_others(folder, _PRIVATE_FOLDER)


def copy_aside(real: Path) -> Path:
    """Keeps a copy as `<name>.corrupt-<n>`, with the first free number. The file stays until it is replaced.

    The file is not renamed: if the new content were never written, it would be missing.
    """
    aside, descriptor = _open_aside(real)
    try:
        try:
            _copy(real, descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        discard(aside)
        raise
    return aside


def _open_aside(real: Path) -> tuple[Path, int]:
    number = 0
    while True:
        number += 1
        aside = real.with_name(f"{real.name}.corrupt-{number}")
        try:
            return aside, os.open(aside, _NEW_FILE, PRIVATE_FILE)
        except FileExistsError:
            pass


def _copy(real: Path, descriptor: int) -> None:
    source = os.open(real, os.O_RDONLY | NO_LINK | CLOSE_ON_EXEC)
    try:
        while chunk := os.read(source, 1 << 20):
            write_all(descriptor, chunk)
        os.fsync(descriptor)
    finally:
        os.close(source)


def discard(path: Path) -> None:
    with contextlib.suppress(OSError):  # it was never created; or the next writer removes it as a leftover
        os.unlink(path)


def resolved(path: Path) -> Path:
    """The path without links. Parts of it need not exist."""
    # First strict: otherwise a link that may not be read is treated as a file.
    try:
        return Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:
        return Path(os.path.realpath(path))


# --- the replacement ---


def _replace(real: Path, data: bytes, private: bool, *, is_cache: bool = False) -> None:
    old = _status(real)
    if old is not None and not os.access(real, os.W_OK):
        raise PermissionError(errno.EACCES, "it is read-only")
    temporary = real.with_name(f".{real.name}.{os.getpid()}.{secrets.token_hex(6)}.tmp")
    try:
        _write_whole(temporary, data, old, private, is_synced=not is_cache)
        os.replace(temporary, real)
    except BaseException:
        discard(temporary)
        raise
    if not is_cache:
        # Writes the new name to disk. The file is complete already, so a failure here is not a failure of the
        # write.
        with contextlib.suppress(OSError):  # some file systems cannot sync a folder
            sync_folder(real.parent)


def _write_whole(
    temporary: Path, data: bytes, old: os.stat_result | None, private: bool, *, is_synced: bool
) -> None:
    is_plain_new = old is None and not private
    # A plain new file gets its mode from the umask; every other file is private until its mode is set.
    descriptor = os.open(temporary, _NEW_FILE, 0o666 if is_plain_new else PRIVATE_FILE)
    try:
        if old is not None:
            _keep_owner(descriptor, old)
        if not is_plain_new:
            _set_mode(descriptor, PRIVATE_FILE if private or old is None else stat.S_IMODE(old.st_mode))
        write_all(descriptor, data)
        if is_synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _keep_owner(descriptor: int, old: os.stat_result) -> None:
    """Keeps the owner of a file that root edits."""
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):  # only root may give files away
            set_owner(descriptor, old)


def _set_mode(descriptor: int, mode: int) -> None:
    # Compared first, because some file systems have one mode for all files and refuse to set it.
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        set_mode(descriptor, mode)


# --- leftovers ---


def _sweep(real: Path) -> None:
    """Removes temporary files that crashed writers have left beside the file."""
    leftover = re.compile(rf"\.{re.escape(real.name)}\.([0-9]{{1,9}})\.[0-9a-f]{{12}}\.tmp")
    try:
        names = os.listdir(real.parent)
    except OSError:  # a folder that may be written to but not listed
        return
    for name in names:
        found = leftover.fullmatch(name)
        if found and _is_over(int(found.group(1))):
            discard(real.with_name(name))


def _is_over(pid: int) -> bool:
    """Whether the writer has ended. This process's own pid counts as ended: under the lock, this process has
    no other write under way."""
    if pid == os.getpid():
        return True
    try:
        check_exists(pid)
    except ProcessLookupError:
        return True
    except OSError:  # it runs, as another user
        pass
    return False


# --- permissions ---


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _close_to_others(path: Path, mode: int) -> None:
    status = _status(path)
    if status is None or not is_open_to(_OTHERS, status) or not is_own(status):
        return
    # A sticky folder, as /tmp is, is shared on purpose.
    if not status.st_mode & stat.S_ISVTX:
        os.chmod(path, mode)

"""Changes configuration files safely.

A lock allows one writer at a time, across processes. New content is checked to be readable. At every moment a
file is complete, with its old or its new content. A file that cannot be read is never overwritten. A failure
leaves the file as it was, and its message contains nothing of the content. `atomic_write` writes the bytes,
`file_reading` reads them.

All functions block on disk access, and perhaps on another process: call them in a thread.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dragoman import paths
from dragoman.atomic_write import PRIVATE_FILE, copy_aside, discard, resolved, restrict_access, write_file
from dragoman.config.file_reading import LIMIT_BYTES, decode, misread, parse_object, read_bytes
from dragoman.config.jsonc import SyntaxProblem
from dragoman.errors import ConfigFileError

LOCK_WAIT_SECONDS: Final = 30.0
_LOCK_POLL_SECONDS: Final = 0.01


def edit(
    path: Path,
    change: Callable[[str], str],
    *,
    private: bool,
    boundary: Path | None = None,
) -> None:
    """Replaces the file's text by `change` of it ("" if there is no file), or raises `ConfigFileError`.

    A link is followed to its file; with a boundary, that file must be inside it. A private file is made
    accessible only to its owner.
    """
    real = _real_path(path, boundary)
    with _locked(path, real):
        before = _current_text(path, real)
        after = _changed(path, before, change)
        if after != before:
            _check(path, after)
            _write(path, real, after, private)
        elif private:
            _restrict_access(path, real)


def rewrite(path: Path, change: Callable[[str], str], *, boundary: Path | None = None) -> None:
    """Like `edit`, for another host's file in any format: the caller is responsible for its content.

    A new file is private, because its content may be secret; an existing file keeps its mode.
    """
    real = _real_path(path, boundary)
    with _locked(path, real):
        data = read_bytes(real)
        before = "" if data is None else decode(path, data)
        after = change(before)
        if after != before or data is None:
            _write(path, real, after, private=data is None)


def edit_state(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path | None:
    """Like `edit`, for a state file of Dragoman: always private, with a dictionary as content.

    Of a file that cannot be read a copy is kept, and its path is returned; the new content starts empty.
    """
    real = _real_path(path, None)
    with _locked(path, real):
        state, aside = _current_state(path, real)
        try:
            _change_state(path, real, state, change, even_if_same=aside is not None)
        except BaseException:
            if aside is not None:
                discard(aside)
            raise
    return aside


# --- reading ---


def _real_path(path: Path, boundary: Path | None) -> Path:
    with _translated(path):
        real = resolved(path)
        if boundary is not None and not real.is_relative_to(resolved(boundary)):
            raise _refused(path, "it leads to a file outside its project")
    return real


def _current_text(path: Path, real: Path) -> str:
    data = read_bytes(real)
    if data is None:
        return ""
    text = decode(path, data)
    parse_object(path, text)
    return text


def _current_state(path: Path, real: Path) -> tuple[dict[str, Any], Path | None]:
    data = read_bytes(real)
    if data is None:
        return {}, None
    try:
        return parse_object(path, decode(path, data)), None
    except ConfigFileError:
        with _translated(path):
            return {}, copy_aside(real)


# --- the new content ---


def _changed(path: Path, before: str, change: Callable[[str], str]) -> str:
    try:
        return change(before)
    except SyntaxProblem as problem:  # the text of the file does not allow this change
        raise misread(str(path), problem) from None


def _check(path: Path, text: str) -> None:
    """Checks that the new content is readable."""
    try:
        parse_object(path, text)
        size_bytes = len(text.encode())
    except (ConfigFileError, UnicodeEncodeError) as error:
        raise _refused(path, f"the change would make the file unreadable: {error.reason}") from None
    if size_bytes > LIMIT_BYTES:
        raise _refused(path, f"the change would make the file larger than {LIMIT_BYTES // 1024**2} MB")


def _change_state(
    path: Path,
    real: Path,
    state: dict[str, Any],
    change: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    even_if_same: bool,
) -> None:
    before = _state_text(state)
    after = _state_text(change(state))
    if after != before or even_if_same:
        _check(path, after)
        _write(path, real, after, private=True)
    else:
        _restrict_access(path, real)


def _state_text(state: dict[str, Any]) -> str:
    return json.dumps(state, indent=2, allow_nan=False) + "\n"


def _write(path: Path, real: Path, text: str, private: bool) -> None:
    with _translated(path):
        write_file(real, text.encode(), private=private)


def _restrict_access(path: Path, real: Path) -> None:
    with _translated(path):
        restrict_access(real)


# --- one at a time ---


@contextmanager
def _locked(path: Path, real: Path) -> Generator[None]:
    from filelock import FileLock, Timeout

    folder = paths.state_dir() / "locks"
    with _translated(path, f"its lock in {folder} cannot be used"):
        paths.make_private(folder)
        file = folder / f"{hashlib.sha256(os.fsencode(real)).hexdigest()}.lock"
        restrict_access(resolved(file))
        lock = FileLock(file, timeout=LOCK_WAIT_SECONDS, mode=PRIVATE_FILE)
        try:
            lock.acquire(poll_interval=_LOCK_POLL_SECONDS)
        except Timeout:
            raise ConfigFileError(
                str(path),
                f"another process has been writing it for {LOCK_WAIT_SECONDS:g} seconds",
                hint="Try again; if it stays so, end the other process.",
            ) from None
    try:
        yield
    finally:
        try:
            lock.release()
        except OSError:  # the file itself is complete; the lock ends with its descriptor
            pass


# --- errors ---

_HINTS: Final = {
    errno.ENOSPC: "Free some space.",
    errno.EDQUOT: "Free some space.",
    errno.EROFS: "The file system is read-only.",
    errno.EACCES: "Check the owner and the permissions of the file and of its folder.",
    errno.EPERM: "Check the owner and the permissions of the file and of its folder.",
}


@contextmanager
def _translated(path: Path, what_failed: str = "the file cannot be written") -> Generator[None]:
    """Converts errors of the operating system."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "Try again, and check the disk.")
        raise ConfigFileError(
            str(path), f"{what_failed}: {error.strerror or 'unknown error'}", hint=hint
        ) from None
    except ValueError:  # a NUL character, or a surrogate
        raise _refused(path, "no file can have this name") from None


def _refused(path: Path, reason: str) -> ConfigFileError:
    return ConfigFileError(str(path), reason, hint="Nothing was written.")

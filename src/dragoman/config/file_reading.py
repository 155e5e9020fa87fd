"""Reads configuration files without trusting them.

Reading ends soon and uses little memory, whatever the path is (a pipe, a device, a folder, a huge file).
Errors have file, line and column, and contain nothing of the file except names of keys.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final, cast

from dragoman.config.jsonc import SyntaxProblem, locate, parse
from dragoman.errors import ConfigFileError
from dragoman.private_files import CLOSE_ON_EXEC, NO_TERMINAL, NO_WAIT

LIMIT_BYTES: Final = 8 * 1024 * 1024
"""No person writes this much by hand; larger files are refused."""

_FLAGS: Final = os.O_RDONLY | NO_WAIT | NO_TERMINAL | CLOSE_ON_EXEC


def read_text(path: Path) -> str | None:
    """The text of the file, or None if it does not exist."""
    data = read_bytes(path)
    return None if data is None else decode(path, data)


def read_object(path: Path) -> tuple[str, dict[str, Any]] | None:
    """The file's text and the JSON object in it, or None if it does not exist."""
    text = read_text(path)
    return None if text is None else (text, parse_object(path, text))


def read_bytes(path: Path) -> bytes | None:
    """The file's first bytes, up to one more than the limit. None if it does not exist.

    Errors describe the file, never its content.
    """
    try:
        descriptor = os.open(path, _FLAGS)
        try:
            return _read_regular(path, descriptor)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        raise _unreadable(path, error) from None


def check_reachable(path: Path) -> None:
    """`ConfigFileError` if a file that seems to be missing may exist nevertheless: behind a link that leads
    nowhere now, or below something that is not a folder. Such a file does not count as missing."""
    if os.path.exists(path):
        return
    for place in (path, *path.parents):
        if os.path.islink(place) and not os.path.exists(place):
            raise ConfigFileError(str(place), "it is a link that leads nowhere")
        if os.path.lexists(place):
            if place != path and not os.path.isdir(place):
                raise ConfigFileError(str(place), "it is not a folder")
            return


def decode(path: Path, data: bytes) -> str:
    """The bytes as text, or a `ConfigFileError`."""
    if len(data) > LIMIT_BYTES:
        raise ConfigFileError(
            str(path),
            f"the file is larger than {LIMIT_BYTES // 1024**2} MB",
            hint="Is this the right file?",
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _place(data, error.start)
        raise ConfigFileError(
            str(path),
            "the file is UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "the file is not valid UTF-8",
            line=line,
            column=column,
            hint="Save it as UTF-8.",
        ) from None


def parse_object(path: Path, text: str, *, comments: bool = False) -> dict[str, Any]:
    """The JSON object in the text, or a `ConfigFileError`."""
    try:
        value = parse(text, comments=comments)
    except SyntaxProblem as problem:
        raise misread(str(path), problem) from None
    if not isinstance(value, dict):
        line, column = locate(text, ()) or (1, 1)
        raise ConfigFileError(
            str(path),
            "it is JSON, but not an object",
            line=line,
            column=column,
            hint="A configuration file is one object: { … }.",
        )
    return cast("dict[str, Any]", value)


def misread(
    source: str, problem: SyntaxProblem, hint: str | None = "Correct the file; it is left as it is."
) -> ConfigFileError:
    """A syntax problem as an error of its file."""
    return ConfigFileError(source, problem.reason, line=problem.line, column=problem.column, hint=hint)


def _read_regular(path: Path, descriptor: int) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise ConfigFileError(
            str(path), "it is not a regular file", hint="Only regular files are read, and links to them."
        )
    chunks: list[bytes] = []
    wanted = LIMIT_BYTES + 1
    # The size that the system reports may be wrong, as in /proc: only the end of the data is the end.
    while wanted and (chunk := os.read(descriptor, min(wanted, 1 << 20))):
        chunks.append(chunk)
        wanted -= len(chunk)
    return b"".join(chunks)


def _unreadable(path: Path, error: OSError | ValueError) -> ConfigFileError:
    reason = error.strerror if isinstance(error, OSError) else None
    return ConfigFileError(
        str(path),
        f"the file cannot be read: {reason or 'its name is not possible'}",
        hint="Check the file and the permissions of its folders.",
    )


def _place(data: bytes, offset: int) -> tuple[int, int]:
    before = data[:offset].decode("utf-8")  # the text before the first error is valid
    return before.count("\n") + 1, len(before) - before.rfind("\n")

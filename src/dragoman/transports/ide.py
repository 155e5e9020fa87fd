"""Finds IDEs on this machine that offer an MCP server, by the lockfiles they write.

Decides which IDE belongs to the current folder and returns how to connect to it; the WebSocket and SSE
transports make the connection. Only lockfiles of the current user are used. A token is sent to this machine
only, and is never shown.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.private_files import CLOSE_ON_EXEC, NO_LINK, NO_WAIT, is_open_to, is_own
from dragoman.processes import check_exists
from dragoman.transports.web import Network

TOKEN_HEADER: Final = "X-Claude-Code-Ide-Authorization"
PORT_VARIABLES: Final = ("DRAGOMAN_IDE_PORT", "CLAUDE_CODE_SSE_PORT")
"""An IDE sets one of these variables in its own terminal, so a program that runs there belongs to that
IDE."""

LOCK_BYTES: Final = 64 * 1024
LOCK_FILES: Final = 256

_TOKEN: Final = re.compile(r"[!-~]{1,4096}")


class Ide(Struct, frozen=True):
    """One IDE. Neither printed nor logged with its token."""

    name: str
    port: int
    transport: Literal["ws", "sse"]
    pid: int | None
    workspaces: tuple[str, ...]
    workspace: str | None
    """The workspace folder that contains the current folder, if any does."""
    token: str | None

    def __repr__(self) -> str:
        return f"Ide({self.name!r}, port={self.port}, workspace={self.workspace!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("port", self.port), ("workspace", self.workspace)]

    @property
    def type(self) -> Literal["ws-ide", "sse-ide"]:
        return "ws-ide" if self.transport == "ws" else "sse-ide"

    def network(self, token_header: str = TOKEN_HEADER) -> Network:
        """How it is reached: always on this machine, and never through a proxy."""
        url = f"ws://127.0.0.1:{self.port}" if self.transport == "ws" else f"http://127.0.0.1:{self.port}/sse"
        return Network(url, {token_header: self.token} if self.token else {})


class LeftOut(Struct, frozen=True):
    file: str
    reason: str


class IdeSearch(Struct, frozen=True):
    ides: tuple[Ide, ...] = ()
    """The order of IDEs, best first: the one of this terminal, then the longest workspace that contains the
    folder."""
    left_out: tuple[LeftOut, ...] = ()


def find_ides(folder: Path, cwd: Path, environ: Mapping[str, str] = os.environ) -> list[Ide]:
    """The IDEs that are running, best match for `cwd` first."""
    return list(search_ides(folder, cwd, environ).ides)


def search_ides(folder: Path, cwd: Path, environ: Mapping[str, str] = os.environ) -> IdeSearch:
    """Like `find_ides`, with the lockfiles that were left out and why."""
    if reason := _distrust_folder(folder):
        return IdeSearch(left_out=(LeftOut(str(folder), reason),))
    ides: list[Ide] = []
    left_out: list[LeftOut] = []
    for number, file in enumerate(_lock_files(folder)):
        try:
            if number >= LOCK_FILES:
                raise _Unusable(f"there are more than {LOCK_FILES} such files")
            ides.append(_read_ide(file, cwd))
        except _Unusable as problem:
            left_out.append(LeftOut(str(file), str(problem)))
    ides.sort(key=lambda ide: _rank(ide, environ))
    return IdeSearch(tuple(ides), tuple(left_out))


class _Unusable(Exception):
    """A lockfile is not trusted. The text says why and contains nothing of its content."""


class _Lock(Struct, rename="camel"):
    """The content of a lockfile, with the alternative names that are accepted."""

    workspace_folders: list[str] | None = None
    workspace: str | list[str] | None = None
    pid: int | None = None
    ide_name: str | None = None
    transport: Literal["ws", "sse"] = "sse"
    auth_token: str | None = None
    token: str | None = None
    port: int | None = None


def _rank(ide: Ide, environ: Mapping[str, str]) -> tuple[bool, int, int]:
    is_own_terminal = any(environ.get(name) == str(ide.port) for name in PORT_VARIABLES)
    depth = len(Path(ide.workspace).parts) if ide.workspace else 0
    return (not is_own_terminal, -depth, ide.port)


def _distrust_folder(folder: Path) -> str | None:
    """Why no file in the folder is trusted; None if they may be, or if there is no such folder."""
    try:
        status = os.stat(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return "it cannot be looked at"
    if not stat.S_ISDIR(status.st_mode):
        return "it is no folder"
    if not is_own(status):
        return "it belongs to another user"
    # Not the group: where each user has a group, folders are writable for it by default.
    return "every user may write into it" if is_open_to(stat.S_IWOTH, status) else None


def _lock_files(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if entry.name.endswith(".lock"))
    except OSError:
        return []


def _read_ide(file: Path, cwd: Path) -> Ide:
    try:
        lock = msgspec.json.decode(_read_own(file), type=_Lock)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _Unusable("its content is not that of a lockfile") from None
    _check_alive(lock.pid)
    also = [lock.workspace] if isinstance(lock.workspace, str) else lock.workspace
    workspaces = tuple(folder for folder in [*(lock.workspace_folders or ()), *(also or ())] if folder)
    return Ide(
        name=one_line(lock.ide_name or "IDE", 80),
        port=_port(file, lock),
        transport=lock.transport,
        pid=lock.pid,
        workspaces=workspaces,
        workspace=_holding(workspaces, cwd),
        token=_token(lock),
    )


def _read_own(file: Path) -> bytes:
    """The content of a small regular file that belongs to this user and is not accessible to others."""
    try:
        # Not blocking: it could be a pipe. Checked through the descriptor, so that it cannot be replaced
        # meanwhile.
        descriptor = os.open(file, os.O_RDONLY | NO_LINK | NO_WAIT | CLOSE_ON_EXEC)
    except OSError:
        raise _Unusable("it cannot be opened, or is a link") from None
    try:
        _check_own(os.fstat(descriptor))
        content = os.read(descriptor, LOCK_BYTES + 1)
    except OSError:
        raise _Unusable("it cannot be read") from None
    finally:
        os.close(descriptor)
    if len(content) > LOCK_BYTES:
        raise _Unusable(f"it is larger than {LOCK_BYTES} bytes")
    return content


def _check_own(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _Unusable("it is no regular file")
    if not is_own(status):
        raise _Unusable("it belongs to another user")
    if is_open_to(0o077, status):
        raise _Unusable("others may read or write it, and it holds a token (chmod 600)")


def _check_alive(pid: int | None) -> None:
    if pid is None:
        return
    try:
        if pid <= 0:  # would address a whole process group
            raise ProcessLookupError
        check_exists(pid)
    except PermissionError:
        # The pid is used again by another program, which must not get the token.
        raise _Unusable(f"process {pid} belongs to another user") from None
    except (ProcessLookupError, OverflowError):
        raise _Unusable("its process is gone") from None


def _port(file: Path, lock: _Lock) -> int:
    """The port, from the file's name or else from its content."""
    named = int(file.stem) if re.fullmatch(r"[0-9]{1,5}", file.stem) else None
    if named is not None and lock.port is not None and named != lock.port:
        raise _Unusable("its name and its content give two ports")
    port = named if named is not None else lock.port
    if port is None or not 0 < port < 65536:
        raise _Unusable("it gives no port")
    return port


def _token(lock: _Lock) -> str | None:
    token = lock.auth_token or lock.token
    if token is not None and not _TOKEN.fullmatch(token):
        raise _Unusable("its token cannot be sent in a header")
    return token


def _holding(workspaces: tuple[str, ...], cwd: Path) -> str | None:
    """The longest workspace that contains the folder."""
    here = _plain(cwd)
    places = [(folder, _plain(Path(folder))) for folder in workspaces]
    holding = [
        (len(place.parts), folder)
        for folder, place in places
        if here and place and here.is_relative_to(place)
    ]
    return max(holding)[1] if holding else None


def _plain(folder: Path) -> Path | None:
    """The resolved path of a folder in canonical spelling; None if it is not a folder."""
    if not folder.is_absolute():
        return None
    try:
        return Path(unicodedata.normalize("NFC", str(folder.resolve())))
    except (OSError, ValueError, RuntimeError):
        return None

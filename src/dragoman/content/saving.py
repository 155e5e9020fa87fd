"""Data that no model reads, saved where a person can find it.

I own: one private folder, its files and their names. A name is made here: nothing a server says becomes
part of it, and its ending follows from the first bytes, or from the claimed type only where a wrong claim
does no harm. Files are never run, opened or given to another program. I guarantee that nothing is written
outside the folder, that an existing file is never written to, and that the folder stays within its quota:
what is old makes room, and where that is not enough, the newcomer is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dragoman import paths
from dragoman.cleaning import one_line
from dragoman.clock import Clock, SystemClock

QUOTA_BYTES: Final = 512 * 1024 * 1024
FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
FILE_COUNT_LIMIT: Final = 2000
KEEP_SECONDS: Final = 7 * 24 * 3600.0
SPARED_SECONDS: Final = 3600.0
"""What is newer is not removed to make room: somebody has just been told where it is."""

_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{16}(\.[a-z0-9]{1,5})")

_HANDLE = re.compile(r"[0-9a-f]{16}")

_BEGINNINGS: Final = (
    (b"%PDF-", ".pdf"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"GIF87a", ".gif"),
    (b"GIF89a", ".gif"),
    (b"PK\x03\x04", ".zip"),
    (b"\x1f\x8b", ".gz"),
    (b"BZh", ".bz2"),
    (b"\xfd7zXZ\x00", ".xz"),
    (b"7z\xbc\xaf\x27\x1c", ".7z"),
    (b"(\xb5/\xfd", ".zst"),
    (b"OggS", ".ogg"),
    (b"fLaC", ".flac"),
    (b"ID3", ".mp3"),
    (b"\x1aE\xdf\xa3", ".webm"),
    (b"SQLite format 3\x00", ".db"),
)
_IN_RIFF: Final = {b"WEBP": ".webp", b"WAVE": ".wav", b"AVI ": ".avi"}
_BY_CLAIM: Final = {
    "text/plain": ".txt",
    "text/csv": ".csv",
    "text/markdown": ".md",
    "application/json": ".json",
    "application/octet-stream": ".bin",
    # What a browser would run when opened is named so that an editor opens it.
    "text/html": ".txt",
    "image/svg+xml": ".txt",
    "text/xml": ".txt",
    "application/xml": ".txt",
    "application/xhtml+xml": ".txt",
    "text/javascript": ".txt",
}


class NotSaved(Exception):
    """Why nothing was saved, in words."""


def ending(data: bytes, mime_type: str | None = None) -> str:
    """How the file's name ends. A claim counts only if no bytes could give it the lie."""
    for beginning, found in _BEGINNINGS:
        if data.startswith(beginning):
            return found
    if data[:4] == b"RIFF" and data[8:12] in _IN_RIFF:
        return _IN_RIFF[data[8:12]]
    if data[4:8] == b"ftyp":
        return ".mp4"
    claimed = (mime_type or "").partition(";")[0].strip().lower()
    return _BY_CLAIM.get(claimed, ".bin")


def handle_of(name: str) -> str:
    """What a saved file is called by: the part of its name that nobody can guess."""
    return name.partition(".")[0][-16:]


class Saver:
    """One folder for everything that is saved."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        clock: Clock | None = None,
        quota_bytes: int = QUOTA_BYTES,
        file_limit_bytes: int = FILE_LIMIT_BYTES,
        file_count_limit: int = FILE_COUNT_LIMIT,
        keep_seconds: float = KEEP_SECONDS,
    ) -> None:
        self._folder = folder
        self._clock = clock or SystemClock()
        self._quota_bytes = quota_bytes
        self._file_limit_bytes = min(file_limit_bytes, quota_bytes)
        self._file_count_limit = file_count_limit
        self._keep_seconds = keep_seconds
        self._turn = asyncio.Lock()
        self._making_room = threading.Lock()
        self._being_written = 0

    @property
    def file_limit_bytes(self) -> int:
        """The most that is saved of data; text may be as large as the quota."""
        return self._file_limit_bytes

    @property
    def folder(self) -> Path:
        # Asked for each time: the variables that move it may be set after this module is loaded.
        return self._folder or paths.state_dir() / "saved"

    async def save(self, data: bytes, mime_type: str | None = None) -> Path:
        """The new file, or `NotSaved`."""
        async with self._turn:
            return await asyncio.to_thread(self.save_now, data, mime_type)

    def save_now(self, data: bytes, mime_type: str | None = None) -> Path:
        if len(data) > self._file_limit_bytes:
            raise NotSaved(f"it is larger than the limit of {self._file_limit_bytes} bytes")
        return self.save_pieces_now((data,), len(data), ending(data, mime_type))[0]

    def save_pieces_now(self, pieces: Iterable[bytes], most_bytes: int, end: str) -> tuple[Path, int]:
        """The new file and its size, of pieces that come one by one; `most_bytes`: all of them at most."""
        if most_bytes > self._quota_bytes:
            raise NotSaved(f"it is larger than the limit of {self._quota_bytes} bytes")
        try:
            folder = self._open_folder()
        except OSError as error:
            raise NotSaved(f"the folder {self.folder} cannot be used: {error.strerror}") from None
        try:
            with self._making_room:  # several threads may save at once
                self._make_room(folder, most_bytes + self._being_written)
                self._being_written += most_bytes
            try:
                name, size = self._write(folder, pieces, most_bytes, end)
            finally:
                with self._making_room:
                    self._being_written -= most_bytes
        except OSError as error:
            raise NotSaved(f"it cannot be written to {self.folder}: {error.strerror}") from None
        finally:
            os.close(folder)
        return self.folder / name, size

    def open_saved(self, handle: str) -> tuple[int, str]:
        """A descriptor of the file with this handle, and its name; `NotSaved` if there is none."""
        if not _HANDLE.fullmatch(handle):
            raise NotSaved(f"{one_line(handle, 100)!r} is no handle")
        try:
            folder = self._open_folder()
        except OSError as error:
            raise NotSaved(f"the folder {self.folder} cannot be used: {error.strerror}") from None
        try:
            for name in os.listdir(folder):
                if _NAME.fullmatch(name) and handle_of(name) == handle:
                    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
                    return os.open(name, flags, dir_fd=folder), name
        except OSError as error:
            raise NotSaved(f"it cannot be read: {error.strerror}") from None
        finally:
            os.close(folder)
        raise NotSaved("there is no such result any more, or there never was one")

    def _open_folder(self) -> int:
        """The folder, certain to be ours alone: everything else is done relative to it."""
        paths.make_private(self.folder)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(folder)
            if found.st_uid != os.geteuid():
                raise NotSaved(f"the folder {self.folder} belongs to somebody else")
            if stat.S_IMODE(found.st_mode) & 0o077:
                os.fchmod(folder, 0o700)
        except BaseException:
            os.close(folder)
            raise
        return folder

    def _write(self, folder: int, pieces: Iterable[bytes], most_bytes: int, end: str) -> tuple[str, int]:
        began = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._clock.now()))
        name = f"{began}-{secrets.token_hex(8)}{end}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o600, dir_fd=folder)
        size = 0
        try:
            with os.fdopen(file, "wb") as stream:
                for piece in pieces:
                    size += len(piece)
                    if size > most_bytes:
                        raise NotSaved("it is larger than it was said to be")
                    stream.write(piece)
        except BaseException:
            os.unlink(name, dir_fd=folder)  # half a file is worse than none
            raise
        return name, size

    def _make_room(self, folder: int, needed: int) -> None:
        now = self._clock.now()
        files = sorted(self._ours(folder), key=lambda file: file[1])
        used, count = sum(size for _, _, size in files), len(files)
        for name, saved_at, size in files:
            crowded = used + needed > self._quota_bytes or count >= self._file_count_limit
            age = now - saved_at
            if age > self._keep_seconds or (crowded and age > SPARED_SECONDS):
                with contextlib.suppress(FileNotFoundError):  # another host makes room here, too
                    os.unlink(name, dir_fd=folder)
                used, count = used - size, count - 1
        if used + needed > self._quota_bytes or count >= self._file_count_limit:
            raise NotSaved(
                f"{self.folder} is full ({count} files, {used} bytes); remove what is no longer needed"
            )

    def _ours(self, folder: int) -> list[tuple[str, float, int]]:
        """Name, time and size of each file that was saved here; nothing else is ever touched."""
        found: list[tuple[str, float, int]] = []
        for name in os.listdir(folder):
            if _NAME.fullmatch(name):
                with contextlib.suppress(FileNotFoundError):  # another host has removed it meanwhile
                    about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    found.append((name, about.st_mtime, about.st_size))
        return found

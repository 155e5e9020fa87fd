"""Saves results and data that a model is not given whole, in one private folder where a person can find them.

File names are made here and contain nothing from a server. The extension follows from the first bytes, or
from the declared type where a wrong declaration does no harm. Files are never run or given to other programs.
Nothing is written outside the folder, an existing file is never written to, and each server's files stay in
its share (`quota.py`): old files are removed, and where that is not enough, the new file is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dragoman import paths
from dragoman.cleaning import one_line
from dragoman.clock import Clock, SystemClock
from dragoman.content.quota import Full, Room, SavedFile, to_remove
from dragoman.private_files import NO_WAIT, Folder, is_own

QUOTA_BYTES: Final = 512 * 1024 * 1024
"""The maximum size of all files of one server."""
FILE_COUNT_LIMIT: Final = 500
TOTAL_QUOTA_BYTES: Final = 2 * QUOTA_BYTES
TOTAL_FILE_COUNT_LIMIT: Final = 4000
FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
KEEP_SECONDS: Final = 7 * 24 * 3600.0

_NAME = re.compile(r"\d{8}-\d{6}-(?:([0-9a-f]{8})-)?[0-9a-f]{16}\.[a-z0-9]{1,5}")
_handed_out: set[str] = set()
"""Names of files whose handles were given out in this process."""

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
    # Content that a browser would run gets an extension that opens in an editor.
    "text/html": ".txt",
    "image/svg+xml": ".txt",
    "text/xml": ".txt",
    "application/xml": ".txt",
    "application/xhtml+xml": ".txt",
    "text/javascript": ".txt",
}


class NotSaved(Exception):
    """The file was not saved, or not found; the text says why."""


def ending(data: bytes, mime_type: str | None = None) -> str:
    """The extension of the file name. The declared type is used only for types that cannot be recognised by
    their bytes."""
    for beginning, found in _BEGINNINGS:
        if data.startswith(beginning):
            return found
    if data[:4] == b"RIFF" and data[8:12] in _IN_RIFF:
        return _IN_RIFF[data[8:12]]
    if data[4:8] == b"ftyp":
        return ".mp4"
    claimed = (mime_type or "").partition(";")[0].strip().lower()
    return _BY_CLAIM.get(claimed, ".bin")


def mark_of(owner: str) -> str:
    """The mark of a server in the names of its files."""
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def handle_of(name: str) -> str:
    """The handle of a saved file: the unguessable part of its name."""
    return name.partition(".")[0][-16:]


class Saver:
    """One folder for everything that is saved."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        clock: Clock | None = None,
        quota_bytes: int | None = None,
        file_limit_bytes: int = FILE_LIMIT_BYTES,
        file_count_limit: int | None = None,
        keep_seconds: float = KEEP_SECONDS,
    ) -> None:
        """`quota_bytes`, `file_count_limit`: the share of each server."""
        self._folder = folder
        self._clock = clock or SystemClock()
        self._quota_bytes = QUOTA_BYTES if quota_bytes is None else quota_bytes
        self._file_limit_bytes = min(file_limit_bytes, self._quota_bytes)
        self._file_count_limit = FILE_COUNT_LIMIT if file_count_limit is None else file_count_limit
        self._keep_seconds = keep_seconds
        self._turn = asyncio.Lock()
        self._making_room = threading.Lock()
        self._being_written: Counter[str] = Counter()
        """The number of bytes that are being written, by owner."""

    @property
    def file_limit_bytes(self) -> int:
        """The maximum size of saved data; text may be as large as the quota."""
        return self._file_limit_bytes

    @property
    def folder(self) -> Path:
        # Computed each time: the variables that move it may be set after this module is loaded.
        return self._folder or paths.state_dir() / "saved"

    async def save(
        self, data: bytes, mime_type: str | None = None, *, owner: str = "", is_copy: bool = False
    ) -> Path:
        """The new file, or `NotSaved`. `owner`: the server whose share contains it. `is_copy`: the model has
        the same data, so that this file is the first to be removed."""
        async with self._turn:
            path = await asyncio.to_thread(self.save_now, data, mime_type, owner=owner)
            if is_copy:
                _handed_out.discard(path.name)
            return path

    def save_now(self, data: bytes, mime_type: str | None = None, *, owner: str = "") -> Path:
        if len(data) > self._file_limit_bytes:
            raise NotSaved(f"it is larger than the limit of {self._file_limit_bytes} bytes")
        return self.save_pieces_now((data,), len(data), ending(data, mime_type), owner=owner)[0]

    def save_pieces_now(
        self, pieces: Iterable[bytes], most_bytes: int, end: str, *, owner: str = ""
    ) -> tuple[Path, int]:
        """Saves pieces one by one; returns the file and its size. `most_bytes`: the limit of all pieces
        together."""
        if most_bytes > self._quota_bytes:
            raise NotSaved(f"it is larger than the limit of {self._quota_bytes} bytes")
        folder = self._open_folder()
        try:
            with self._making_room:  # several threads may save at once
                self._make_room(folder, owner, most_bytes)
                self._being_written[owner] += most_bytes
            try:
                name, size = self._write(folder, pieces, most_bytes, f"{mark_of(owner)}-", end)
            finally:
                with self._making_room:
                    self._being_written[owner] -= most_bytes
        except OSError as error:
            raise NotSaved(f"it cannot be written to {self.folder}: {error.strerror}") from None
        finally:
            folder.close()
        return self.folder / name, size

    def open_saved(self, handle: str) -> tuple[int, str]:
        """A descriptor of the file with this handle, and its name; `NotSaved` if there is none."""
        if not _HANDLE.fullmatch(handle):
            raise NotSaved(f"{one_line(handle, 100)!r} is no handle")
        folder = self._open_folder()
        try:
            for name in folder.names():
                if _NAME.fullmatch(name) and handle_of(name) == handle:
                    return folder.open(name, os.O_RDONLY | NO_WAIT), name
        except OSError as error:
            raise NotSaved(f"it cannot be read: {error.strerror}") from None
        finally:
            folder.close()
        raise NotSaved("there is no saved result with this handle")

    def _open_folder(self) -> Folder:
        """The folder, owned by this user alone, or `NotSaved`. All files are opened relative to it."""
        try:
            paths.make_private(self.folder)
            folder = Folder(self.folder)
            try:
                if not is_own(folder.status()):
                    raise NotSaved(f"the folder {self.folder} belongs to another user")
                folder.close_to_others()
            except BaseException:
                folder.close()
                raise
        except OSError as error:
            raise NotSaved(f"the folder {self.folder} cannot be used: {error.strerror}") from None
        return folder

    def _write(
        self, folder: Folder, pieces: Iterable[bytes], most_bytes: int, mark: str, end: str
    ) -> tuple[str, int]:
        began = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._clock.now()))
        name = f"{began}-{mark}{secrets.token_hex(8)}{end}"
        file = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        size = 0
        try:
            with os.fdopen(file, "wb") as stream:
                for piece in pieces:
                    size += len(piece)
                    if size > most_bytes:
                        raise NotSaved("it is larger than its announced size")
                    stream.write(piece)
        except BaseException:
            folder.unlink(name)  # half a file is worse than none
            raise
        _handed_out.add(name)
        return name, size

    def _make_room(self, folder: Folder, owner: str, needed: int) -> None:
        writing = self._being_written
        share = Room(self._file_count_limit, self._quota_bytes, needed + writing[owner])
        total_bytes = max(TOTAL_QUOTA_BYTES, self._quota_bytes)
        total = Room(TOTAL_FILE_COUNT_LIMIT, total_bytes, needed + writing.total())
        try:
            removed = to_remove(
                self._ours(folder),
                mark_of(owner),
                now=self._clock.now(),
                share=share,
                total=total,
                keep_seconds=self._keep_seconds,
            )
        except Full as full:
            raise NotSaved(self._why_full(full, owner)) from None
        for name in removed:
            with contextlib.suppress(FileNotFoundError):  # another host removes files here, too
                folder.unlink(name)
            _handed_out.discard(name)

    def _why_full(self, full: Full, owner: str) -> str:
        what = str(self.folder)
        if full.is_share and owner:
            what = f"the share of {one_line(owner, 80)} in {what}"
        used = f"{full.files} files, {full.size_bytes} bytes"
        return f"{what} is full ({used}); remove what is no longer needed"

    def _ours(self, folder: Folder) -> list[SavedFile]:
        """Each file that was saved here; other files are never touched."""
        found: list[SavedFile] = []
        for name in folder.names():
            if ours := _NAME.fullmatch(name):
                with contextlib.suppress(FileNotFoundError):  # another host has removed it meanwhile
                    about = folder.status_of(name)
                    owner = ours.group(1) or mark_of("")
                    is_handed_out = name in _handed_out
                    found.append(SavedFile(name, about.st_mtime, about.st_size, owner, is_handed_out))
        return found

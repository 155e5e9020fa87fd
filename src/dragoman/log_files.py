"""Log files: private, limited in size, written by a thread, and shared by several processes.

`append` writes whole lines; a full file is renamed with a number, and the oldest is removed. `LogThread`
passes items from the event loop to one writing function, in batches. Reading skips lines that cannot be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO, Final, Generic, TypeVar

import msgspec

from dragoman import paths
from dragoman.private_files import CLOSE_ON_EXEC, NO_LINK, NO_WAIT, is_open_to, read_at, set_mode

T = TypeVar("T")

BATCH: Final = 1000
GATHER_SECONDS: Final = 0.005
TORN_SECONDS: Final = 0.05
"""How long another process may take to write one batch."""
LOCK_SECONDS: Final = 10.0
"""How long another process may take to rotate the files."""
READ_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""What is read of the end of a file: more than any log grows to before it is rotated."""
# A pipe in the file's place must not block the writer: without a reader, opening it fails.
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | CLOSE_ON_EXEC | NO_LINK | NO_WAIT


class LogThread(Generic[T]):
    """Writes items in a thread that starts with the first item. `put` does not wait, unless no thread can be
    started."""

    def __init__(self, name: str, write: Callable[[list[T]], None]) -> None:
        """`write` is called in the thread, with everything that waits, and raises nothing."""
        self._name = name
        self._write = write
        self._queue: SimpleQueue[T | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def put(self, item: T) -> None:
        # After `close`: work that outlives its host writes directly.
        if self._is_closed or not self._is_started():
            self._write([item])
        else:
            self._queue.put(item)

    def _is_started(self) -> bool:
        """Starts the thread if it is not running; returns false if that is not possible."""
        if self._thread is None:
            self._loop = _running_loop()
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    def close(self) -> None:
        """Returns when everything is written. Waits for the disk: call it in a thread."""
        self._is_closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def call_on_loop(self, function: Callable[[str], None], text: str) -> None:
        """Calls the function in the thread of the event loop, if the loop still runs."""
        if self._loop is None or self._loop is _running_loop():
            function(text)
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, text)

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._write(batch)

    def _next_batch(self) -> list[T] | None:
        """All waiting items; None when no more will come."""
        item = self._queue.get()
        if item is None:
            return None
        if not self._is_closed:
            time.sleep(GATHER_SECONDS)  # waking this thread for each item would cost more than writing
        batch = [item]
        while len(batch) < BATCH and not self._queue.empty():
            item = self._queue.get()
            if item is None:
                self._queue.put(None)
                break
            batch.append(item)
        return batch


class CutShort(OSError):
    """Only the beginning of the lines could be written: the disk is full."""

    def __init__(self, rest: bytes) -> None:
        """`rest`: the lines that were not written as a whole."""
        super().__init__(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.rest = rest


def append(path: Path, data: bytes, *, limit_bytes: int, kept: int) -> None:
    """Writes lines; `OSError` if that is not possible. `kept`: how many files there are at most."""
    paths.make_private(path.parent)
    descriptor = os.open(path, _FLAGS, 0o600)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        if is_open_to(0o077, found):
            set_mode(descriptor, 0o600)
        if _is_torn(descriptor):
            data = b"\n" + data  # a full disk or a crash has cut the last line short
        # One write per batch: lines of several processes do not mix.
        written = os.write(descriptor, data)
        if written < len(data):
            raise CutShort(data[data.rfind(b"\n", 0, written) + 1 :])
    finally:
        os.close(descriptor)
    if found.st_size + len(data) > limit_bytes:
        _make_room(path, limit_bytes, kept)


def files(path: Path, kept: int) -> Iterator[Path]:
    """The files of a log, oldest first."""
    yield from (file for file in (*reversed(_older(path, kept)), path) if file.is_file())


def opened(path: Path, kept: int, stack: contextlib.ExitStack) -> list[BinaryIO]:
    """The open files of a log, oldest first, each once, even if another process rotates them meanwhile."""
    found: dict[int, BinaryIO] = {}
    # Opens the newest first: a file that is renamed meanwhile is seen twice, and none is missed.
    for each in (path, *_older(path, kept)):
        with contextlib.suppress(FileNotFoundError):
            if each.is_file():
                file = stack.enter_context(each.open("rb"))
                found.setdefault(os.fstat(file.fileno()).st_ino, file)
    return list(reversed(found.values()))


def read(path: Path, kept: int) -> Iterator[dict[str, Any]]:
    """Every entry, oldest first."""
    with contextlib.ExitStack() as stack:
        for file in opened(path, kept, stack):
            # A file that is larger is no log of Dragoman, or damaged: it may be one line of gigabytes.
            if os.fstat(file.fileno()).st_size > READ_LIMIT_BYTES:
                file.seek(-READ_LIMIT_BYTES, os.SEEK_END)
            yield from entries_in(file)


def entries_in(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            entry = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


@lru_cache(maxsize=4)
def stamp(milliseconds: int) -> str:
    """A time since the epoch, in the format of the logs."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def _is_torn(descriptor: int) -> bool:
    """Whether the last line is incomplete, and no process is writing the rest of it."""
    size = os.fstat(descriptor).st_size
    if not size or read_at(descriptor, 1, size - 1) == b"\n":
        return False
    time.sleep(TORN_SECONDS)
    return os.fstat(descriptor).st_size == size and read_at(descriptor, 1, size - 1) != b"\n"


def _make_room(path: Path, limit_bytes: int, kept: int) -> None:
    """Renames the full file with a number and removes the oldest. A second process then has nothing to do."""
    from filelock import FileLock

    with FileLock(path.with_suffix(".lock"), timeout=LOCK_SECONDS, mode=0o600):
        # Where another process has just rotated the files, there may be no file at all.
        if not path.exists() or path.stat().st_size <= limit_bytes:
            return
        older = _older(path, kept)
        for newer, file in reversed(list(zip([path, *older], older))):
            if newer.exists():
                newer.replace(file)


def _older(path: Path, kept: int) -> list[Path]:
    return [path.with_suffix(f".{number}{path.suffix}") for number in range(1, kept)]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None

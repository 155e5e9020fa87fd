"""The audit log: each call, who decided about it and how it ended, as JSON lines.

A thread writes the lines in order, so that writing never delays a call. A line contains the names of a call's
arguments, but neither their values nor the result, so it contains no secret. Only the owner can read the
file. Lines are only appended, and a large file is replaced by a new one. A file that cannot be written is
reported once, and calls go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman import paths
from dragoman.cleaning import one_line
from dragoman.interaction import LOCAL_CALLER
from dragoman.private_files import CLOSE_ON_EXEC, NO_LINK, NO_WAIT, is_open_to, read_at, set_mode
from dragoman.wire.codec import DECODE_ERRORS

FILE: Final = "audit.jsonl"
FILE_LIMIT_BYTES: Final = 16 * 1024 * 1024
FILES_KEPT: Final = 8
ARGUMENT_LIMIT: Final = 50
TEXT_LIMIT: Final = 1000
"""Characters of one text: names and reasons may come from a model, a hook or a server."""
BATCH: Final = 1000
GATHER_SECONDS: Final = 0.005
TORN_SECONDS: Final = 0.05
"""How long another process may take to write one batch."""
LOCK_SECONDS: Final = 10.0
"""How long another process may take to make room."""
# A pipe in the file's place must not hold the writer up: without a reader, opening it fails.
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | CLOSE_ON_EXEC | NO_LINK | NO_WAIT


class Entry(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One call. Filled in on its way, and written when it ends."""

    time: str = ""
    session: str = ""
    pid: int = 0
    caller: str = LOCAL_CALLER.id
    """The party that made the call; left out for the local one."""
    server: str = ""
    tool: str
    arguments: tuple[str, ...] = ()
    """Their names. Values may be secret."""
    decision: str = "none"
    """`allow`, `deny`, or `none` if it came to no decision."""
    by: str = ""
    """Who decided: `rule`, `person`, `grant`, `hook`, `mode`, `classifier`, `host`; `caller` for a program's
    own request that nothing denies."""
    reason: str = ""
    rule: str = ""
    rule_source: str = ""
    outcome: str = ""
    """`ok`, `tool-error`, `cancelled`, or the code of an error."""
    duration_ms: float = 0.0


class AuditLog:
    """Where entries go. Opened with the first one."""

    def __init__(self, folder: Path, report: Callable[[str], None], session: str) -> None:
        self.path = folder / FILE
        self._report = report
        self._session = session
        self._pid = os.getpid()
        self._queue: SimpleQueue[Entry | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._is_told = False

    def write(self, entry: Entry, arguments: Mapping[str, Any], started: float) -> None:
        """Takes an entry over; `started` by `time.time`."""
        entry.time, entry.session, entry.pid = _stamp(int(started * 1000)), self._session, self._pid
        entry.arguments = tuple(map(_name, islice(arguments, ARGUMENT_LIMIT)))
        if self._is_closed:
            # A call that outlived its host: nothing waits for the thread any more.
            self._write_down([entry])
            return
        if self._thread is None:
            self._loop = _running_loop()
            self._thread = threading.Thread(target=self._work, name="dragoman audit", daemon=True)
            self._thread.start()
        self._queue.put(entry)

    def close(self) -> None:
        """Returns when everything is written. Waits for the disk: call it in a thread."""
        self._is_closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._write_down(batch)

    def _write_down(self, batch: list[Entry]) -> None:
        try:
            self._append(b"".join(map(_line, batch)))
            self._is_told = False
        except OSError as error:  # border: the disk
            if not self._is_told:
                self._tell(
                    f"the audit log {one_line(str(self.path))} cannot be written: {error.strerror or error}"
                )
            self._is_told = True

    def _tell(self, problem: str) -> None:
        """Listeners are woken on the loop's own thread, if there still is one."""
        if self._loop is None or self._loop is _running_loop():
            self._report(problem)
            return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._report, problem)

    def _next_batch(self) -> list[Entry] | None:
        """Everything that waits; None when nothing will come any more."""
        entry = self._queue.get()
        if entry is None:
            return None
        if not self._is_closed:
            time.sleep(GATHER_SECONDS)  # waking this thread for each call would cost more than writing
        batch = [entry]
        while len(batch) < BATCH and not self._queue.empty():
            entry = self._queue.get()
            if entry is None:
                self._queue.put(None)
                break
            batch.append(entry)
        return batch

    def _append(self, data: bytes) -> None:
        paths.make_private(self.path.parent)
        descriptor = os.open(self.path, _FLAGS, 0o600)
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
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)
        if found.st_size + len(data) > FILE_LIMIT_BYTES:
            _make_room(self.path)


def _is_torn(descriptor: int) -> bool:
    """Whether the last line is incomplete, and no process is writing the rest of it."""
    size = os.fstat(descriptor).st_size
    if not size or read_at(descriptor, 1, size - 1) == b"\n":
        return False
    time.sleep(TORN_SECONDS)
    return os.fstat(descriptor).st_size == size and read_at(descriptor, 1, size - 1) != b"\n"


def _name(name: object) -> str:
    if isinstance(name, str) and len(name) <= 100 and name.isascii() and name.isidentifier():
        return name
    return one_line(str(name), 100)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


_BACKSLASH: Final = 0x5C
_DELETE: Final = 0x7F
_encode: Final = msgspec.json.Encoder().encode


def _line(entry: Entry) -> bytes:
    try:
        line = _encode(entry)
        if len(line) <= TEXT_LIMIT and line.isascii() and _BACKSLASH not in line and _DELETE not in line:
            return line + b"\n"  # the common case, found quickly: short, and nothing in it to escape
    except UnicodeEncodeError:
        pass  # a lone surrogate
    # Escaped, since a lone surrogate cannot be written at all; and bounded.
    for name in _TEXTS:
        text: str = getattr(entry, name)
        if len(text) > TEXT_LIMIT or not (text.isascii() and text.isprintable()):
            setattr(entry, name, one_line(text, TEXT_LIMIT))
    return _encode(entry) + b"\n"


_TEXTS: Final = ("server", "tool", "by", "reason", "rule", "rule_source", "outcome")


@lru_cache(maxsize=4)
def _stamp(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def _make_room(path: Path) -> None:
    """The full file gets a number; the oldest goes. A second process finds nothing to do."""
    from filelock import FileLock

    with FileLock(path.with_suffix(".lock"), timeout=LOCK_SECONDS, mode=0o600):
        # Where another process has just made room, there may be no file at all.
        if not path.exists() or path.stat().st_size <= FILE_LIMIT_BYTES:
            return
        older = [path.with_suffix(f".{number}.jsonl") for number in range(1, FILES_KEPT)]
        for newer, file in reversed(list(zip([path, *older], older))):
            if newer.exists():
                newer.replace(file)


def files(folder: Path) -> Iterator[Path]:
    """The files of a log, oldest first."""
    path = folder / FILE
    older = (path.with_suffix(f".{number}.jsonl") for number in range(FILES_KEPT - 1, 0, -1))
    yield from (file for file in (*older, path) if file.is_file())


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Every entry, oldest first; lines that cannot be read are passed over."""
    for file in files(folder):
        with file.open("rb") as lines:
            for line in lines:
                try:
                    entry = msgspec.json.decode(line)
                except DECODE_ERRORS:
                    continue
                if isinstance(entry, dict):
                    yield entry

"""The log of each server: its log messages, what it writes to stderr, and changes of its connection.

Lines are redacted, cleaned and written by one thread for all servers of a host, so that writing never delays
the event loop. Lines of a server over `LINES_PER_SECOND` are dropped; their number is in the log. A log that
cannot be written is reported once, and affects nothing else.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from dragoman import log_files, paths
from dragoman.cleaning import cut, one_line
from dragoman.log_files import LogThread, stamp
from dragoman.protocol import LOG_LEVELS

FILE_LIMIT_BYTES: Final = 4 * 1024 * 1024
FILES_KEPT: Final = 3
LINES_PER_SECOND: Final = 500
"""How many lines of one server are written, on average over a second."""
LINES_WAITING: Final = 2000
"""Of one server; reached only while the disk is slow."""
TEXT_LIMIT: Final = 4096
LINE_LIMIT_BYTES: Final = 16 * TEXT_LIMIT
"""Of a line of stderr; more than `write` keeps of it, so that it is cut there and marked as such."""
_ENCODER: Final = msgspec.json.Encoder()

Source = Literal["message", "stderr", "connection", "host"]
"""`message`: `notifications/message`; `host`: what the host notices about the server's messages."""


class LogLine(Struct, frozen=True, omit_defaults=True):
    """One line of a server's log."""

    time: str
    level: str
    source: Source
    text: str
    logger: str = ""


class ServerLogs:
    """The logs of a host's servers."""

    def __init__(self, report: Callable[[str], None], folder: Path | None = None) -> None:
        """`report` gets a sentence when a log cannot be written."""
        self.folder = folder or paths.logs_dir()
        self._report = report
        self._thread = LogThread[tuple[ServerLog, LogLine]]("dragoman server logs", self._write)
        self._reported: set[Path] = set()
        self._logs: list[ServerLog] = []

    def of(self, server: str, redact: Callable[[str], str]) -> ServerLog:
        """`redact` removes the secrets of the server's entry; it is called in a thread."""
        log = ServerLog(path_of(server, self.folder), redact, self._put)
        self._logs = [each for each in self._logs if each.path != log.path or each.has_unreported] + [log]
        return log

    def close(self) -> None:
        """Returns when everything is written. Waits for the disk: call it in a thread."""
        self._thread.close()
        for log in self._logs:
            if log.has_unreported:
                with contextlib.suppress(OSError):  # border: the disk; it was reported before
                    log.write_lines([])

    def _put(self, log: ServerLog, line: LogLine) -> None:
        self._thread.put((log, line))

    def _write(self, batch: list[tuple[ServerLog, LogLine]]) -> None:
        by_log: dict[ServerLog, list[LogLine]] = {}
        for log, line in batch:
            by_log.setdefault(log, []).append(line)
        for log, lines in by_log.items():
            try:
                log.write_lines(lines)
                self._reported.discard(log.path)
            except OSError as error:  # border: the disk
                if log.path not in self._reported:
                    self._reported.add(log.path)
                    why = error.strerror or error
                    problem = f"the server log {one_line(str(log.path))} cannot be written: {why}"
                    self._thread.call_on_loop(self._report, problem)


class ServerLog:
    """The log of one server. Writing never waits and raises nothing."""

    def __init__(
        self, path: Path, redact: Callable[[str], str], put: Callable[[ServerLog, LogLine], None]
    ) -> None:
        self.path = path
        self._redact = redact
        self._put = put
        self._second: int = 0
        self._in_second: int = 0
        """Lines since `_second` began."""
        self._taken = self._dropped = 0
        """Changed on the event loop only."""
        self._written = self._reported_dropped = 0
        """Changed in the writing thread only."""
        self._unfinished = b""
        """The beginning of a line of stderr whose end is still to come."""

    @property
    def has_unreported(self) -> bool:
        """Whether lines were dropped that the log does not mention yet."""
        return self._dropped > self._reported_dropped

    def has_room(self) -> bool:
        """Whether a line would be written now; one that would not is counted as dropped."""
        if self._room() > 0:
            return True
        self._dropped += 1
        return False

    def write(self, source: Source, level: str, text: str, logger: str = "") -> None:
        # Changes of the connection are few, and what a person looks for after a flood.
        if source != "connection" and not self.has_room():
            return
        self._in_second += 1
        self._taken += 1
        # Cut before it waits; a longer text would be cut when it is written.
        now = stamp(int(time.time() * 1000))
        self._put(self, LogLine(now, level, source, cut(text, 2 * TEXT_LIMIT), cut(logger, TEXT_LIMIT)))

    def write_stderr(self, data: bytes) -> None:
        """What the server has written to stderr, in pieces as it came."""
        room = self._room()
        if room <= 0:
            self._dropped += data.count(b"\n")
            self._unfinished = b""
            return
        *lines, rest = (self._unfinished + data).split(b"\n", room)
        self._dropped += rest.count(b"\n")
        self._unfinished = rest.rpartition(b"\n")[2][:LINE_LIMIT_BYTES]
        for line in lines:
            if line := line[:LINE_LIMIT_BYTES].rstrip():
                self.write("stderr", "info", line.decode("utf-8", "replace"))

    def end_stderr(self) -> None:
        """The process has ended: what it wrote last may have no line end."""
        if line := self._unfinished.rstrip():
            self.write("stderr", "info", line.decode("utf-8", "replace"))
        self._unfinished = b""

    def _room(self) -> int:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        waiting = self._taken - self._written
        return min(LINES_PER_SECOND - self._in_second, LINES_WAITING - waiting)

    def write_lines(self, lines: list[LogLine]) -> None:
        """Called in the writing thread. Raises `OSError`; lines that cannot be written are dropped."""
        self._written += len(lines)
        dropped = self._dropped - self._reported_dropped
        if dropped:
            self._reported_dropped += dropped
            text = f"{dropped} lines before this one were dropped: there were too many"
            lines = [*lines, LogLine(stamp(int(time.time() * 1000)), "warning", "host", text)]
        data = b"".join(_ENCODER.encode(self._cleaned(line)) + b"\n" for line in lines)
        log_files.append(self.path, data, limit_bytes=FILE_LIMIT_BYTES, kept=FILES_KEPT)

    def _cleaned(self, line: LogLine) -> LogLine:
        text, logger = self._redact(line.text), self._redact(line.logger)
        return LogLine(line.time, line.level, line.source, one_line(text, TEXT_LIMIT), one_line(logger, 200))


def path_of(server: str, folder: Path | None = None) -> Path:
    return (folder or paths.logs_dir()) / "servers" / f"{paths.file_name(server)}.jsonl"


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Every line of a log, oldest first."""
    return log_files.read(path, FILES_KEPT)


def at_least(level: str, lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines of this level or a more severe one."""
    wanted = LOG_LEVELS[LOG_LEVELS.index(level) :]
    return (line for line in lines if line.get("level") in wanted)

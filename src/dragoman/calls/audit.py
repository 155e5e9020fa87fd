"""The audit log: each call, who decided about it and how it ended, as JSON lines.

A thread writes the lines in order, so that writing never delays a call. A line contains the names of a call's
arguments, but neither their values nor the result, so it contains no secret; values that the reason of a
decision repeats are masked. Only the owner can read the file. Lines are only appended, and a large file is
replaced by a new one. A file that cannot be written is reported once, and does not affect calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman import log_files
from dragoman.cleaning import cover, one_line
from dragoman.interaction import LOCAL_CALLER
from dragoman.log_files import LogThread, stamp

FILE: Final = "audit.jsonl"
FILE_LIMIT_BYTES: Final = 16 * 1024 * 1024
UNWRITTEN_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""How much is kept in memory while the disk is full."""
FILES_KEPT: Final = 8
ARGUMENT_LIMIT: Final = 50
VALUE_SHORTEST: Final = 6
"""The shortest value of an argument that is masked in a reason: a shorter one may be a part of any word."""
TEXT_LIMIT: Final = 1000
"""The most characters of one text in an entry: names and reasons may come from a model, a hook or a
server."""


class AuditEntry(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One call: completed step by step, and written when the call ends."""

    time: str = ""
    session: str = ""
    pid: int = 0
    caller: str = LOCAL_CALLER.id
    """The party that made the call; left out for the local one."""
    server: str = ""
    tool: str
    arguments: tuple[str, ...] = ()
    """The names of the arguments. Their values may be secret."""
    decision: str = "none"
    """`allow`, `deny`, or `none` if it came to no decision."""
    by: str = ""
    """Who decided: `rule`, `person`, `grant`, `hook`, `mode`, `classifier`, `host`; `caller` for a program's
    own request that nothing denies."""
    reason: str = ""
    rule: str = ""
    rule_source: str = ""
    outcome: str = ""
    """`ok`, `tool-error`, `cancelled`, `background` (it continues as a task at its server), or the code of an
    error."""
    duration_ms: float = 0.0


class AuditLog:
    """The log of one host. Its file is opened with the first entry."""

    def __init__(self, folder: Path, report: Callable[[str], None], session: str) -> None:
        self.path = folder / FILE
        self.report = report
        self.copy_to: Callable[[AuditEntry], None] | None = None
        """Called with each entry after it was queued, for instance to share it with other replicas."""
        self._session = session
        self._pid = os.getpid()
        self._thread = LogThread[AuditEntry]("dragoman audit", self._write_batch)
        self._is_reported = False
        self._unwritten = b""
        """The newest lines that could not be written; they are written with the next ones."""

    def write(self, entry: AuditEntry, arguments: Mapping[str, Any], started: float) -> None:
        """Queues an entry for writing; `started` by `time.time`."""
        entry.time, entry.session, entry.pid = stamp(int(started * 1000)), self._session, self._pid
        entry.arguments = tuple(map(_name, islice(arguments, ARGUMENT_LIMIT)))
        if self.copy_to is not None:
            self.copy_to(entry)
        self._thread.put(entry)

    def close(self) -> None:
        """Returns when everything is written. Waits for the disk: call it in a thread."""
        self._thread.close()
        if self._unwritten:
            self._write_batch([])

    def _write_batch(self, batch: list[AuditEntry]) -> None:
        data = self._unwritten + b"".join(map(line_of, batch))
        try:
            log_files.append(self.path, data, limit_bytes=FILE_LIMIT_BYTES, kept=FILES_KEPT)
            self._is_reported, self._unwritten = False, b""
        except OSError as error:  # border: the disk
            rest = error.rest if isinstance(error, log_files.CutShort) else data
            self._unwritten = _newest_lines(rest, UNWRITTEN_LIMIT_BYTES)
            if not self._is_reported:
                why = f"the audit log {one_line(str(self.path))} cannot be written: {error.strerror or error}"
                self._thread.call_on_loop(self.report, why)
            self._is_reported = True


def without_values(reason: str, arguments: Mapping[str, Any]) -> str:
    """The reason of a decision, with the values of the arguments masked that it repeats."""
    found: set[str] = set()
    rest: list[Any] = [arguments]
    while rest:
        value = rest.pop()
        if isinstance(value, Mapping):
            rest += cast("Mapping[str, Any]", value).values()
        elif isinstance(value, list):
            rest += cast("list[Any]", value)
        elif isinstance(value, str) and VALUE_SHORTEST <= len(value) <= len(reason) and value in reason:
            found.add(value)
    return cover(reason, found)


def _newest_lines(data: bytes, limit_bytes: int) -> bytes:
    return data if len(data) <= limit_bytes else data[data.find(b"\n", len(data) - limit_bytes) + 1 :]


def _name(name: object) -> str:
    if isinstance(name, str) and len(name) <= 100 and name.isascii() and name.isidentifier():
        return name
    return one_line(str(name), 100)


_BACKSLASH: Final = 0x5C
_DELETE: Final = 0x7F
_encode: Final = msgspec.json.Encoder().encode


def line_of(entry: AuditEntry) -> bytes:
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


_TEXTS: Final = ("caller", "server", "tool", "by", "reason", "rule", "rule_source", "outcome")


def files(folder: Path) -> Iterator[Path]:
    """The files of a log, oldest first."""
    return log_files.files(folder / FILE, FILES_KEPT)


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Every entry, oldest first; lines that cannot be read are passed over."""
    return log_files.read(folder / FILE, FILES_KEPT)

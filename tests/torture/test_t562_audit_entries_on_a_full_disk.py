"""T562: calls that are made while the disk is full are in the audit log as soon as there is room."""

import errno
import os
from pathlib import Path

import pytest

from dragoman import log_files
from dragoman.calls import audit
from dragoman.calls.audit import AuditEntry, AuditLog

pytestmark = pytest.mark.requirement("PRM-6")


class Disk:
    """Simulates writes: `room` bytes are written, then no space is left."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 1_000_000
        self._write = os.write
        monkeypatch.setattr(log_files.os, "write", self.write)

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(descriptor, data[: self.room])
        self.room -= written
        return written


def put(log: AuditLog, *tools: str) -> None:
    """Writes entries, each in a batch of its own."""
    for tool in tools:
        log._write_batch([AuditEntry(tool=tool)])


def tools(folder: Path) -> list[str]:
    return [entry["tool"] for entry in audit.read(folder)]


@pytest.mark.parametrize("lines", [0, 0.5, 1, 1.5])
def test_t562_every_entry_is_written_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: float
):
    disk, reports = Disk(monkeypatch), list[str]()
    log = AuditLog(tmp_path, reports.append, "session")
    put(log, "first")
    disk.room = int(lines * len(audit.line_of(AuditEntry(tool="a"))))
    put(log, "a", "b", "c", "d", "e", "f")
    disk.room = 1_000_000
    put(log, "last")
    assert tools(tmp_path) == ["first", "a", "b", "c", "d", "e", "f", "last"]
    assert len(reports) == 1


def test_t562_closing_writes_the_remaining_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    disk = Disk(monkeypatch)
    log = AuditLog(tmp_path, lambda _: None, "session")
    disk.room = 0
    put(log, "a", "b")
    disk.room = 1_000_000
    log.close()
    assert tools(tmp_path) == ["a", "b"]


def test_t562_the_number_of_entries_kept_in_memory_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(audit, "UNWRITTEN_LIMIT_BYTES", 2 * len(audit.line_of(AuditEntry(tool="a"))))
    disk = Disk(monkeypatch)
    log = AuditLog(tmp_path, lambda _: None, "session")
    disk.room = 0
    put(log, "a", "b", "c", "d")
    disk.room = 1_000_000
    put(log, "e")
    assert tools(tmp_path) == ["c", "d", "e"]

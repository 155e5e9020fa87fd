"""Who is running that this test started? Reads /proc; on systems without one the census finds nobody.

A process is ours if it descends from the test run, or if it carries the test's own HOME: servers get a
minimal environment, but HOME is part of it, and it stays when a process is adopted by init.
"""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Process(NamedTuple):
    pid: int
    start_ticks: int  # with the pid, names one process for good: pids are used again


class _Entry(NamedTuple):
    process: Process
    parent: int
    state: str


def _read(pid: int, name: str) -> bytes:
    # Not by `Path`: this is done for every process of the machine, twice in each test.
    descriptor = os.open(f"{PROC}/{pid}/{name}", os.O_RDONLY)
    try:
        data = os.read(descriptor, 1 << 16)
        while part := os.read(descriptor, 1 << 16):
            data += part
    finally:
        os.close(descriptor)
    return data


def _read_entry(pid: int) -> _Entry | None:
    try:
        fields = _read(pid, "stat").rpartition(b")")[2].split(None, 20)
    except OSError:
        return None
    return _Entry(Process(pid, int(fields[19])), parent=int(fields[1]), state=fields[0].decode())


def _has_home(pid: int, home: Path) -> bool:
    try:
        return f"HOME={home}".encode() in _read(pid, "environ").split(b"\0")
    except OSError:
        return False


def _entries() -> dict[int, _Entry]:
    if not PROC.is_dir():
        return {}
    pids = (int(name) for name in os.listdir(PROC) if name.isdigit())
    return {pid: entry for pid in pids if (entry := _read_entry(pid))}


def running_processes() -> set[Process]:
    """Every process of the machine, whoever started it."""
    return {entry.process for entry in _entries().values()}


def _started_since(before: set[Process], home: Path) -> set[Process]:
    """Descendants of this process, and everyone with this HOME. A zombie counts while we are its parent."""
    entries = _entries()
    ours = {os.getpid()}
    for pid in entries:
        lineage = []
        while pid in entries and pid not in ours:
            lineage.append(pid)
            pid = entries[pid].parent
        if pid in ours:
            ours.update(lineage)
    return {
        entry.process
        for pid, entry in entries.items()
        if entry.process not in before
        and (pid in ours or _has_home(pid, home))
        and (entry.state != "Z" or entry.parent == os.getpid())
    }


def leftovers(home: Path, before: set[Process], *, grace_seconds: float) -> list[str]:
    """Waits for the processes started since `before` to end; those that do not are described, and killed."""
    deadline = time.monotonic() + grace_seconds
    while left := _started_since(before, home):
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    described = [_describe(process) for process in left]
    for process in left:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return described


def _describe(process: Process) -> str:
    try:
        words = (
            (PROC / str(process.pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        words = ""
    return f"{process.pid} {words.strip() or '(a zombie nobody waited for)'}"

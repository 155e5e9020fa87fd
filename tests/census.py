"""Who is running that this test started? Reads /proc; on systems without one the census finds nobody.

A process is ours if it descends from the test run, or if it carries the test's own HOME: servers get a
minimal environment, but HOME is part of it, and it stays when a process is adopted by init.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    pid: int
    start_ticks: int  # with the pid, names one process for good: pids are used again


@dataclass(frozen=True)
class _Entry:
    process: Process
    parent: int
    state: str


def _read_entry(pid: int) -> _Entry | None:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return _Entry(Process(pid, int(fields[19])), parent=int(fields[1]), state=fields[0])


def _has_home(pid: int, home: Path) -> bool:
    try:
        return f"HOME={home}".encode() in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def running_processes(home: Path) -> set[Process]:
    """Descendants of this process, and everyone with this HOME. A zombie counts while we are its parent."""
    if not PROC.is_dir():
        return set()
    pids = (int(name) for name in os.listdir(PROC) if name.isdigit())
    entries = {pid: entry for pid in pids if (entry := _read_entry(pid))}
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
        if pid != os.getpid()
        and (pid in ours or _has_home(pid, home))
        and (entry.state != "Z" or entry.parent == os.getpid())
    }


def leftovers(home: Path, before: set[Process], *, grace_seconds: float) -> list[str]:
    """Waits for the processes started since `before` to end; those that do not are described, and killed."""
    deadline = time.monotonic() + grace_seconds
    while left := running_processes(home) - before:
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

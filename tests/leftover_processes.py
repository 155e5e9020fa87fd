"""Finds the processes that a test has started and not ended. Reads /proc; on other systems it finds none.

A process belongs to the test if it descends from the test run, or if it has the test's HOME: servers get a
minimal environment, but HOME is part of it, also after init has become the parent of a process.
"""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class _Entry(NamedTuple):
    parent: int
    state: str


def _read(pid: int, name: str) -> bytes:
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
        state, parent, _ = _read(pid, "stat").rpartition(b")")[2].split(None, 2)
    except OSError:
        return None
    return _Entry(int(parent), state.decode())


def _has_home(pid: int, home: Path) -> bool:
    try:
        return f"HOME={home}".encode() in _read(pid, "environ").split(b"\0")
    except OSError:
        return False


def running_processes() -> set[int]:
    """Every process of the machine.

    Only the numbers, as this is asked for twice in each test: one is given again only after all others, which
    are tens of thousands.
    """
    return {int(name) for name in os.listdir(PROC) if name.isdigit()} if PROC.is_dir() else set()


def _started_since(before: set[int], home: Path) -> set[int]:
    """Descendants of this process, and everyone with this HOME. A zombie counts while we are its parent."""
    return {
        pid
        for pid in running_processes() - before
        if (entry := _read_entry(pid))
        and (entry.state != "Z" or entry.parent == os.getpid())
        and (_descends_from_us(entry) or _has_home(pid, home))
    }


def _descends_from_us(entry: _Entry | None) -> bool:
    while entry is not None and entry.parent != os.getpid():
        entry = _read_entry(entry.parent)
    return entry is not None


def leftovers(home: Path, before: set[int], *, grace_seconds: float) -> list[str]:
    """Waits for the processes started since `before` to end; those that do not are described, and killed."""
    deadline = time.monotonic() + grace_seconds
    while left := _started_since(before, home):
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    described = [_describe(pid) for pid in left]
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return described


def _describe(pid: int) -> str:
    """The command line of a process. It is empty for a moment while the process replaces its program."""
    deadline = time.monotonic() + 1
    while (entry := _read_entry(pid)) and entry.state != "Z":
        try:
            words = _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            break
        if words or time.monotonic() > deadline:
            return f"{pid} {words}"
    return f"{pid} (a zombie that was not waited for)"

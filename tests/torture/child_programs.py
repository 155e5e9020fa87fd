"""Other programs of a test: how to start one that uses Dragoman, and which of its processes are running."""

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import dragoman


def program_environment() -> dict[str, str]:
    """Lets another Python program import the same Dragoman as this one, and the modules of the tests."""
    source, tests = Path(dragoman.__file__).parents[1], Path(__file__).parents[2]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(tests)])}


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that its parent has not collected does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_deaths(pids: Iterable[int], seconds: float) -> list[int]:
    """The processes that are still running at the timeout; they are killed afterwards."""
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return left


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def children_of(pid: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(stat[1]) == pid:
                found.append(int(entry))
    return found

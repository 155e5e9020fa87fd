"""Tasks that run at servers, in a private file, so that a later process can fetch their results.

The file holds no arguments and no secrets. It is shared by all hosts of the person, and limited in size; one
that cannot be read counts as empty, a task in it that cannot be read is left out, and a file that cannot be
written costs only the later fetching.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from dragoman import paths
from dragoman.atomic_write import write_cache
from dragoman.config.file_reading import read_bytes
from dragoman.errors import ConfigFileError
from dragoman.protocol import Era
from dragoman.wire.codec import DECODE_ERRORS

FILE: Final = "tasks.json"
KEPT_TASKS: Final = 500
KEPT_OF_SERVER: Final = 100
"""The most tasks of one server: a server with very many tasks does not drop those of others."""
LONGEST_SECONDS: Final = 366 * 24 * 3600.0
"""The longest time for which a task is stored, even if its server names a longer one."""
KEPT_SECONDS: Final = 7 * 24 * 3600.0
"""How long a task is stored that no process has fetched, if its server names no time."""
GRACE_SECONDS: Final = 24 * 3600.0
"""How long an expired task is still listed."""
LOCK_SECONDS: Final = 2.0


class RunningTask(Struct, frozen=True, kw_only=True):
    """A task at a server."""

    id: str
    """How people and programs name it; chosen by the host."""
    server: str
    fingerprint: str
    """The fingerprint of the server's entry and folder: a task is fetched only from the server that created
    it."""
    tool: str
    """The tool's qualified name."""
    wire_name: str
    """What its server calls the tool."""
    task_id: str
    """What its server calls the task; empty for a call that continues inside the host."""
    era: Era
    created: float
    """Seconds since the epoch."""
    ttl_seconds: float | None = None

    def is_expired(self, now: float) -> bool:
        return self.ttl_seconds is not None and now > self.created + self.ttl_seconds


def new_id() -> str:
    return f"task_{secrets.token_hex(5)}"


class TaskStore:
    """All methods wait for the disk: call them in a thread. None raises."""

    def __init__(self, now: Callable[[], float], folder: Path | None = None) -> None:
        self._now = now
        self._path = (folder or paths.state_dir()) / FILE

    def all(self) -> list[RunningTask]:
        """Oldest first."""
        try:
            data = read_bytes(self._path)
            found = msgspec.json.decode(data, type=list[msgspec.Raw]) if data else []
        except (ConfigFileError, *DECODE_ERRORS):
            return []
        known = (_read(each) for each in found)
        return [task for task in known if task is not None and not self._is_over(task)]

    def find(self, task: str) -> RunningTask | None:
        return next((each for each in self.all() if each.id == task), None)

    def add(self, task: RunningTask) -> None:
        self._change(lambda known: [*known, task])

    def remove(self, task: RunningTask) -> None:
        self._change(lambda known: [each for each in known if each.id != task.id])

    def _is_over(self, task: RunningTask) -> bool:
        kept = KEPT_SECONDS if task.ttl_seconds is None else task.ttl_seconds + GRACE_SECONDS
        kept = min(kept, LONGEST_SECONDS)
        return self._now() > task.created + kept

    def _change(self, change: Callable[[list[RunningTask]], list[RunningTask]]) -> None:
        from filelock import FileLock

        with contextlib.suppress(OSError):  # border: the disk, or another process that holds the lock
            paths.make_private(self._path.parent)
            with FileLock(self._path.with_suffix(".lock"), timeout=LOCK_SECONDS, mode=0o600):
                write_cache(self._path, msgspec.json.encode(_newest(change(self.all()))))


def _read(data: msgspec.Raw) -> RunningTask | None:
    try:
        return msgspec.json.decode(data, type=RunningTask)
    except DECODE_ERRORS:  # of another version
        return None


def _newest(tasks: list[RunningTask]) -> list[RunningTask]:
    """Those that are kept, oldest first."""
    of_server, kept = Counter[str](), list[RunningTask]()
    for task in reversed(tasks):
        of_server[task.server] += 1
        if of_server[task.server] <= KEPT_OF_SERVER:
            kept.append(task)
    return kept[:KEPT_TASKS][::-1]

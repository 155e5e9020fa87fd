"""The store of a gateway that runs alone: a file, so that legacy clients keep their sessions when the gateway
starts again. Calls are counted in memory: no other process counts them.

A file that cannot be used (full disk, no right to write, no database, locked) is reported, and sessions are
kept in memory from then on. Times are those of the start plus the time that has passed: a clock that is set
meanwhile neither ends sessions nor keeps them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, time
from typing import Any, Final

from dragoman import paths
from dragoman.cleaning import one_line
from dragoman.errors import StoreUnavailable
from dragoman.gateway.store.base import MINUTE_SECONDS

FILE: Final = "gateway-sessions.sqlite"
LOCKED_SECONDS: Final = 5.0
"""How long another process may hold the file."""
CALLERS_LIMIT: Final = 10_000
"""Callers that are counted before those without calls in the last minute are forgotten."""
_TABLE: Final = """
create table if not exists entries (key text primary key, value blob not null, expires real not null)
    without rowid
"""


class SqliteStore:
    def __init__(self, path: Path | None = None) -> None:
        """`path`: the file; without one, everything ends with the process."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        # One thread, and no lock: a request that is cancelled would release it while its statement runs.
        self._thread = ThreadPoolExecutor(1, "gateway-store")
        self._calls = RecentCalls(monotonic)
        self._began = time() - monotonic()
        self._problem: str | None = None
        self.report: Callable[[str], None] = lambda text: None
        """Called if the file cannot be used any more."""

    def _now(self) -> float:
        return self._began + monotonic()

    async def get(self, key: str, seconds: float) -> bytes | None:
        now = self._now()
        found = await self._execute(
            "update entries set expires = ? where key = ? and expires > ? returning value",
            (now + seconds, key, now),
        )
        return found[0][0] if found else None

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        await self._execute(
            "insert or replace into entries values (?, ?, ?)", (key, value, self._now() + seconds)
        )

    async def delete(self, key: str) -> None:
        await self._execute("delete from entries where key = ? or expires <= ?", (key, self._now()))

    async def count_call(self, caller: str, limit: int) -> float:
        return self._calls.wait_seconds(caller, limit)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close_now)

    def _close_now(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _execute(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._thread, self._execute_now, statement, values)
        problem, self._problem = self._problem, None
        if problem is not None:
            self.report(problem)
        return found

    def _execute_now(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        try:
            if self._connection is None:
                self._connection = _opened(self._path)
            with self._connection:
                return self._connection.execute(statement, values).fetchall()
        except (sqlite3.Error, OSError) as error:
            if self._path is None:
                raise StoreUnavailable("memory", str(error)) from None
            self._leave_file(error)
            return self._execute_now(statement, values)

    def _leave_file(self, error: sqlite3.Error | OSError) -> None:
        cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
        self._problem = (
            f"sessions are kept in memory, and end with the gateway: {one_line(str(self._path))} cannot be "
            f"used ({one_line(cause, 200)})"
        )
        with contextlib.suppress(sqlite3.Error):
            self._close_now()
        self._path = self._connection = None


def _opened(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        paths.make_private(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path or ":memory:", timeout=LOCKED_SECONDS)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    connection.execute(_TABLE)
    with connection:
        connection.execute("delete from entries where expires <= ?", (time(),))
    return connection


class RecentCalls:
    """The calls of each caller in the last minute."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._times: dict[str, deque[float]] = {}

    def wait_seconds(self, caller: str, limit: int) -> float:
        now = self._monotonic()
        if len(self._times) >= CALLERS_LIMIT:
            self._forget_idle(now)
        times = self._times.setdefault(caller, deque())
        while times and times[0] <= now - MINUTE_SECONDS:
            times.popleft()
        if len(times) >= limit:
            return times[0] + MINUTE_SECONDS - now if times else MINUTE_SECONDS
        times.append(now)
        return 0.0

    def _forget_idle(self, now: float) -> None:
        self._times = {
            caller: times
            for caller, times in self._times.items()
            if times and times[-1] > now - MINUTE_SECONDS
        }

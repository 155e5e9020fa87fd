"""Ends the processes of servers outside the event loop: one thread, with one scan per tick for all of them.
If no thread can be started, on the event loop: processes must not be left, and callers must not wait.

Each family of processes gets SIGINT, SIGTERM and SIGKILL after the waits of `SIGNAL_STEPS`. A family that may
have work to finish is waited for first, unless the wait is cancelled. Processes that are alive a second after
the last signal are given up and described.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from dragoman.processes import KILL, ProcessFacts, described, run_in_forked_children
from dragoman.transports.family import Family, Scanner, Snapshot

SIGNAL_STEPS: Final = ((0.08, signal.SIGINT), (0.1, signal.SIGTERM), (0.4, KILL))
"""The wait before each signal. The first wait is for servers that exit when their input ends."""
GIVE_UP_SECONDS: Final = 1.0
TICK_SECONDS: Final = 0.01
UNKNOWN: Final = "any that left its process group (no file descriptor is free to look for them)"
RESULTS_A_TURN: Final = 8
"""How many results are delivered in one iteration of the loop: each closes pipes and causes further work."""

T = TypeVar("T")


def due_signals(elapsed_seconds: float) -> int:
    """How many of the signals are due after this time."""
    due, total = 0, 0.0
    for seconds, _ in SIGNAL_STEPS:
        total += seconds
        due += elapsed_seconds >= total
    return due


LAST_SECONDS: Final = sum(seconds for seconds, _ in SIGNAL_STEPS) + GIVE_UP_SECONDS


class Job(Protocol):
    def advance(self, scan: Callable[[], Snapshot], now: float) -> bool:
        """Executes the next step, in the thread; returns true once there is a result.

        `scan`: returns all processes as they are now; a job that does not need them does not call it.
        """
        ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def deliver(self) -> None:
        """Delivers the result, on the event loop."""
        ...


class _AwaitedJob(Generic[T]):
    """A job whose result is awaited on a loop."""

    def __init__(self, empty: T) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.result = empty

    def deliver(self) -> None:
        if not self.future.done():
            self.future.set_result(self.result)


class Ending(_AwaitedJob[tuple[str, ...]]):
    """The job that ends one family; the result describes the processes that are still alive."""

    def __init__(self, family: Family, on_end: Callable[[bool], None], stop_seconds: float) -> None:
        super().__init__(())
        self._family = family
        self._on_end = on_end
        # The sequence of signals has a wait of its own before the first signal.
        self._began = time.monotonic() + max(0.0, stop_seconds - SIGNAL_STEPS[0][0])
        """When the sequence of signals begins."""
        self._leads = family.exit_code is None
        self._sent = 0

    def skip_stop_wait(self) -> None:
        """Starts the sequence of signals immediately, if it has not started."""
        self._began = min(self._began, time.monotonic())

    def advance(self, scan: Callable[[], Snapshot], now: float) -> bool:
        if now < self._began and self._leads:
            if self._family.exit_code is None:
                return False
            self.skip_stop_wait()  # processes left by a server that exited on its own have no work to finish
        members = self._members(scan)
        elapsed = now - self._began
        is_gone = members is not None and self._family.is_gone(members)
        if not is_gone and elapsed < LAST_SECONDS:
            due = due_signals(elapsed)
            # The last signal is repeated: a family may have grown meanwhile.
            if due > self._sent or due == len(SIGNAL_STEPS):
                self._sent = due
                self._family.signal(SIGNAL_STEPS[due - 1][1], members or ())
            return False
        self.result = (UNKNOWN,) if members is None else described(members)
        self._family.reap()
        self._on_end(members is not None)
        return True

    def _members(self, scan: Callable[[], Snapshot]) -> list[ProcessFacts] | None:
        """The living processes; None if they cannot be known, because no file descriptor is left."""
        try:
            return self._family.members(scan())
        except OSError:
            return None


class _Search(_AwaitedJob["int | None"]):
    """Looks for the oldest living member of a family."""

    def __init__(self, family: Family) -> None:
        super().__init__(None)
        self._family = family

    def advance(self, scan: Callable[[], Snapshot], now: float) -> bool:
        members = self._family.members(scan())
        self.result = members[0].pid if members else None
        return True


class Reaper:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: list[Job] = []
        self._thread: threading.Thread | None = None

    def end(self, family: Family, on_end: Callable[[bool], None], stop_seconds: float = 0.0) -> Ending:
        """Ends a family; the result describes what could not be ended. `on_end` is called in the thread with
        true if all its processes are known.

        `stop_seconds`: the time before the first signal, if that is longer than the first step.
        """
        ending = Ending(family, on_end, stop_seconds)
        self._add(ending)
        return ending

    def find_living(self, family: Family) -> asyncio.Future[int | None]:
        """The pid of the oldest member that is alive, if there is one."""
        search = _Search(family)
        self._add(search)
        return search.future

    def _add(self, job: Job) -> None:
        with self._lock:
            self._jobs.append(job)
        self._start(job)

    def _start(self, job: Job) -> None:
        with self._lock:
            if self._thread is not None or job not in self._jobs:
                return
            thread = threading.Thread(target=self._work, name="dragoman reaper", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError:  # the system has no thread for us now
                job.loop.call_soon(self._work_on_loop, job)

    def _work_on_loop(self, job: Job) -> None:
        if self._thread is None:  # another job may have got one
            self._advance_all([job], Scanner())
            job.loop.call_later(TICK_SECONDS, self._start, job)

    def _work(self) -> None:
        scanner = Scanner()
        while jobs := self._jobs_or_none():
            self._advance_all(jobs, scanner)
            time.sleep(TICK_SECONDS)

    def _advance_all(self, jobs: list[Job], scanner: Scanner) -> None:
        # Scanned after the jobs were taken, so that no scan is older than a job that uses it.
        scan, now = functools.cache(scanner.scan), time.monotonic()
        done = {id(job): job for job in jobs if _advance(job, scan, now)}
        with self._lock:
            self._jobs = [job for job in self._jobs if id(job) not in done]
        for loop in {job.loop for job in done.values()}:
            _deliver(loop, [job for job in done.values() if job.loop is loop])

    def _jobs_or_none(self) -> list[Job]:
        with self._lock:
            if not self._jobs:
                self._thread = None
            return list(self._jobs)

    def forget_after_fork(self) -> None:
        """In a forked child: threads and servers belong to the parent."""
        self.__init__()


def _advance(job: Job, scan: Callable[[], Snapshot], now: float) -> bool:
    try:
        return job.advance(scan, now)
    except Exception:  # border: a fault in one job must not block other jobs or its own caller
        return True


def _deliver(loop: asyncio.AbstractEventLoop, jobs: list[Job]) -> None:
    try:
        loop.call_soon_threadsafe(_deliver_some, loop, jobs)
    except RuntimeError:
        return  # the loop is closed, and no task waits


def _deliver_some(loop: asyncio.AbstractEventLoop, jobs: list[Job]) -> None:
    for job in jobs[:RESULTS_A_TURN]:
        job.deliver()
    if rest := jobs[RESULTS_A_TURN:]:
        loop.call_soon(_deliver_some, loop, rest)


reaper = Reaper()
run_in_forked_children(reaper.forget_after_fork)

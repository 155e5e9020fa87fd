"""The frame of torture tests: one host, a hostile server, and a bystander server that must not be affected.

During the test, the bystander is called continuously, and the latency of the event loop and the memory are
measured. At the end the host is closed, and checks follow: every reply of the bystander was correct and in
time, server input never blocked the loop, and no process, task or file descriptor is left.
"""

import asyncio
import gc
import os
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from dragoman import CallOutcome, Host
from dragoman.events import Event, ServerLogged
from dragoman.servers.status import ServerStatus
from tests.leftover_processes import leftovers, running_processes
from tests.servers import stdio_server

HOSTILE, BYSTANDER = "hostile", "bystander"
FAR_END = "web server"
"""Name of the tasks of `tests/servers/web`."""
MEGABYTE = 1024 * 1024

AT_ONCE_SECONDS = 2.0
"""Limit for an operation that should take well under a second; generous for a busy machine."""
BLOCKED_SECONDS = 0.25
"""How long server input may keep the loop computing without a pause …"""
BLOCKED_UNITS = 100
"""… or this many times as long as a fixed amount of work takes on this machine, whichever is more."""
STUCK_SECONDS = 2.5
"""No iteration of the loop and no call of the bystander takes longer, also on a busy machine."""
CLOSE_SECONDS = 6.0
BYSTANDER_CALLS = 20
BEAT_SECONDS = 0.01
E = TypeVar("E", bound=Event)


@asynccontextmanager
async def at_once(limit_seconds: float = AT_ONCE_SECONDS) -> AsyncIterator[None]:
    """The block ends, with or without an error, within a limit that is shorter than any timeout of the
    host."""
    started = time.monotonic()
    try:
        async with asyncio.timeout(limit_seconds + 10):
            yield
    finally:
        took = time.monotonic() - started
        assert took < limit_seconds, f"took {took:.2f} s, at most {limit_seconds} s were allowed"


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Waits until the condition is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"did not come true within {seconds} s"
        await asyncio.sleep(0.005)


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def open_descriptors() -> dict[str, str]:
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the descriptor of the listing itself
            continue
    return found


_WORK = msgspec.json.encode([{"key": number, "text": "abc" * 10} for number in range(10_000)])


def unit_of_work_seconds() -> float:
    """Processor time for a fixed amount of work: measures the current speed of the machine."""
    started = time.thread_time()
    msgspec.json.decode(_WORK)
    return time.thread_time() - started


class Pulse:
    """Wakes up on the event loop regularly; records the longest time between two wake-ups, and the
    maximum memory."""

    def __init__(self) -> None:
        self.longest_gap_seconds = 0.0
        self.longest_work_seconds = 0.0
        """Processor time this thread used within one gap; independent of other load on the machine."""
        self.first_bytes = self.most_bytes = resident_bytes()
        self._collecting_since = self._collecting_seconds = 0.0

    @cached_property
    def unit_seconds(self) -> float:
        """Measured only where a limit depends on it: it takes longer than many tests."""
        return statistics.median(unit_of_work_seconds() for _ in range(5))

    def worked_too_long(self) -> bool:
        worked = self.longest_work_seconds
        return worked > BLOCKED_SECONDS and worked > self.blocked_seconds

    @property
    def blocked_seconds(self) -> float:
        return max(BLOCKED_SECONDS, BLOCKED_UNITS * self.unit_seconds)

    @property
    def growth_bytes(self) -> int:
        return self.most_bytes - self.first_bytes

    async def beat(self) -> None:
        gc.callbacks.append(self._note_collection)
        try:
            while True:
                await self._beat_once()
        finally:
            gc.callbacks.remove(self._note_collection)

    async def _beat_once(self) -> None:
        self._collecting_seconds = 0.0
        wall, work = time.monotonic(), time.thread_time()
        await asyncio.sleep(BEAT_SECONDS)
        self.longest_gap_seconds = max(self.longest_gap_seconds, time.monotonic() - wall - BEAT_SECONDS)
        worked = time.thread_time() - work - self._collecting_seconds
        self.longest_work_seconds = max(self.longest_work_seconds, worked)
        self.most_bytes = max(self.most_bytes, resident_bytes())

    def _note_collection(self, phase: str, info: dict[str, int]) -> None:
        """Excludes garbage collection: it takes longer the more tests have run, independent of the server."""
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self._collecting_seconds += time.thread_time() - self._collecting_since


def _is_ours(task: asyncio.Task[Any]) -> bool:
    """Whether a task is running and does not belong to a test server: a web server in this process ends
    after the bystander_host."""
    return not task.done() and task.get_name() != FAR_END


class Bystander:
    """Calls an ordinary server continuously and records the results."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._number = 0
        self._over = False
        self.pid: int | None = None
        self.wrong: list[str] = []
        self.calm_seconds: list[float] = []
        self.latencies: list[float] = []

    async def settle(self) -> None:
        """Waits for its server, and measures its latency without load."""
        await until(lambda: self._host.servers[BYSTANDER].status == "connected", 20)
        self.pid = self._host.servers[BYSTANDER].pid
        for _ in range(BYSTANDER_CALLS):
            await self._call(self.calm_seconds)

    async def keep_calling(self) -> None:
        while not self._over:
            await self._call(self.latencies)
            await asyncio.sleep(0.005)

    async def call_often(self, count: int = 20) -> None:
        """Returns after this many further calls."""
        for _ in range(count):
            await self._call(self.latencies)

    def stop(self) -> None:
        self._over = True

    async def _call(self, latencies: list[float]) -> None:
        self._number += 1
        said = f"are you well? {self._number}"
        started = time.monotonic()
        try:
            outcome = await self._host.call(f"mcp__{BYSTANDER}__echo", {"message": said}, timeout_seconds=20)
        except Exception as error:  # border: the judgement comes at the end
            self.wrong.append(f"{type(error).__name__}: {error}")
            return
        latencies.append(time.monotonic() - started)
        if outcome.text != said or outcome.is_error:
            self.wrong.append(f"answered {outcome.text!r} to {said!r}")

    def complaints(self) -> list[str]:
        found = list(self.wrong)
        view = self._host.servers[BYSTANDER]
        if view.status != "connected" or view.pid != self.pid:
            found.append(f"the bystander is {view.status} ({view.reason}), pid {self.pid} became {view.pid}")
        if not self.latencies:
            found.append("the bystander was never called")
        else:
            slowest = max(self.latencies)
            bound = max(STUCK_SECONDS, 20 * statistics.median(self.calm_seconds))
            if slowest > bound:
                found.append(f"a call of the bystander took {slowest:.2f} s, when calm at most {bound:.2f} s")
        return found


class BystanderHost:
    """`async with BystanderHost(...)` contains the complete test; see the module."""

    def __init__(
        self,
        home: Path,
        servers: Mapping[str, Any],
        *,
        settings: Mapping[str, int] | None = None,
        wait: bool = True,
        **host_options: Any,
    ) -> None:
        self._home = home
        self._wait = wait
        host_options.setdefault("permission_mode", "bypassPermissions")
        # Most tests check how a failure is reported; tests of the reconnect set the attempts. There is no
        # waiting for hostile servers that do not end by themselves; T152 tests that wait.
        settings = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0, "DRAGOMAN_STOP_WAIT_MS": 0, **(settings or {})}
        self.host = Host(
            {BYSTANDER: stdio_server("well_behaved.py"), **servers}, settings=settings, **host_options
        )
        self.bystander = Bystander(self.host)
        self.pulse = Pulse()
        self.events: deque[Event] = deque(maxlen=20_000)
        self.close_seconds = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    # Used by tests.

    @property
    def view(self) -> ServerStatus:
        return self.host.servers[HOSTILE]

    async def call(self, tool: str, **arguments: Any) -> str:
        """Calls a tool of the hostile server; returns the text of its result."""
        return (await self.outcome(tool, **arguments)).text

    async def outcome(
        self,
        tool: str,
        *,
        seconds: float = 20,
        on_progress: Any = None,
        raw: bool = False,
        **arguments: Any,
    ) -> CallOutcome:
        return await self.host.call(
            f"mcp__{HOSTILE}__{tool}",
            arguments,
            timeout_seconds=seconds,
            on_progress=on_progress,
            raw=raw,
        )

    async def serves_still(self) -> None:
        """The session of the hostile server still works."""
        async with at_once():
            assert await self.call("echo", message="still there?") == "still there?"

    def happened(self, kind: type[E], server: str = HOSTILE) -> list[E]:
        return [e for e in self.events if isinstance(e, kind) and getattr(e, "server", None) == server]

    def log(self, server: str = HOSTILE) -> list[str]:
        return [event.text for event in self.happened(ServerLogged, server)]

    # Setup and checks of each test.

    async def __aenter__(self) -> Self:
        self._tasks_before = asyncio.all_tasks()
        self._processes_before = running_processes()
        self._descriptors_before = open_descriptors()
        listening = self.host.events()
        await self.host.__aenter__()
        self._start(self._listen(listening))
        self._start(self.pulse.beat())
        await self.bystander.settle()
        self._start(self.bystander.keep_calling())
        if self._wait:
            await self.host.ready(timeout=30)
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        await self.bystander.call_often()
        self.bystander.stop()
        complaints = self.bystander.complaints()
        started = time.monotonic()
        try:
            async with asyncio.timeout(3 * CLOSE_SECONDS):
                await self.host.close()
        except TimeoutError:
            complaints.append("the host could not be closed")
        self.close_seconds = time.monotonic() - started
        self._tasks[1].cancel()  # the pulse; the other tasks end by themselves
        complaints += self._pulse_complaints()
        complaints += await self._task_complaints()
        complaints += [
            f"still running: {process}"
            for process in leftovers(self._home, self._processes_before, grace_seconds=0.2)
        ]
        complaints += await self._descriptor_complaints()
        if error is None:
            assert not complaints, "\n".join(complaints)
        elif complaints:
            error.add_note("In the bystander_host:\n" + "\n".join(complaints))

    def _start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _listen(self, listening: AsyncIterator[Event]) -> None:
        async for event in listening:
            self.events.append(event)

    def _pulse_complaints(self) -> list[str]:
        found = []
        if self.close_seconds > CLOSE_SECONDS:
            found.append(f"closing took {self.close_seconds:.1f} s")
        if self.pulse.worked_too_long():
            found.append(f"the loop was kept busy for {self.pulse.longest_work_seconds:.2f} s on end")
        if self.pulse.longest_gap_seconds > STUCK_SECONDS:
            found.append(f"the loop stood still for {self.pulse.longest_gap_seconds:.2f} s")
        return found

    async def _task_complaints(self) -> list[str]:
        deadline = time.monotonic() + 1.0
        while left := {task for task in asyncio.all_tasks() - self._tasks_before if _is_ours(task)}:
            if time.monotonic() > deadline:
                return [f"a task is left: {task!r}" for task in left]
            await asyncio.sleep(0.005)
        return []

    async def _descriptor_complaints(self) -> list[str]:
        await asyncio.sleep(0)  # pipes are closed in the next iteration of the loop
        before = self._descriptors_before
        return [
            f"descriptor {number} is left open: {what}"
            for number, what in open_descriptors().items()
            if before.get(number) != what and not what.startswith("/")
        ]

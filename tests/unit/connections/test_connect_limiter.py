"""How many servers connect at the same time, on a loop whose time is ours to move."""

import asyncio
import contextlib
import heapq
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.connections.connect_limiter import SLOT_SECONDS, ConnectLimiter
from dragoman.settings import TABLE
from dragoman.transport_types import Place

T = TypeVar("T")


class _NoWait(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    def __init__(self, loop: "LeapingLoop") -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout:
            self._loop.leap()
        return ready


class LeapingLoop(asyncio.SelectorEventLoop):
    """Where nothing can happen now, time leaps to the next timer: no test waits."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_NoWait(self))

    def time(self) -> float:
        return self._now

    def leap(self) -> None:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        if timers:
            self._now = max(self._now, heapq.nsmallest(1, timers)[0].when())


def run(work: Coroutine[Any, Any, T]) -> T:
    loop = LeapingLoop()
    try:
        return loop.run_until_complete(asyncio.wait_for(work, 10_000))
    finally:
        loop.close()


class Watch:
    """Who holds a turn: from the moment it was given until it is over or patience has ended."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.spans: list[tuple[float, float]] = []

    def most_at_once(self) -> int:
        moments = [(begin, 1) for begin, _ in self.spans] + [(end, -1) for _, end in self.spans]
        most = now = 0
        for _, step in sorted(moments):  # at one moment, ends come before beginnings
            now += step
            most = max(most, now)
        return most


async def connect(
    turns: ConnectLimiter, kind: Place, seconds: float, watch: Watch, *, fails: bool = False
) -> None:
    loop = asyncio.get_running_loop()
    async with turns.slot(kind):
        begin = loop.time()
        watch.begun.append(begin)
        try:
            await asyncio.sleep(seconds)
            if fails:
                raise OSError("it does not start")
        finally:
            watch.spans.append((begin, min(loop.time(), begin + SLOT_SECONDS)))


DURATIONS = st.sampled_from([0.0, 0.1, 0.5, 0.999, 1.0, 1.001, 5.0])
CONNECTING = st.lists(st.tuples(DURATIONS, st.booleans(), st.none() | DURATIONS), max_size=12)


@pytest.mark.requirement("CFG-9")
@settings(max_examples=60)
@example(2, [(each, False, None) for each in (0.5, 0.999, 0.999, 0.999, 0.5, 1.001, 1.0)])
@given(st.integers(1, 4), CONNECTING)
def test_the_number_of_concurrent_attempts_is_limited_also_after_failures_and_cancellations(
    count: int, connecting: list[tuple[float, bool, float | None]]
):
    """Twice, one after the other: a turn given back twice would let too many in the second time."""
    turns: list[ConnectLimiter] = []

    async def wave() -> Watch:
        watch = Watch()
        tasks: list[asyncio.Task[None]] = []
        for seconds, fails, given_up in connecting:
            task = asyncio.create_task(connect(turns[0], "local", seconds, watch, fails=fails))
            tasks.append(task)
            if given_up is not None:
                asyncio.get_running_loop().call_later(given_up, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(2 * SLOT_SECONDS)
        return watch

    async def both() -> tuple[Watch, Watch]:
        turns.append(ConnectLimiter(count, 1))
        return await wave(), await wave()

    for watch in run(both()):
        assert watch.most_at_once() <= count


@settings(max_examples=60)
@given(st.integers(1, 4), CONNECTING)
def test_every_slot_is_released(count: int, connecting: list[tuple[float, bool, float | None]]):
    async def work() -> list[float]:
        turns = ConnectLimiter(count, 1)
        tasks = [
            asyncio.create_task(connect(turns, "local", seconds, Watch(), fails=fails))
            for seconds, fails, _ in connecting
        ]
        for task, (_, _, given_up) in zip(tasks, connecting, strict=True):
            if given_up is not None:
                asyncio.get_running_loop().call_later(given_up, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(2 * SLOT_SECONDS)
        begin, watch = asyncio.get_running_loop().time(), Watch()
        await asyncio.gather(*(connect(turns, "local", 0.5, watch) for _ in range(count)))
        return [moment - begin for moment in watch.begun]

    assert run(work()) == [0.0] * count


@pytest.mark.requirement("CFG-9")
def test_fast_connections_run_in_batches():
    async def work() -> list[float]:
        turns, watch = ConnectLimiter(3, 1), Watch()
        await asyncio.gather(*(connect(turns, "local", 0.5, watch) for _ in range(7)))
        return watch.begun

    assert run(work()) == [0.0] * 3 + [0.5] * 3 + [1.0]


def test_a_slow_connection_releases_its_slot_and_continues():
    async def work() -> tuple[list[float], float]:
        turns, watch = ConnectLimiter(1, 1), Watch()
        await asyncio.gather(*(connect(turns, "local", 60, watch) for _ in range(4)))
        return watch.begun, asyncio.get_running_loop().time()

    begun, end = run(work())
    assert begun == [number * SLOT_SECONDS for number in range(4)]
    assert end == 60 + 3 * SLOT_SECONDS


def test_local_and_remote_do_not_wait_for_each_other():
    async def work() -> list[list[float]]:
        turns, local, remote = ConnectLimiter(1, 2), Watch(), Watch()
        await asyncio.gather(
            *(connect(turns, "local", 0.5, local) for _ in range(2)),
            *(connect(turns, "remote", 0.5, remote) for _ in range(4)),
        )
        return [local.begun, remote.begun]

    assert run(work()) == [[0.0, 0.5], [0.0, 0.0, 0.5, 0.5]]


def test_an_in_process_server_needs_no_slot():
    async def work() -> list[float]:
        turns, watch = ConnectLimiter(1, 1), Watch()
        await asyncio.gather(*(connect(turns, "in-process", 5, watch) for _ in range(5)))
        return watch.begun

    assert run(work()) == [0.0] * 5


def test_an_error_is_raised_unchanged():
    async def work() -> None:
        await connect(ConnectLimiter(1, 1), "local", 0, Watch(), fails=True)

    with pytest.raises(OSError, match="does not start"):
        run(work())


def test_an_attempt_cancelled_while_it_waits_takes_no_slot():
    async def work() -> list[float]:
        turns, watch = ConnectLimiter(1, 1), Watch()
        first = asyncio.create_task(connect(turns, "local", 0.5, watch))
        waiting = asyncio.create_task(connect(turns, "local", 0.5, watch))
        last = asyncio.create_task(connect(turns, "local", 0.5, watch))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        await asyncio.gather(first, last)
        return watch.begun

    assert run(work()) == [0.0, 0.5]


@pytest.mark.requirement("LIF-2")
def test_servers_that_take_longer_than_a_slot_are_not_counted_and_the_setting_documents_it():
    async def connecting_after(seconds: float) -> int:
        turns, under_way = ConnectLimiter(local=3, remote=20), 0

        async def connect() -> None:
            nonlocal under_way
            async with turns.slot("local"):
                under_way += 1
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(connect()) for _ in range(9)]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return under_way

    assert [run(connecting_after(seconds)) for seconds in (0.5, 1.5, 2.5)] == [3, 6, 9]
    said = {row.name: row.help for row in TABLE}
    for name in ("MCP_SERVER_CONNECTION_BATCH_SIZE", "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"):
        assert f"longer than {SLOT_SECONDS:g} s is no longer counted" in said[name]

"""All connections of a host: started concurrently, awaited until each has settled, and closed together.

Also detects that the machine was suspended. `connect_limiter.py` limits how many begin at the same time; the
time for closing is bounded whatever a server does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from dragoman.clock import Clock
from dragoman.connections.connection import Connection
from dragoman.connections.health_check import CHECK_SECONDS
from dragoman.transports import orphans

TICK_SECONDS: Final = 5.0
CLOSES_PER_ITERATION: Final = 8
SLEPT_SECONDS: Final = 10.0
"""How much more wall time than monotonic time has to pass to conclude that the machine was suspended, or its
clock was set."""


class Supervisor:
    def __init__(self, connections: Callable[[], Mapping[str, Connection]], clock: Clock) -> None:
        self._connections = connections
        self._clock = clock
        self._watch: asyncio.Task[None] | None = None

    def start(self) -> None:
        orphans.sweep()
        self._watch = asyncio.create_task(self._watch_sleep(), name="dragoman sleep watch")
        for connection in self._connections().values():
            connection.start()

    async def _watch_sleep(self) -> None:
        """Pings every server after the machine was suspended: links may have been lost unnoticed."""
        slept = SleepWatch(self._clock)
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if slept.noticed():
                await self.check_all()

    async def check_all(self) -> None:
        """Checks which servers still answer; the others are reconnected."""
        await _all(connection.check(CHECK_SECONDS) for connection in list(self._connections().values()))

    async def settled(self, only: Collection[str] | None = None) -> None:
        """Returns when every server, or each of some, is settled."""
        wanted = [each for name, each in self._connections().items() if only is None or name in only]
        await _all(connection.settled() for connection in wanted)

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        # Cancelling the caller must not leave some of them open.
        closes = [connection.close() for connection in self._connections().values()]
        await asyncio.shield(asyncio.create_task(close_all(closes)))


async def close_all(closes: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Closes connections in parallel; only some begin in one turn of the loop, however many there are."""
    closing: list[asyncio.Task[None]] = []
    for number, close in enumerate(closes, 1):
        closing.append(asyncio.create_task(close))
        if number % CLOSES_PER_ITERATION == 0:
            await asyncio.sleep(0)
    if closing:
        await asyncio.wait(closing)


class SleepWatch:
    """Compares wall time with counted time, which stops while the machine sleeps."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead = clock.now() - clock.monotonic()

    def noticed(self) -> bool:
        """Whether there was a sleep since this was last asked."""
        before, self._ahead = self._ahead, self._clock.now() - self._clock.monotonic()
        return self._ahead - before > SLEPT_SECONDS


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    tasks = [asyncio.create_task(work) for work in works]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()

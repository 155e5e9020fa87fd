"""Shared parts of the tests of transports: a sink that records messages, and web servers on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from dragoman.transports.base import TransportFailure

WAIT_SECONDS = 10.0


class RecordingSink:
    """Remembers everything a transport delivers, and lets a test wait for it."""

    def __init__(self, *, knows_owner: bool = False) -> None:
        self.messages: list[bytes] = []
        self.streams: list[int] = []
        """The requests on whose streams messages came."""
        self.large: list[tuple[bytes, bytes]] = []
        self.failures: list[tuple[str | None, TransportFailure]] = []
        self.ends: list[str] = []
        self.answered: set[str] = set()
        """Requests that were cancelled."""
        self.unrequested_count = 0
        self.stderr_bytes = b""
        self._knows_owner = knows_owner
        self._changed = asyncio.Condition()

    def received(self, message: bytes) -> None:
        self.messages.append(bytes(message))
        self._tell()

    def received_on(self, request_id: int, message: bytes) -> None:
        self.streams.append(request_id)
        self.received(message)

    def oversized(self, head: bytes, tail: bytes) -> bool:
        self.large.append((head, tail))
        self._tell()
        return self._knows_owner

    def stderr(self, data: bytes) -> None:
        self.stderr_bytes += data

    def unrequested(self, count: int) -> None:
        self.unrequested_count += count
        self._tell()

    def awaits(self, request_id: str) -> bool:
        return request_id not in self.answered

    def failed(self, request_id: str | None, trouble: TransportFailure) -> None:
        self.failures.append((request_id, trouble))
        self._tell()

    def lost(self, cause: str) -> None:
        self.ends.append(cause)
        self._tell()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._changed:
            await self._changed.wait_for(condition)

    def _tell(self) -> None:
        self._telling = asyncio.ensure_future(self._notify())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@contextlib.asynccontextmanager
async def site(*routes: web.RouteDef, ssl_context: object = None) -> AsyncIterator[int]:
    """A server on a port of the kernel's choice."""
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        listener = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context)  # pyright: ignore
        await listener.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def other_tasks() -> list[str]:
    """The tasks of this loop besides the test's own."""
    here = asyncio.current_task()
    return sorted(task.get_name() for task in asyncio.all_tasks() if task is not here)


async def settled(check: Callable[[], object]) -> None:
    """Runs the loop until a condition is true that causes no event."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not check():
            await asyncio.sleep(0)

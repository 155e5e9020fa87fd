"""All connections of a host: started side by side, settled each in its own time, closed together.

I own: the set. No server waits for another, and closing is bounded however any of them behaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from dragoman.connections.connection import Connection
from dragoman.names import ServerName
from dragoman.transports import orphans


class Supervisor:
    def __init__(self, connections: Mapping[ServerName, Connection]) -> None:
        self._connections = connections

    def start(self) -> None:
        orphans.sweep()
        for connection in self._connections.values():
            connection.start()

    async def settled(self, timeout_seconds: float | None) -> None:
        """Returns when every server is settled, or when the time is up."""
        await _all((connection.settled() for connection in self._connections.values()), timeout_seconds)

    async def close(self) -> None:
        await _all((connection.close() for connection in self._connections.values()), None)


async def _all(works: Iterable[Coroutine[Any, Any, None]], timeout_seconds: float | None) -> None:
    tasks = [asyncio.create_task(work) for work in works]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks, timeout=timeout_seconds)
    finally:
        for task in tasks:
            task.cancel()

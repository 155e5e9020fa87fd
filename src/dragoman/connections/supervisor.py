"""All connections of a host: started side by side, settled each in its own time, closed together.

I own: the set. How many begin at a time is `turns.py`'s; closing is bounded however any of them behaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
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

    async def settled(self, only: Collection[str] | None = None) -> None:
        """Returns when every server, or each of some, is settled."""
        wanted = [each for name, each in self._connections.items() if only is None or name in only]
        await _all(connection.settled() for connection in wanted)

    async def close(self) -> None:
        await _all(connection.close() for connection in self._connections.values())


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    tasks = [asyncio.create_task(work) for work in works]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()

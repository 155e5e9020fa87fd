"""Waits until an unreachable server accepts TCP connections again.

Probes with a bare connection, often at first and then once a second; sends nothing. Only a port that was
closed and then opens ends the wait: some machines accept connections on every port, whether or not a server
runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

PROBE_INTERVAL_SECONDS: Final = 1.0
QUICK_INTERVAL_SECONDS: Final = 0.1
QUICK_SECONDS: Final = 2.0
"""At first probes are made more often: a server that ends may still accept connections, and one that is
started again quickly is away for a moment only."""

TcpProbe = Callable[[], Awaitable[bool]]


async def pause(seconds: float, probe: TcpProbe | None) -> None:
    """Waits for this time, or until a server that could not be connected to can be again."""
    was_gone = False
    if probe is None:
        await asyncio.sleep(seconds)
        return
    loop = asyncio.get_running_loop()
    began = loop.time()
    deadline = began + seconds
    while (left := deadline - loop.time()) > 0:
        is_early = loop.time() - began < QUICK_SECONDS
        interval = QUICK_INTERVAL_SECONDS if is_early else PROBE_INTERVAL_SECONDS
        if left > interval:
            is_there = await probe()
            if is_there and was_gone:
                return
            was_gone = was_gone or not is_there
        await asyncio.sleep(min(interval, left))

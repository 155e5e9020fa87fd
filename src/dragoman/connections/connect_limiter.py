"""Limits how many servers begin to connect at the same time, separately for local and remote servers.

A server has a slot for at most `SLOT_SECONDS`: one that takes longer continues to connect without a slot. So
the number of slow servers that connect at the same time is not limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from dragoman.transport_types import Place

SLOT_SECONDS: Final = 1.0


class ConnectLimiter:
    def __init__(self, local: int, remote: int) -> None:
        self._free = {"local": asyncio.Semaphore(local), "remote": asyncio.Semaphore(remote)}

    @asynccontextmanager
    async def slot(self, place: Place) -> AsyncGenerator[None]:
        """Waits for a free slot; a server in this process needs none."""
        free = self._free.get(place)
        if free is None:
            yield
            return
        await free.acquire()
        is_held = True

        def release() -> None:
            nonlocal is_held
            if is_held:
                is_held = False
                free.release()

        timer = asyncio.get_running_loop().call_later(SLOT_SECONDS, release)
        try:
            yield
        finally:
            timer.cancel()
            release()

"""Limits how many servers connect at the same time.

There is one limit for local servers, which are processes, and one for remote servers. A server counts for at
most `PATIENCE_SECONDS`: one that takes longer goes on connecting and no longer counts, and the next one
starts. So many fast servers do not all start at once, and a server that hangs delays others only for this
time. It is not a limit on slow servers: any number of them may be connecting at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Literal

Kind = Literal["local", "remote", "in-process"]

PATIENCE_SECONDS: Final = 1.0


class Turns:
    def __init__(self, local: int, remote: int) -> None:
        self._free = {"local": asyncio.Semaphore(local), "remote": asyncio.Semaphore(remote)}

    @asynccontextmanager
    async def taken(self, kind: Kind) -> AsyncGenerator[None]:
        """Waits for a turn; what lives in this process needs none."""
        free = self._free.get(kind)
        if free is None:
            yield
            return
        await free.acquire()
        timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, free.release)
        try:
            yield
        finally:
            if timer.when() > asyncio.get_running_loop().time():
                timer.cancel()
                free.release()

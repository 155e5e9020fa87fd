"""How many servers connect at the same time.

I own: a number of turns for local servers, which are processes, and one for remote servers. A turn is
kept at most `PATIENCE_SECONDS`: whoever takes longer goes on connecting, no longer counts, and the next one
begins. So many quick servers do not start all at once, and a server that hangs delays others by no more than
that. It is no cap on slow servers: of those, as many connect at the same time as began.
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

"""Waiting for a server that cannot be reached, no longer than it takes to come back.

I own: knocking, a bare connection once a second in which nothing is said. Only a door that was closed and
then opens ends the wait: some machines answer at every door, whoever lives behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

KNOCK_SECONDS: Final = 1.0

Knock = Callable[[], Awaitable[bool]]


async def pause(seconds: float, knock: Knock | None) -> None:
    """Waits so long, or until a server that was gone when knocked at is there again."""
    if knock is None:
        await asyncio.sleep(seconds)
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    was_gone = False
    while (left := deadline - loop.time()) > 0:
        if left > KNOCK_SECONDS:
            is_there = await knock()
            if is_there and was_gone:
                return
            was_gone = was_gone or not is_there
        await asyncio.sleep(min(KNOCK_SECONDS, left))

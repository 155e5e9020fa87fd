"""Waits until a condition is true, within a limit that only a faulty program reaches."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], object | Awaitable[object]], seconds: float = 15.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            answer = condition()
            if await answer if inspect.isawaitable(answer) else answer:
                return
            await asyncio.sleep(0.005)

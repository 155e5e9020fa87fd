"""The clients under measurement, one file each, all with the same face (`ToolClient`)."""

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from typing import Any


class ToolClient:
    """What a measurement uses. Each client adds to it:

    connect(commands)       start all these servers and connect to them at once; a URL alone is a remote one
    text(tool, arguments)   call a tool of the first server, return the text of its result
    list_tools()            how many tools the first server offers
    close()
    """

    def call(self, words: str) -> Awaitable[str]:
        return self.text("echo", {"text": words})

    async def big(self, size: int) -> int:
        return len(await self.text("big", {"size": size}))

    async def count(self) -> int:
        """How many calls the server has seen."""
        return int(await self.text("count", {}))


def entry_of(command: list[str]) -> dict[str, Any]:
    """The configuration of a server."""
    first, *args = command
    return {"url": first} if first.startswith("http:") else {"command": first, "args": args}


class Owner:
    """Holds a context manager open in a task of its own: anyio wants enter and exit in the same task."""

    async def open(self, manager: AbstractAsyncContextManager[Any]) -> Any:
        self._closing = asyncio.Event()
        opened = asyncio.get_running_loop().create_future()

        async def hold() -> None:
            async with manager as value:
                opened.set_result(value)
                await self._closing.wait()

        self._task = asyncio.create_task(hold())
        await asyncio.wait([opened, self._task], return_when=asyncio.FIRST_COMPLETED)
        return opened.result() if opened.done() else self._task.result()

    async def close(self) -> None:
        self._closing.set()
        await self._task

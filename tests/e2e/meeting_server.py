"""A stdio server with a read-only tool: `meet` waits until it is called twice at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.testing import InMemoryServer

barrier = asyncio.Barrier(2)


async def meet(arguments: dict[str, Any], context: object) -> str:
    async with asyncio.timeout(20):
        await barrier.wait()
    return f"{arguments['name']} has met the other"


if __name__ == "__main__":
    server = InMemoryServer("meeting")
    text = {"name": {"type": "string"}}
    server.add_tool("meet", meet, properties=text, annotations={"readOnlyHint": True})
    server.run_stdio()

"""A stdio server: `work` takes a moment, and `pid` returns the id of its process."""

import asyncio
import os

from dragoman.testing import InMemoryServer

server = InMemoryServer("works")


async def work(arguments, context):
    await asyncio.sleep(0.05)
    return "done"


server.add_tool("work", work)
server.add_tool("pid", lambda *_: str(os.getpid()))
server.add_tool("burn", lambda *_: "burnt", annotations={"destructiveHint": True})

if __name__ == "__main__":
    server.run_stdio()

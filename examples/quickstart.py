"""Ten lines: connect to a server, list its tools, call one."""

import asyncio
import sys

from dragoman import Host

SERVERS = {"demo": {"command": sys.executable, "args": ["-m", "dragoman.demo"]}}


async def main() -> None:
    async with Host(SERVERS, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        print([tool.name for tool in host.tools()])
        outcome = await host.call("mcp__demo__add", {"a": 40, "b": 2})
        print(outcome.text, outcome.structured)


asyncio.run(main())

"""One of several processes that share a sign-in: `python caller.py MODE ENTRY`.

`rounds`: makes one call for each line of its input, and answers with a line. `time`: makes calls until its
input ends; tokens that last three seconds are refreshed when 2.4 seconds remain.
"""

from __future__ import annotations

import asyncio
import json
import sys

from dragoman import Host
from dragoman.auth import oauth


async def call(host: Host) -> str:
    outcome = await host.call("mcp__s__echo", {"text": "hello"})
    return outcome.text


async def main(mode: str, entry: str) -> None:
    loop = asyncio.get_running_loop()
    async with Host({"s": json.loads(entry)}, permission_mode="bypassPermissions") as host:
        print((await host.ready(timeout=50))["s"].status, flush=True)
        if mode == "rounds":
            while await loop.run_in_executor(None, sys.stdin.readline):
                print(await call(host), flush=True)
            return
        ended = loop.run_in_executor(None, sys.stdin.readline)
        while not ended.done():
            said = await call(host)
            if said != "hello":
                print(said, flush=True)
            await asyncio.wait([ended], timeout=0.05)


if __name__ == "__main__":
    if sys.argv[1] == "time":
        oauth.REFRESH_SECONDS, oauth.LEEWAY_SECONDS = 2.4, 1.1  # type: ignore[misc]
    asyncio.run(main(*sys.argv[1:]))

"""One server of the soak, in a process of its own: `python -m bench.servers.flapping KIND PORT`.

KIND is http, sse or ws. It serves on that very port, so that it can be killed and come back as itself.
"""

import asyncio
import sys

from aiohttp import web

from tests.servers.web import HttpSse, Site, Streamable, WebSocketSite


def site_of(kind: str) -> Site:
    match kind:
        case "sse":
            return HttpSse(revisions=("2025-11-25",))
        case "ws":
            return WebSocketSite()
        case "legacy":
            return Streamable(revisions=("2025-11-25",))
        case _:
            return Streamable()


async def main(kind: str, port: int) -> None:
    site = site_of(kind)
    runner = web.ServerRunner(web.Server(site._handle, handler_cancellation=True, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    while True:
        await asyncio.sleep(5)
        site.asks.clear()  # it remembers what it was asked, and this is a long time


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))

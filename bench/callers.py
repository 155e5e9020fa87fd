"""`python -m bench.callers [--callers N]`: what callers of the gateway with accounts of their own cost.

The server and its authorization server run in a thread of this process, the gateway and its clients too:
memory is that of all, divided by the number of callers, before and after they have signed in. The median
duration of a call is shown for a shared tool, with and without such callers, and for a tool of a caller.
"""

import argparse
import asyncio
import gc
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

from dragoman.gateway.settings import CallerEntry
from dragoman.testing import InMemoryServer
from tests.callers_site import CallersSite, call, names, signed_in
from tests.gateway import Client, gateway_of

CALLS = 300


def memory_mb() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def median_ms(client: Client, tool: str) -> float:
    taken: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await call(client, tool)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


async def measure(count: int) -> None:
    files = InMemoryServer("files")
    files.add_tool("look", lambda arguments, context: "seen")
    callers = {f"c{number}": CallerEntry(token=f"token-of-caller-{number:05}") for number in range(count)}
    async with (
        gateway_of({"files": files}, callers=callers) as running,
        Client(running.url, "token-of-caller-00000") as client,
    ):
        print(f"a shared tool, without accounts of callers: {await median_ms(client, 'files__look'):.2f} ms")
    with CallersSite() as site:
        servers = {"files": files, "tracker": site.entry}
        async with gateway_of(servers, callers=callers, own=["tracker"]) as running:
            clients = [Client(running.url, entry.token) for entry in callers.values()]
            before = memory_mb()
            for client in clients:
                await names(client)
            print(f"memory of a caller that has not signed in: {(memory_mb() - before) / count:.2f} MB")
            for number, client in enumerate(clients):
                await signed_in(client, site, f"account-{number}")
            print(f"memory of a caller that has signed in: {(memory_mb() - before) / count:.2f} MB")
            shared = await median_ms(clients[0], "files__look")
            print(f"a shared tool, with accounts of callers: {shared:.2f} ms")
            print(f"a tool of the caller: {await median_ms(clients[0], 'tracker__whoami'):.2f} ms")
            for client in clients:
                await client.http.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--callers", type=int, default=100)
    count = parser.parse_args().callers
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(
            HOME=home,
            DRAGOMAN_CONFIG_DIR=f"{home}/.dragoman",
            DRAGOMAN_MANAGED_DIR=f"{home}/managed",
            DRAGOMAN_SECRET_STORE="file",
        )
        asyncio.run(measure(count))


if __name__ == "__main__":
    main()

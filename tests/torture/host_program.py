"""A program with five servers, each with a child process, that ends as its argument states.

Not a test: test_t15 starts it. It prints the pids of all servers and their children, once they are
connected. Argument: how it ends. `wait` (by a signal from outside), `raise`, `raise_in_task`,
`exit_in_callback`, `drop` (the host is never closed), `os_exit`; `fork` waits too, with a forked child
that keeps running.
"""

import asyncio
import os
import sys
import time

from dragoman import Host
from tests.servers import stdio_server


async def main(how: str) -> None:
    servers = {f"server_{n}": stdio_server("has_a_child.py", *HABITS[n]) for n in range(5)}
    host = Host(
        {**servers, "counter": stdio_server("counts_slowly.py")},
        permission_mode="bypassPermissions",
        settings={"DRAGOMAN_STOP_WAIT_MS": 200},
    )
    await host.__aenter__()
    await host.ready(timeout=30)
    pids = [view.pid for view in host.servers.values()]
    for name in servers:
        pids.append(int((await host.call(f"mcp__{name}__child")).text))
    if how == "fork" and os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    print(*pids, flush=True)
    if how in ("wait", "fork"):
        await asyncio.Event().wait()
    elif how == "raise":
        raise RuntimeError("uncaught")
    elif how == "raise_in_task":
        async with asyncio.TaskGroup() as group, host:
            group.create_task(fail())
            await asyncio.Event().wait()
    elif how == "exit_in_callback":
        await host.call("mcp__counter__count", {"to": 3}, on_progress=lambda _: sys.exit(7))
        await asyncio.Event().wait()
    elif how == "os_exit":
        os._exit(3)
    # "drop": the host is not closed.


async def fail() -> None:
    raise RuntimeError("uncaught in a task")


HABITS = [
    ["orphaning"],
    ["orphaning", "stubborn"],
    ["silent"],
    ["stubborn", "silent"],
    ["orphaning", "silent"],
]

if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

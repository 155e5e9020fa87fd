"""T824: a program forks while a host is open in another thread, and closes that host in the child process,
as cleanup code does. The host's event loop does not run there: the close fails at once, and the parent's
host continues."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, json, os, threading
from dragoman import Host
from dragoman.errors import WrongLoop
from dragoman.testing import InMemoryServer

opened, forked, hosts, box = threading.Event(), threading.Event(), [], InMemoryServer("box")

async def serve():
    async with Host({"box": box}, permission_mode="bypassPermissions") as host:
        await host.ready()
        hosts.append(host)
        # In a thread, so that asyncio has imported its thread pool before the fork: an import during a fork
        # runs one of its two fork handlers without the other, and Python reports an unlocked lock.
        await asyncio.to_thread(opened.set)
        await asyncio.to_thread(forked.wait)
        print(json.dumps(host.servers["box"].status), flush=True)

async def close():
    try:
        async with asyncio.timeout(10):
            await hosts[0].close()
    except (WrongLoop, TimeoutError) as error:
        print(json.dumps(type(error).__name__), flush=True)

thread = threading.Thread(target=lambda: asyncio.run(serve()))
thread.start()
opened.wait()
child = os.fork()
if not child:
    asyncio.run(close())
    os._exit(0)
os.waitpid(child, 0)
forked.set()
thread.join()
"""


@pytest.mark.requirement("LIF-3")
def test_t824_a_host_of_the_parent_cannot_be_closed_in_the_child_process():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=40)
    assert done.stderr == ""
    assert [json.loads(line) for line in done.stdout.splitlines()] == ["WrongLoop", "connected"]

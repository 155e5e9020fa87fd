"""T720: a program forks while one of its hosts resolves a name, as servers with several worker processes
do. A host in the child process can still resolve that name."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, json, os, socket, threading
from dragoman import Host, own_threads

resolved, answered = socket.getaddrinfo, threading.Event()

def never(*given, **named):
    answered.wait()
    return resolved(*given, **named)

async def connect():
    async with Host({"web": {"type": "http", "url": "http://localhost:1/mcp"}}) as host:
        status = (await host.ready(timeout=5))["web"]
        print(json.dumps([status.status, str(status.reason)]), flush=True)

async def begin():
    async with Host({"web": {"type": "http", "url": "http://localhost:1/mcp"}}) as host:
        while not own_threads._resolving:
            await asyncio.sleep(0.005)
        if IS_HELD:
            own_threads._lock.acquire()
        child = os.fork()
        if child:
            IS_HELD and own_threads._lock.release()
            os.waitpid(child, 0)
            answered.set()
            return
        socket.getaddrinfo = resolved
        thread = threading.Thread(target=lambda: asyncio.run(connect()), daemon=True)
        thread.start()
        thread.join(10)
        os._exit(0)

socket.getaddrinfo = never
asyncio.run(begin())
"""


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("is_held", [False, True])
def test_t720_a_host_in_the_child_process_resolves_the_name_again(is_held: bool):
    """With `is_held`, the parent holds the lock of the resolver at the fork."""
    program = PROGRAM.replace("IS_HELD", str(is_held))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=40)
    assert done.stderr == ""
    assert json.loads(done.stdout or "null") == ["failed", "web: connect failed: connection refused"]


@pytest.mark.requirement("LIF-10")
def test_t720_resources_of_the_parent_process_are_closed_once():
    """In the child process, a second close could close a file that was opened meanwhile."""
    program = """
import os
from dragoman.transports.orphans import watchdog

watchdog.new_marker()
if os.fork() == 0:
    os._exit(0)
os.wait()
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=40
    )
    assert (done.returncode, "Bad file descriptor" in done.stderr) == (0, False)

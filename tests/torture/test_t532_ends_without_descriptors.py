"""T532: a server is ended while no file descriptor is left, so /proc cannot be read: child processes that
left its group are ended anyway, at the latest with the program, and this is reported."""

import asyncio
import errno
import itertools
import os
import subprocess
import sys

import pytest

from dragoman import processes
from dragoman.transports import family
from dragoman.transports.reaper import UNKNOWN
from tests.servers import stdio_server
from tests.torture.child_programs import alive, program_environment, wait_for_deaths

pytestmark = pytest.mark.requirement("TRN-1")
PROGRAM = """
import asyncio, contextlib, os, resource
from dragoman import Host
from dragoman.events import ServerLogged
from tests.servers import stdio_server

async def main():
    server = stdio_server("has_a_child.py", "daemon", "silent")
    host = Host({"server": server}, permission_mode="bypassPermissions")
    listening = host.events()
    await host.__aenter__()
    await host.ready(timeout=30)
    print((await host.call("mcp__server__child")).text, flush=True)
    closing = asyncio.create_task(host.close())
    while not closing.done():
        with contextlib.suppress(OSError):  # a descriptor that becomes free is used up at once
            while True:
                os.open(os.devnull, os.O_RDONLY)
        await asyncio.sleep(0)
    os.closerange(50, 200)
    told = [event.text async for event in listening if isinstance(event, ServerLogged)]
    print(*told, sep="; ", flush=True)

resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
asyncio.run(main())
"""


async def test_t532_processes_that_could_not_be_listed_are_reported_and_end_with_the_program(bystander_host):
    async with bystander_host():
        command = [sys.executable, "-c", PROGRAM]
        program = await asyncio.to_thread(
            subprocess.run, command, stdout=subprocess.PIPE, text=True, env=program_environment(), timeout=60
        )
        child, told = program.stdout.splitlines()
        assert told == f"these of its processes could not be ended: {UNKNOWN}"
        assert await asyncio.to_thread(wait_for_deaths, [int(child)], 10) == []


async def test_t532_a_temporary_shortage_has_no_effect(bystander_host, monkeypatch: pytest.MonkeyPatch):
    failures = itertools.count()

    def all_processes():
        if next(failures) < 5:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        yield from processes.all_processes()

    async with bystander_host(stdio_server("has_a_child.py", "daemon", "silent")) as a:
        child = int(await a.call("child"))
        assert alive(child)
        monkeypatch.setattr(family, "all_processes", all_processes)
    assert not alive(child)
    assert next(failures) > 5

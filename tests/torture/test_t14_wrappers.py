"""T14: All processes that a server or its launcher started end together with the server."""

import asyncio
import os
import shlex
import sys

import pytest

from dragoman import Host
from dragoman.events import ServerLogged
from tests.servers import SERVER_PROGRAMS, stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.child_programs import alive, wait_for_deaths

BYPASS = {"permission_mode": "bypassPermissions"}


def shell(line: str) -> dict[str, object]:
    server = shlex.join([sys.executable, "-S", "-E", str(SERVER_PROGRAMS / "well_behaved.py")])
    return {"command": "sh", "args": ["-c", line.replace("SERVER", server)]}


CHILDREN = {
    "a child that holds the output": [],
    "a child that lets go of the output": ["silent"],
    "a child that ignores signals": ["stubborn"],
    "a child left behind by a server that ends": ["orphaning"],
    "a silent child left behind": ["orphaning", "silent"],
    "a stubborn child left behind": ["orphaning", "stubborn"],
    "a stubborn, silent child left behind": ["orphaning", "stubborn", "silent"],
}


@pytest.mark.requirement("TRN-1")
@pytest.mark.parametrize("habits", CHILDREN.values(), ids=CHILDREN.keys())
async def test_t14_a_servers_child_process_ends_with_the_server(bystander_host, habits):
    async with bystander_host(stdio_server("has_a_child.py", *habits)) as a:
        child = int(await a.call("child"))
        assert alive(child)
    assert not alive(child)
    assert a.close_seconds < 3


WRAPPERS = {
    "in the background of a shell": shell("exec 3<&0; SERVER <&3 & wait"),
    "a shell that stays": shell("SERVER; true"),
    "a shell that ignores signals": shell("trap '' INT TERM HUP; SERVER; sleep 3600"),
    "behind a pipe": shell("SERVER | cat"),
    "beside a sleeper": shell("sleep 3600 & SERVER"),
    "a launcher that waits": stdio_server("launcher.py", "waits"),
    "a launcher that ends at once": stdio_server("launcher.py"),
}


@pytest.mark.parametrize("entry", WRAPPERS.values(), ids=WRAPPERS.keys())
async def test_t14_a_server_behind_a_wrapper_works_and_leaves_no_process_behind(bystander_host, entry):
    async with bystander_host(entry) as a:
        assert a.view.status == "connected", a.view.reason
        for _ in range(5):
            await a.serves_still()
    assert a.close_seconds < 3


@pytest.mark.parametrize("habits", [[], ["silent", "orphaning"]], ids=["holds the output", "left behind"])
async def test_t14_a_child_that_moves_to_its_own_session_is_ended_or_reported(bystander_host, habits):
    async with bystander_host():
        async with Host({"server": stdio_server("has_a_child.py", "escapes", *habits)}, **BYPASS) as host:
            listening = host.events()
            await host.ready(timeout=10)
            child = int((await host.call("mcp__server__child")).text)
        told = [event async for event in listening]
        escaped = await asyncio.to_thread(wait_for_deaths, [child], 1.0)
        assert not escaped or any(isinstance(e, ServerLogged) and str(child) in e.text for e in told)


async def test_t14_twenty_connections_leak_no_file_descriptor(bystander_host):
    before = len(os.listdir("/proc/self/fd"))
    async with at_once(30):
        for _ in range(20):
            async with bystander_host(stdio_server("has_a_child.py", "orphaning")) as a:
                await a.call("child")
    assert len(os.listdir("/proc/self/fd")) == before

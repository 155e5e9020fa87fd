"""T106: Child processes that left the process group of their server are ended with it or reported; no
other process gets a signal."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dragoman import Host, processes, programs
from dragoman.events import ServerLogged
from dragoman.processes import signal_group, signal_process, start_of
from dragoman.transports import orphans, reaper
from dragoman.transports.family import Family
from tests.servers import stdio_server
from tests.torture.bystander_host import until
from tests.torture.child_programs import (
    alive,
    children_of,
    command_line,
    program_environment,
    wait_for_deaths,
)

BYPASS = {"permission_mode": "bypassPermissions"}
END_SECONDS = 5.0

ESCAPES = {
    "into a session of its own": ["escapes"],
    "into a session of its own, heeding no signal": ["escapes", "stubborn"],
    "forked twice": ["daemon", "silent"],
    "forked twice, holding the output": ["daemon"],
    "forked twice, heeding no signal": ["daemon", "silent", "stubborn"],
    "forked twice by a server that ends at once": ["daemon", "silent", "orphaning"],
}


async def still_running(*pids: int) -> list[int]:
    return await asyncio.to_thread(wait_for_deaths, pids, END_SECONDS)


@pytest.mark.requirement("TRN-1")
@pytest.mark.parametrize("habits", ESCAPES.values(), ids=ESCAPES.keys())
async def test_t106_a_child_that_left_the_process_group_is_ended_with_its_server(bystander_host, habits):
    async with bystander_host(stdio_server("has_a_child.py", *habits)) as a:
        child = int(await a.call("child"))
        assert alive(child)
        await until(lambda: os.getpgid(child) != a.view.pid)
    assert not alive(child)
    assert a.close_seconds < 3


async def test_t106_a_child_that_left_is_ended_when_its_server_exits(bystander_host):
    async with bystander_host(stdio_server("has_a_child.py", "daemon", "silent")) as a:
        child, server = int(await a.call("child")), a.view.pid
        os.kill(server, signal.SIGKILL)
        await until(lambda: a.view.status == "failed")
        assert await still_running(child) == []


PROGRAM = """
import asyncio
from dragoman import Host
from tests.servers import stdio_server

async def main():
    server = stdio_server("has_a_child.py", "daemon", "silent", "stubborn")
    host = Host({"server": server}, permission_mode="bypassPermissions")
    await host.__aenter__()
    await host.ready(timeout=30)
    print((await host.call("mcp__server__child")).text, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def program() -> Iterator[subprocess.Popen[str]]:
    """A program with a server that has an escaped child, whose pid it prints."""
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env=program_environment()
    )
    with running:
        yield running
        running.kill()


@pytest.mark.requirement("TRN-1")
async def test_t106_a_child_that_left_is_ended_when_the_host_is_killed(bystander_host, program):
    async with bystander_host():
        child = int(await asyncio.to_thread(program.stdout.readline))
        assert alive(child)
        program.kill()
        assert await still_running(child) == []


async def test_t106_if_the_watchdog_is_killed_too_the_next_host_ends_it(bystander_host, program):
    async with bystander_host():
        child = int(await asyncio.to_thread(program.stdout.readline))
        (watchdog,) = [pid for pid in children_of(program.pid) if "dragoman-watchdog" in command_line(pid)]
        os.kill(watchdog, signal.SIGKILL)
        program.kill()
        await asyncio.to_thread(program.wait, 10)
        assert alive(child)
        async with Host({"next": stdio_server("well_behaved.py")}, **BYPASS) as host:
            await host.ready(timeout=10)
            assert await still_running(child) == []
            assert host.servers["next"].status == "connected"


async def test_t106_a_process_that_cannot_be_ended_is_reported_with_its_command(bystander_host, monkeypatch):
    """Signals do not reach a process of another user; here all signals are suppressed."""
    monkeypatch.setattr(reaper, "LAST_SECONDS", 0.3)
    monkeypatch.setattr("dragoman.transports.family._signal_group_of", lambda *_: None)
    async with bystander_host():
        async with Host({"server": stdio_server("has_a_child.py", "daemon", "silent")}, **BYPASS) as host:
            listening = host.events()
            await host.ready(timeout=10)
            child = int((await host.call("mcp__server__child")).text)
        command = " ".join(command_line(child)).strip()
        told = [event.text async for event in listening if isinstance(event, ServerLogged)]
        assert wait_for_deaths([child], 0) == [child], "it was alive all the time"
        assert f"these of its processes could not be ended: {child} ({command})" in told


@pytest.mark.parametrize("habits", [[], ["daemon"]], ids=["same session", "session of its own"])
async def test_t106_a_server_that_continues_in_a_child_is_shown_with_the_pid_of_that_child(
    bystander_host, habits
):
    async with bystander_host(stdio_server("launcher.py", *habits)) as a:
        await until(lambda: a.view.pid is not None and a.view.pid not in children_of(os.getpid()))
        assert alive(a.view.pid)
        assert a.view.status == "connected"
        assert a.view.exit_code is None
        await a.serves_still()
        server = a.view.pid
    assert not alive(server)


async def test_t106_the_pid_of_an_ended_process_is_never_shown_as_connected(bystander_host):
    async with bystander_host(stdio_server("launcher.py")) as a:
        for _ in range(200):
            view = a.view
            if view.status == "connected" and view.pid is not None:
                assert alive(view.pid) or a.view.pid != view.pid
            await asyncio.sleep(0.002)


async def test_t106_the_pid_of_an_ended_launcher_is_reserved_until_its_server_is_closed(bystander_host):
    """Otherwise another program could get the pid, and the signals that are meant for the server."""
    before = set(children_of(os.getpid()))
    async with bystander_host(stdio_server("launcher.py", "daemon")) as a:
        launchers = set(children_of(os.getpid())) - before
        await until(lambda: any(not alive(pid) for pid in launchers))
        (launcher,) = [pid for pid in launchers if not alive(pid)]
        assert start_of(launcher) > 0, "known to the system, though it does not run any more"
        await a.serves_still()
    assert start_of(launcher) == 0


# Unrelated processes: a reused pid is detected by its different start time.


@pytest.fixture
def unrelated_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not belong to Dragoman, in its own session and process group."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_t106_a_reused_pid_is_not_signalled(unrelated_process):
    started = start_of(unrelated_process.pid)
    for send in (signal_process, signal_group):
        assert not send(unrelated_process.pid, started - 1, signal.SIGKILL)
        assert not send(unrelated_process.pid, 0, signal.SIGKILL)
    assert unrelated_process.poll() is None
    assert signal_process(unrelated_process.pid, started, signal.SIGTERM)
    assert unrelated_process.wait(5) == -signal.SIGTERM


@pytest.mark.requirement("TRN-1")
async def test_t106_closing_a_server_whose_pid_is_reused_sends_no_signal(
    bystander_host, unrelated_process, monkeypatch
):
    """As in a program that waits for all children: the leader is reaped before the server is closed."""
    async with bystander_host():
        gone = subprocess.Popen(["true"], start_new_session=True)
        family = Family(gone, "no marker")
        gone.wait()
        monkeypatch.setattr(family, "leader", unrelated_process.pid)
        assert await reaper.reaper.end(family, lambda _: None).future == ()
        assert unrelated_process.poll() is None


@pytest.mark.parametrize(("off", "survives"), [(0, False), (1, True)], ids=["the same", "used again"])
def test_t106_the_watchdog_ends_a_registered_group_only_if_it_is_still_the_same(
    unrelated_process, off, survives
):
    watchdog = orphans._start_watchdog(
        "0" * 16, {unrelated_process.pid: start_of(unrelated_process.pid) + off}
    )
    assert watchdog is not None
    assert watchdog.stdin is not None
    watchdog.stdin.close()
    assert watchdog.wait(10) == 0
    assert (unrelated_process.poll() is None) is survives


async def test_t106_a_hook_command_that_has_ended_gets_no_signal(tmp_path, monkeypatch):
    """Its process group is killed at the end in any case; by then its id may belong to another program."""
    sent: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: sent.append(group))
    monkeypatch.setattr(programs, "start_of", lambda pid: 1)
    another = processes.ProcessFacts(0, "S", 1, 0, 0, started=2)
    monkeypatch.setattr(processes, "read_process", lambda _: another)

    class Guard:
        def watch(self, pid: int) -> None: ...
        def release(self, pid: int) -> None: ...

    ended = await programs.run(
        "exec sleep 0.1", env={"PATH": "/usr/bin:/bin"}, cwd=str(tmp_path), limit_bytes=1000, watchdog=Guard()
    )
    assert ended.exit_code == 0
    assert sent == []

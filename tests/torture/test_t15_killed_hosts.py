"""T15: However the host process ends, its servers and their children end with it."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Host
from tests.servers import stdio_server
from tests.torture.child_programs import (
    alive,
    children_of,
    command_line,
    program_environment,
    wait_for_deaths,
)

END_SECONDS = 5.0


@asynccontextmanager
async def doomed(how: str, **popen) -> AsyncIterator[tuple[subprocess.Popen, list[int]]]:
    """The program, and the pids of its six servers and five children, all running."""
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.torture.host_program", how],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=program_environment(),
        **popen,
    )
    with program:
        assert program.stdout is not None
        line = await asyncio.to_thread(program.stdout.readline)
        pids = [int(word) for word in line.split()]
        assert len(pids) == 11
        yield program, pids
        if program.poll() is None:
            program.kill()


def watchdog_of(program: subprocess.Popen) -> int:
    return next(pid for pid in children_of(program.pid) if "dragoman-watchdog" in command_line(pid))


async def still_running(pids: list[int]) -> list[int]:
    return await asyncio.to_thread(wait_for_deaths, pids, END_SECONDS)


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGKILL]


@pytest.mark.requirement("TRN-1")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
async def test_t15_all_servers_end_when_the_host_is_killed_by_a_signal(bystander_host, number):
    async with bystander_host(), doomed("wait") as (program, pids):
        assert all(map(alive, pids))
        program.send_signal(number)
        assert await still_running(pids) == []
        assert await asyncio.to_thread(program.wait, 10) != 0


@pytest.mark.parametrize("how", ["raise", "raise_in_task", "exit_in_callback", "drop", "os_exit"])
async def test_t15_all_servers_end_when_the_host_exits(bystander_host, how):
    async with bystander_host(), doomed(how) as (program, pids):
        assert await still_running(pids) == []
        code = await asyncio.to_thread(program.wait, 10)
        expected = {"raise": 1, "raise_in_task": 1, "exit_in_callback": 7, "drop": 0, "os_exit": 3}
        assert code == expected[how]


async def test_t15_all_servers_end_when_the_terminal_is_closed(bystander_host):
    async with bystander_host():
        controller, terminal = pty.openpty()
        take_terminal = {"stdin": terminal, "start_new_session": True, "preexec_fn": _claim_terminal}
        async with doomed("wait", **take_terminal) as (program, pids):
            os.close(terminal)
            os.close(controller)
            assert await still_running(pids) == []
            assert await asyncio.to_thread(program.wait, 10) == -signal.SIGHUP


def _claim_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


async def test_t15_all_servers_end_when_the_process_group_of_the_host_is_killed(bystander_host):
    """As with `kill -9 -- -group`: the process groups of the servers must be ended too."""
    async with bystander_host(), doomed("wait", start_new_session=True) as (program, pids):
        os.killpg(program.pid, signal.SIGKILL)
        assert await still_running(pids) == []


async def test_t15_a_forked_child_of_the_host_that_keeps_running_does_not_keep_the_servers_alive(
    bystander_host,
):
    async with bystander_host(), doomed("fork", stdin=subprocess.DEVNULL) as (program, pids):
        fork = [pid for pid in children_of(program.pid) if "tests.torture.host_program" in command_line(pid)]
        program.kill()
        assert await still_running(pids) == []
        assert wait_for_deaths(fork, 0) == fork, "it was alive all the time"


@pytest.mark.requirement("TRN-1")
async def test_t15_if_the_watchdog_is_killed_too_the_next_host_ends_the_servers(bystander_host):
    async with bystander_host() as a:
        async with doomed("wait") as (program, pids):
            os.kill(watchdog_of(program), signal.SIGKILL)
            program.kill()
            await asyncio.to_thread(program.wait, 10)
            stubborn = [pid for pid in pids if alive(pid)]
            assert stubborn, "with both gone, servers that heed nothing are still there"
            async with Host(
                {"next": stdio_server("well_behaved.py")}, permission_mode="bypassPermissions"
            ) as host:
                await host.ready(timeout=10)
                assert await still_running(pids) == []
                assert host.servers["next"].status == "connected"
        assert a.host.servers["bystander"].status == "connected", "the sweep spares hosts that live"
        pid_files = Path(os.environ["DRAGOMAN_CONFIG_DIR"]) / "state" / "processes"
        assert len(list(pid_files.iterdir())) == 1, "only the living host's pid_file is left"


async def test_t15_a_watchdog_that_is_killed_alone_is_replaced(bystander_host):
    """The next server that starts or ends starts a new watchdog; no server is affected meanwhile."""
    async with bystander_host() as a:
        watchdog = next(pid for pid in children_of(os.getpid()) if "dragoman-watchdog" in command_line(pid))
        os.kill(watchdog, signal.SIGKILL)
        await asyncio.to_thread(wait_for_deaths, [watchdog], 5)
        async with Host(
            {"next": stdio_server("well_behaved.py")}, permission_mode="bypassPermissions"
        ) as host:
            await host.ready(timeout=10)
            watchdogs = [pid for pid in children_of(os.getpid()) if "dragoman-watchdog" in command_line(pid)]
            assert any(alive(pid) for pid in watchdogs)
        assert a.host.servers["bystander"].status == "connected"

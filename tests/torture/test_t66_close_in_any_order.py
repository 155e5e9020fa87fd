"""T66: Closing works in any order, from any task, twice, and during any operation."""

import asyncio
import gc
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.direct import open_session
from dragoman import DragomanError, Host
from dragoman.errors import ConnectionLost, HostClosed
from dragoman.hooks.declared import hook
from dragoman.testing import ScriptedUser
from dragoman.transports.orphans import ProcessWatchdog
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once, until
from tests.torture.child_programs import program_environment, wait_for_deaths

ORDERS = list(itertools.permutations(range(3)))
KINDS = [
    stdio_server("well_behaved.py"),
    stdio_server("ignores_signals.py"),
    stdio_server("has_a_child.py", "orphaning", "stubborn"),
]
CLOSE_SECONDS = 6.0


def host_of(entry) -> Host:
    return Host({"server": entry}, permission_mode="bypassPermissions")


async def opened(entry) -> Host:
    host = host_of(entry)
    await host.__aenter__()
    await host.ready(timeout=20)
    assert host.servers["server"].status == "connected"
    return host


@pytest.mark.requirement("LIF-10")
async def test_t66_three_hosts_are_closed_in_any_order_from_other_tasks(bystander_host):
    async def close_in(order, hosts):
        async with at_once(CLOSE_SECONDS):
            for index in order:
                await asyncio.create_task(hosts[index].close())

    async with bystander_host():
        hosts = [await asyncio.gather(*map(opened, KINDS)) for _ in ORDERS]
        # In parallel: most of the time is the grace period of servers that do not end by themselves.
        await asyncio.gather(*map(close_in, ORDERS, hosts))


async def test_t66_three_sessions_are_closed_in_any_order(bystander_host):
    async def close_in(order, sessions):
        async with at_once(CLOSE_SECONDS):
            for index in order:
                await sessions[index].close()

    async with bystander_host():
        sessions = [[await open_session(entry) for entry in KINDS] for _ in ORDERS]
        await asyncio.gather(*map(close_in, ORDERS, sessions))


async def test_t66_closing_twice_at_once_and_again_is_allowed(bystander_host):
    async with bystander_host(stdio_server("ignores_signals.py")) as a:
        async with at_once(CLOSE_SECONDS):
            hosts = await asyncio.gather(*map(opened, KINDS))
            await asyncio.gather(*(host.close() for host in hosts for _ in range(5)))
            await asyncio.gather(*(host.close() for host in hosts))
        await a.serves_still()


MOMENTS = {"at once": 0.0, "while starting": 0.002, "while greeting": 0.03, "about when ready": 0.06}


@pytest.mark.parametrize("seconds", MOMENTS.values(), ids=MOMENTS.keys())
@pytest.mark.parametrize("habit", ["well_behaved.py", "silent.py", "ignores_signals.py"])
async def test_t66_closing_during_a_connect_works(bystander_host, habit, seconds):
    async with bystander_host():
        host = host_of(stdio_server(habit))
        await host.__aenter__()
        waiting = asyncio.create_task(host.ready(timeout=20))
        await asyncio.sleep(seconds)
        async with at_once(CLOSE_SECONDS):
            await host.close()
            await waiting
        assert host.servers["server"].status in ("disabled", "failed")


async def test_t66_a_host_that_was_never_opened_can_be_closed(bystander_host):
    async with bystander_host():
        host = host_of(stdio_server("well_behaved.py"))
        async with at_once():
            await host.close()
        with pytest.raises(HostClosed):
            await host.__aenter__()


@pytest.mark.requirement("LIF-10")
async def test_t66_a_call_in_flight_ends_when_the_host_closes(bystander_host, era):
    async with bystander_host():
        host = await opened(stdio_server("holds_replies.py", protocol=era))
        call = asyncio.create_task(host.call("mcp__server__hold"))
        await host.call("mcp__server__echo", {"message": "x"})
        async with at_once():
            await host.close()
            with pytest.raises((ConnectionLost, HostClosed), match=r"server|host"):
                await call
        with pytest.raises(HostClosed):
            await host.call("mcp__server__echo")


@pytest.mark.parametrize("habit", ["well_behaved.py", "ignores_signals.py", "silent.py"])
async def test_t66_cancelling_the_task_that_connects_leaks_nothing(bystander_host, habit):
    async def use() -> None:
        async with host_of(stdio_server(habit)) as host:
            await host.ready(timeout=20)
            await asyncio.Event().wait()

    async with bystander_host():
        for seconds in (0.0, 0.01, 0.04, 0.1):
            task = asyncio.create_task(use())
            await asyncio.sleep(seconds)
            async with at_once(CLOSE_SECONDS):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task


@pytest.mark.parametrize("times", [1, 3])
async def test_t66_cancelling_the_task_that_closes_does_not_stop_the_closing(bystander_host, times):
    async with bystander_host():
        host = await opened(stdio_server("ignores_signals.py"))
        pid = host.servers["server"].pid
        closer = asyncio.create_task(host.close())
        for _ in range(times):
            await asyncio.sleep(0.01)
            closer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closer
        async with at_once(CLOSE_SECONDS):
            await host.close()
        assert wait_for_deaths([pid], 0) == []


@pytest.mark.usefixtures("light_heap")
async def test_t66_a_host_that_is_garbage_collected_does_not_affect_another(bystander_host):
    """It was not closed; its connections exist until the program ends, or until they are closed later."""
    async with bystander_host() as a:
        host = await opened(stdio_server("well_behaved.py"))
        pid = host.servers["server"].pid
        closing = host.close
        del host
        gc.collect()
        await a.bystander.call_often()
        async with at_once(CLOSE_SECONDS):
            await closing()
        assert wait_for_deaths([pid], 0) == []


async def test_t66_a_signal_handler_may_close_the_host(bystander_host):
    async with bystander_host():
        host = await opened(stdio_server("ignores_signals.py"))
        closing: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, lambda: closing.append(asyncio.create_task(host.close())))
        try:
            async with at_once(CLOSE_SECONDS):
                os.kill(os.getpid(), signal.SIGUSR1)
                os.kill(os.getpid(), signal.SIGUSR1)
                await until(lambda: closing)
                await asyncio.gather(*closing)
        finally:
            loop.remove_signal_handler(signal.SIGUSR1)


async def test_t66_hosts_in_several_threads_open_and_close_without_affecting_each_other(bystander_host):
    async def rounds() -> None:
        for number in range(8):
            async with host_of(stdio_server("well_behaved.py")) as host:
                await host.ready(timeout=20)
                for _ in range(3):
                    outcome = await host.call("mcp__server__echo", {"message": str(number)})
                    assert outcome.text == str(number)

    async with bystander_host(), at_once(30):
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, rounds()) for _ in range(4)))


@pytest.mark.usefixtures("light_heap")
async def test_t66_threads_that_start_and_end_servers_share_the_watchdog(
    bystander_host, monkeypatch, tmp_path
):
    """One thread's last server ends while another thread's first one starts: that one is still registered."""
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    guard = ProcessWatchdog()
    faults: list[str] = []

    def start_and_end(process: subprocess.Popen[bytes]) -> None:
        for _ in range(300):
            try:
                guard.watch(process.pid)
                if not any(f"+ {process.pid} " in text for text in pid_registries(tmp_path)):
                    faults.append("a running server is not in the ledger")
                if process.poll() is not None:
                    faults.append(f"a running server was ended by signal {-process.returncode}")
                    return
                guard.release(process.pid)
            except Exception as error:  # border: collected, so that all threads come to an end
                faults.append(f"{type(error).__name__}: {error}")

    async with bystander_host():
        servers = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2)]
        try:
            await asyncio.gather(*(asyncio.to_thread(start_and_end, server) for server in servers))
        finally:
            for server in servers:
                guard.release(server.pid)
                server.kill()
                server.wait()
        gc.collect()  # an unreferenced watchdog is detected here, not in the next test
        assert set(faults) == set()


def pid_registries(folder: Path) -> list[str]:
    texts = []
    for path in folder.glob("state/processes/*"):
        try:
            texts.append(path.read_text())
        except FileNotFoundError:  # garbage collected meanwhile, as it should be
            continue
    return texts


DROPPED = """
import asyncio, gc
from dragoman import Host
from tests.servers import stdio_server

async def open_and_drop():
    names = ("well_behaved", "ignores_signals", "silent")
    host = Host({name: stdio_server(f"{name}.py") for name in names})
    await host.__aenter__()
    await host.ready(timeout=%s)
    print(*(view.pid for view in host.servers.values()), flush=True)

async def main():
    await open_and_drop()
    gc.collect()

asyncio.run(main())
gc.collect()
"""


@pytest.mark.parametrize("seconds", [0.0, 0.3], ids=["while connecting", "when connected"])
async def test_t66_a_program_ends_though_its_host_was_not_closed(bystander_host, seconds):
    async with bystander_host():
        run = [sys.executable, "-W", "error", "-c", DROPPED % seconds]
        async with at_once(CLOSE_SECONDS + 4):
            done = await asyncio.to_thread(
                subprocess.run, run, env=program_environment(), capture_output=True, text=True, timeout=30
            )
        assert (done.returncode, done.stderr) == (0, "")
        pids = [int(word) for word in done.stdout.split() if word != "None"]
        assert await asyncio.to_thread(wait_for_deaths, pids, 5) == []


# --- during a decision ---


@pytest.mark.parametrize(
    "way",
    [
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "question",
        "classifier",
    ],
)
@pytest.mark.requirement("LIF-10")
async def test_t66_closing_during_a_permission_check_does_not_hang(bystander_host, way):
    reached = asyncio.Event()

    class Slow:
        async def allow(self, question: Any) -> Any:
            return await self.judge(question)

        async def judge(self, _: Any, conversation: Any = ()) -> Any:
            reached.set()
            await asyncio.Event().wait()

    async def wait(given: Any) -> None:
        await Slow().judge(given)

    options: dict[str, Any] = {"interaction": Slow() if way == "question" else ScriptedUser(True)}
    if way == "classifier":
        options |= {"classifier": Slow(), "permission_mode": "auto"}
    elif way != "question":
        options["hooks"] = [hook(wait, way)]
    async with bystander_host():
        host = Host({"server": stdio_server("well_behaved.py")}, **options)
        await host.__aenter__()
        await host.ready(timeout=20)
        call = asyncio.create_task(host.call("mcp__server__echo", {"message": "x"}))
        others = [asyncio.create_task(host.call("mcp__server__echo", {"message": "y"})) for _ in range(3)]
        await asyncio.wait_for(reached.wait(), 10)
        async with at_once(CLOSE_SECONDS):
            await host.close()
        done, waiting = await asyncio.wait([call, *others], timeout=CLOSE_SECONDS)
        for task in waiting:
            task.cancel()
        await asyncio.gather(call, *others, return_exceptions=True)
        assert not waiting, "calls end with their host"
        for task in done:
            error = task.exception()
            assert error is None or isinstance(error, DragomanError), repr(error)
            assert error is not None or task.result().is_error or way == "PostToolUse"

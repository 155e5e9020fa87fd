"""T112: Smaller faults: asyncio warnings, a truncated audit log, a suspended watchdog, closing from
another loop."""

import asyncio
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import DragomanError, Host
from dragoman.calls import audit
from dragoman.calls.audit import AuditEntry, AuditLog
from dragoman.errors import ConnectionLost
from dragoman.transports.orphans import ProcessWatchdog
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.bystander_host import at_once, until
from tests.torture.child_programs import alive

BYPASS = {"permission_mode": "bypassPermissions"}


# A server that exits.


@pytest.mark.parametrize("bursting", [False, True])
async def test_t112_calls_to_a_server_that_exited_log_no_asyncio_warning(bystander_host, caplog, bursting):
    async with bystander_host(stdio_server("well_behaved.py")) as a:
        if bursting:
            await asyncio.gather(*(a.call("echo", message="x") for _ in range(64)))
        pid = a.view.pid
        os.kill(pid, signal.SIGKILL)
        while alive(pid):  # without an iteration of the loop, so that it is not noticed yet
            time.sleep(0.001)
        with caplog.at_level("DEBUG", logger="asyncio"):
            async with at_once(5):
                found = await asyncio.gather(
                    *(a.call("echo", message=str(number)) for number in range(200)), return_exceptions=True
                )
            await until(lambda: a.view.status == "failed")
    assert {type(each) for each in found} == {ConnectionLost}
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


# URLs of pages.

SPELLINGS = {
    "https://2130706433/in?a=%2e": "https://127.0.0.1/in?a=%2e",
    "https://0x7f.1:8443/in#x": "https://127.0.0.1:8443/in#x",
    "https://017700000001": "https://127.0.0.1",
    "https://127.1/": "https://127.0.0.1/",
    "http://2130706433:80/": "http://127.0.0.1:80/",
    "https://3232235777/login": "https://192.168.1.1/login",
    "https://[0:0:0:0:0:0:0:1]/": "https://[::1]/",
    "https://EXAMPLE.com./A": "https://EXAMPLE.com./A",
    "HTTPS://127.0.0.1/": "HTTPS://127.0.0.1/",
    "https://[::1]:9/": "https://[::1]:9/",
    "https://example.com/@2130706433/": "https://example.com/@2130706433/",
    "https://example.com?u=https://2130706433/": "https://example.com?u=https://2130706433/",
}


# A full disk.


def entries(folder: Path) -> list[str]:
    return [entry["tool"] for entry in audit.read(folder)]


def test_t112_the_audit_log_continues_after_an_incomplete_line(tmp_path):
    (tmp_path / "audit.jsonl").write_bytes(b'{"tool":"other"}\n{"tool":"ha')
    log = AuditLog(tmp_path, lambda _: None, "session")
    log.close()
    log.write(AuditEntry(tool="ours"), {}, time.time())
    assert entries(tmp_path) == ["other", "ours"]


# A suspended watchdog.


@pytest.fixture
def sleeper() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process.pid
    process.kill()
    process.wait()


def suspend_watchdog(guard: ProcessWatchdog) -> int:
    assert guard._watchdog is not None
    os.kill(guard._watchdog.pid, signal.SIGSTOP)
    return guard._watchdog.pid


def test_t112_a_suspended_watchdog_is_not_waited_for(sleeper):
    def release_seconds(*, frozen: bool) -> float:
        guard = ProcessWatchdog()
        guard.watch(sleeper)
        assert guard._watchdog is not None
        watchdog = suspend_watchdog(guard) if frozen else guard._watchdog.pid
        began = time.monotonic()
        guard.release(sleeper)
        took = time.monotonic() - began
        assert not alive(watchdog)
        return took

    calm = release_seconds(frozen=False)
    assert release_seconds(frozen=True) < max(0.25, 20 * calm)


def test_t112_a_suspended_watchdog_that_stops_reading_is_replaced(sleeper):
    """Its pipe is full after some thousand lines; writing must not wait for it."""
    guard = ProcessWatchdog()
    guard.watch(sleeper)
    frozen = suspend_watchdog(guard)
    done = threading.Event()

    def keep_telling() -> None:
        for _ in range(20_000):
            guard._write_to_watchdog(f"- {sleeper + 1}\n")
        done.set()

    threading.Thread(target=keep_telling, daemon=True).start()
    try:
        assert done.wait(30)
        assert guard._watchdog is not None
        assert guard._watchdog.pid != frozen
    finally:
        os.kill(frozen, signal.SIGKILL) if alive(frozen) else None
        guard.release(sleeper)


# Another event loop.


async def test_t112_closing_from_another_loop_closes_on_the_loop_of_the_owner(bystander_host):
    async with bystander_host() as a:
        host = Host({"box": stdio_server("well_behaved.py")}, **BYPASS)
        async with host:
            await host.ready(timeout=20)
            pid = host.servers["box"].pid
            async with at_once(10):
                await asyncio.to_thread(lambda: asyncio.run(host.close()))
            assert not alive(pid)
            assert host.servers["box"].status == "disabled"
        await host.close()
        await a.bystander.call_often(5)


def test_t112_closing_after_the_owners_loop_has_stopped_reports_it_and_breaks_nothing():
    owner = asyncio.new_event_loop()
    host = Host({"box": stdio_server("well_behaved.py")}, **BYPASS)

    async def open_host() -> None:
        await host.__aenter__()
        await host.ready(timeout=20)

    owner.run_until_complete(open_host())
    try:
        with pytest.raises(DragomanError) as caught:
            asyncio.run(host.close())
        assert caught.value.code == "wrong-loop"
        assert host.servers["box"].status == "connected"
        outcome = owner.run_until_complete(host.call("mcp__box__echo", {"message": "still there?"}))
        assert outcome.text == "still there?"
    finally:
        owner.run_until_complete(host.close())
        owner.close()
    assert host.servers["box"].status == "disabled"


# A reload.


async def test_t112_a_server_that_is_being_replaced_is_always_listed(home):
    file = projects.user(
        home, projects.servers(box=stdio_server("ignores_signals.py"), other=stdio_server("well_behaved.py"))
    )
    async with Host.configured(**BYPASS) as host:
        await host.ready(timeout=20)
        file.write_text(
            json.dumps(
                projects.servers(
                    box=stdio_server("well_behaved.py", "changed"), other=stdio_server("well_behaved.py")
                )
            )
        )
        seen: list[tuple[str, str | None]] = []
        reloading = asyncio.create_task(host.reload())
        while not reloading.done():
            servers = host.servers
            assert set(servers) == {"box", "other"}
            seen.append((servers["box"].status, servers["box"].reason))
            assert servers["other"].status == "connected"
            await asyncio.sleep(0.001)
        assert ("pending", "its configuration has changed: it is being replaced") in seen
        await host.ready(timeout=20)
        assert host.servers["box"].status == "connected"


async def test_t112_a_server_that_was_removed_is_not_listed(home):
    file = projects.user(
        home, projects.servers(box=stdio_server("well_behaved.py"), other=stdio_server("well_behaved.py"))
    )
    async with Host.configured(**BYPASS) as host:
        await host.ready(timeout=20)
        file.write_text(json.dumps(projects.servers(other=stdio_server("well_behaved.py"))))
        await host.reload()
        assert set(host.servers) == {"other"}

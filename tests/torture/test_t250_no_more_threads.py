"""T250: the system refuses to start a thread, temporarily or permanently: containers limit their number."""

import asyncio
import json
import sys
import threading
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.log_files import LogThread
from dragoman.processes import read_process

pytestmark = pytest.mark.requirement("LIF-10")
DEMO = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
REAPER, AUDIT = "dragoman reaper", "dragoman audit"


class Refused:
    """Names of threads that cannot be started."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.count = 0


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Refused:
    found, start = Refused(), threading.Thread.start

    def start_or_not(thread: threading.Thread) -> None:
        if thread.name in found.names:
            found.count += 1
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_not)
    return found


async def opened_and_closed() -> int | None:
    """The pid of a server that was connected until its host was closed."""
    async with Host({"demo": DEMO}) as host:
        pid = (await host.ready(20))["demo"].pid
    return pid


async def test_t250_servers_are_ended_without_a_new_thread_and_with_one(home: Path, refused: Refused):
    refused.names = {REAPER}
    async with asyncio.timeout(20):
        without = await opened_and_closed()
        refused.names = set()
        after = await opened_and_closed()
    assert refused.count > 0
    assert without is not None
    assert after is not None
    assert [read_process(pid) for pid in (without, after)] == [None, None]


async def test_t250_every_call_is_answered_and_logged_in_the_audit_log(home: Path, refused: Refused):
    async with (
        asyncio.timeout(20),
        Host({"demo": DEMO}, permission_mode="bypassPermissions", audit=True) as host,
    ):
        for names in ({AUDIT}, {AUDIT}, set[str]()):
            refused.names = names
            outcome = await host.call("mcp__demo__count", {"to": 1, "seconds": 0.1})
            assert outcome.text == "counted to 1"
        log = host.audit_log()
        assert log is not None
    lines = log.path.read_text().splitlines()
    assert [json.loads(line)["tool"] for line in lines] == ["mcp__demo__count"] * 3


async def test_t250_a_log_that_fails_at_close_does_not_block_readers_of_events(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(thread: LogThread[object]) -> None:
        raise RuntimeError("can't start new thread")

    host = Host({}, audit=True)
    events = host.events()
    async with asyncio.timeout(20):
        await host.__aenter__()
        monkeypatch.setattr(LogThread, "close", fail)
        with pytest.raises(RuntimeError, match="new thread"):
            await host.close()
        assert [event async for event in events] == []

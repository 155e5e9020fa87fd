"""T19: Connecting, calling and closing repeatedly, with crashes among them, leaks nothing.

Sixty times by default; DRAGOMAN_CYCLES sets the number (300 for the full test)."""

import asyncio
import gc
import os
import random
import threading
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from dragoman import DragomanError, Host
from dragoman.errors import ConnectionLost
from tests.servers import stdio_server
from tests.servers.web import answers, http_sse, streamable, websocket
from tests.torture.bystander_host import MEGABYTE, open_descriptors, resident_bytes, until

CYCLES = int(os.environ.get("DRAGOMAN_CYCLES", "60"))
"""Read before the tests start: each of them gets a clean environment."""
CRASHING = 0.3
ONCE = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0}
QUICK = {"DRAGOMAN_RECONNECT_WAIT_MS": 5, "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 20}


@dataclass(frozen=True)
class Census:
    """The resources of a process."""

    descriptors: int
    threads: int
    tasks: int
    children: int
    memory: int

    @staticmethod
    def taken() -> "Census":
        gc.collect()
        return Census(
            len(open_descriptors()),
            _threads(),
            len(asyncio.all_tasks()),
            _children(),
            resident_bytes(),
        )

    def counts(self) -> tuple[int, int, int, int]:
        return (self.descriptors, self.threads, self.tasks, self.children)


def _threads() -> int:
    """Without the thread pool of the event loop: it keeps at most as many threads as were once busy at
    the same time."""
    return sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())


def _children() -> int:
    """Includes zombies."""
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
        return len(file.read().split())


class Sites:
    """One server of each kind over the network, running all the time."""

    async def __aenter__(self) -> "Sites":
        self._stack = AsyncExitStack()
        self.http = await self._stack.enter_async_context(streamable(revisions=("2025-11-25",)))
        self.modern = await self._stack.enter_async_context(streamable(revisions=("2026-07-28",)))
        self.sse = await self._stack.enter_async_context(http_sse())
        self.ws = await self._stack.enter_async_context(websocket())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def entry(self, kind: str, *, crashing: bool) -> dict[str, object]:
        if kind == "stdio":
            return stdio_server("exits.py", "call", "3") if crashing else stdio_server("well_behaved.py")
        return {"type": "http" if kind == "modern" else kind, "url": getattr(self, kind).url}

    def crash(self, kind: str) -> None:
        """Every call in progress fails with its connection."""
        if kind != "stdio":
            getattr(self, kind).cut_connections()


KINDS = ("stdio", "http", "modern", "sse", "ws")


async def cycle(sites: Sites, kind: str, *, crashing: bool) -> None:
    host = Host(
        {"x": sites.entry(kind, crashing=crashing)}, permission_mode="bypassPermissions", settings=ONCE
    )
    async with host:
        await host.ready(timeout=20)
        assert host.servers["x"].status == "connected", host.servers["x"].reason
        if not crashing:
            said = {"message" if kind == "stdio" else "text": "well?"}
            assert (await host.call("mcp__x__echo", said)).text == "well?"
            return
        with pytest.raises(ConnectionLost):
            await crash(host, sites, kind)


async def crash(host: Host, sites: Sites, kind: str) -> None:
    if kind == "stdio":
        await host.call("mcp__x__act")
        return
    ledger = getattr(sites, kind).ledger
    ledger.counts.clear()
    calling = asyncio.create_task(host.call("mcp__x__hold", {"key": "k"}))
    await ledger.wait_for("hold k")
    sites.crash(kind)
    await calling


async def until_equal_to(before: Census) -> Census:
    """The census, once it equals the earlier one; closing the other end of a connection takes a moment."""
    deadline = time.monotonic() + 5
    while (now := Census.taken()).counts() != before.counts() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    return now


@pytest.mark.slow
@pytest.mark.timeout(60 + CYCLES)
@pytest.mark.requirement("LIF-10")
async def test_t19_opening_and_closing_hosts_repeatedly_leaks_nothing():
    async with Sites() as sites:
        for kind in KINDS:  # objects that are created once and kept are created now
            for crashing in (False, True):
                await cycle(sites, kind, crashing=crashing)
        before = await until_equal_to(Census.taken())
        chance = random.Random(19)
        for number in range(CYCLES):
            await cycle(sites, KINDS[number % len(KINDS)], crashing=chance.random() < CRASHING)
        after = await until_equal_to(before)
    assert after.counts() == before.counts()
    assert after.memory - before.memory < 16 * MEGABYTE


@pytest.mark.slow
@pytest.mark.timeout(60 + CYCLES)
@pytest.mark.requirement("LIF-10")
async def test_t19_connecting_and_disconnecting_servers_in_one_host_leaks_nothing():
    async with Sites() as sites:
        servers = {kind: sites.entry(kind, crashing=False) for kind in KINDS}
        async with Host(servers, permission_mode="bypassPermissions", settings=QUICK) as host:
            await host.ready(timeout=20)
            await _rounds(host, sites, 2)
            before = await until_equal_to(Census.taken())
            await _rounds(host, sites, max(2, CYCLES // 6))
            after = await until_equal_to(before)
    assert after.counts() == before.counts()
    assert after.memory - before.memory < 16 * MEGABYTE


async def _rounds(host: Host, sites: Sites, count: int) -> None:
    """Every server loses its connection, is reconnected by a manual command, and is disabled and enabled."""
    for _ in range(count):
        for kind in KINDS:
            await _lose(host, sites, kind)
            await until(lambda kind=kind: host.servers[kind].status == "connected")
            await host.reconnect(kind)
            await host.disable(kind)
            assert (await host.enable(kind)).status == "connected"
            said = {"message" if kind == "stdio" else "text": "well?"}
            assert (await host.call(f"mcp__{kind}__echo", said)).text == "well?"


async def _lose(host: Host, sites: Sites, kind: str) -> None:
    if kind == "stdio":
        pid = host.servers[kind].pid
        assert pid is not None
        os.kill(pid, 9)
        await until(lambda: host.servers[kind].pid != pid)
    else:
        sites.crash(kind)


@pytest.mark.requirement("LIF-10")
async def test_t19_servers_that_cannot_be_connected_leak_nothing():
    async with streamable() as server:
        server.on["*"] = answers.hang_up()
        entries = {
            "missing": {"command": "/nonexistent"},
            "dying": stdio_server("exits.py", "greeting", "1"),
            "refusing": {"url": "http://127.0.0.1:9/mcp"},
            "hanging up": {"url": server.url},
            "no stream": {"type": "sse", "url": server.url + "/sse"},
            "no socket": {"type": "ws", "url": server.url.replace("http", "ws") + "/ws"},
        }
        before = None
        for _ in range(4):
            async with Host(entries, settings=ONCE) as host:
                views = await host.ready(timeout=20)
                assert {view.status for view in views.values()} == {"failed"}
                assert all(isinstance(view.error, DragomanError) for view in views.values())
            before = before or await until_equal_to(Census.taken())
        after = await until_equal_to(before)
    assert after.counts() == before.counts()

"""T350: name resolution and a keychain that never answer occupy the threads that everything else needs."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.auth.stores.base import Vault, _Marker  # pyright: ignore[reportPrivateUsage]
from dragoman.own_threads import resolve

pytestmark = pytest.mark.requirement("LIF-10")
DEMO = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
MANY = 40
"""More than the event loop has threads, on any machine."""


@pytest.fixture
def unresolved_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Names below nowhere.example are not resolved until the event is set."""
    over, resolve = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
        if str(host).endswith("nowhere.example"):
            over.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return resolve(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield over
    over.set()


async def test_t350_unresolved_names_do_not_delay_a_new_deny_rule(
    home: Path, unresolved_names: threading.Event
):
    settings = home / ".dragoman" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    remote = {f"r{number}": {"url": f"https://s{number}.nowhere.example/mcp"} for number in range(MANY)}
    servers = {"demo": DEMO, **remote}
    settings.write_text(json.dumps({"mcpServers": servers}))
    more = {"MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE": MANY}
    async with Host.configured(permission_mode="bypassPermissions", watch=True, settings=more) as host:
        async with asyncio.timeout(20):
            while host.servers["demo"].status != "connected":
                await asyncio.sleep(0.02)
            while threading.active_count() < MANY // 2 and not unresolved_names.is_set():
                await asyncio.sleep(0.02)
            denied = {"permissions": {"deny": ["mcp__demo__add"]}, "mcpServers": servers}
            settings.write_text(json.dumps(denied))
            while not (await host.call("mcp__demo__add", {"a": 1, "b": 2})).is_error:
                await asyncio.sleep(0.02)


async def test_t350_callers_share_the_thread_that_resolves_a_name(unresolved_names: threading.Event):
    before = set(threading.enumerate())  # threads of other tests may end meanwhile
    waiting = [asyncio.create_task(resolve("nowhere.example", 443)) for _ in range(MANY)]
    await asyncio.sleep(0)
    assert len(set(threading.enumerate()) - before) == 1
    waiting[0].cancel()
    unresolved_names.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [asyncio.CancelledError] + [socket.gaierror] * (MANY - 1)


async def test_t350_a_keychain_that_waits_for_a_person_delays_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    unlocked, vault = threading.Event(), Vault({"DRAGOMAN_SECRET_STORE": "keyring", "HOME": str(home)})
    vault._stores["keyring"] = LockedStore(unlocked)  # pyright: ignore[reportPrivateUsage]
    vault._put_marker(_Marker("keyring", "key"))  # pyright: ignore[reportPrivateUsage]
    reading = [asyncio.create_task(vault.read("key")) for _ in range(MANY)]
    try:
        async with asyncio.timeout(20):
            await asyncio.sleep(0)
            assert await asyncio.to_thread(lambda: "free") == "free"
    finally:
        unlocked.set()
    assert await asyncio.gather(*reading) == [b"secret"] * MANY


def test_t350_a_program_can_exit_while_a_name_is_resolved(home: Path):
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, timeout=50, check=False)
    assert (ended.returncode, ended.stdout) == (0, b"failed\n"), ended.stderr.decode()


PROGRAM = """
import asyncio, socket, threading
from dragoman import Host

socket.getaddrinfo = lambda *_, **__: threading.Event().wait()

async def main():
    settings = {"MCP_TIMEOUT": 500, "DRAGOMAN_PROBE_TIMEOUT_MS": 200}
    async with Host({"x": {"url": "https://nowhere.example/mcp"}}, settings=settings) as host:
        print((await host.ready(20))["x"].status)

asyncio.run(main())
"""


class LockedStore:
    """A keychain that answers once it is unlocked."""

    description = "in a locked keychain"

    def __init__(self, unlocked: threading.Event) -> None:
        self._unlocked = unlocked

    def get(self, key: str) -> bytes:
        self._unlocked.wait()
        return b"secret"

    def put(self, key: str, secret: bytes) -> None:
        self._unlocked.wait()

    def delete(self, key: str) -> None:
        self._unlocked.wait()

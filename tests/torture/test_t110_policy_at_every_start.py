"""T110: A policy that changed while a host runs applies at the next start of a server, with or without
`watch`."""

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config import all_files
from dragoman.config.merge import EXCLUSIVE
from dragoman.config.rule_edits import add_rule
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, PolicyRefused
from tests.case_selection import some
from tests.e2e.forked import run
from tests.integration.waiting import until
from tests.servers import SERVER_PROGRAMS
from tests.torture import projects
from tests.torture.projects import servers, write

pytestmark = pytest.mark.requirement("CFG-7")

SETTINGS = {"DRAGOMAN_RECONNECT_ATTEMPTS": 3, "DRAGOMAN_RECONNECT_WAIT_MS": 10, "DRAGOMAN_IDLE_STOP_MS": 50}
DENY = {"deniedMcpServers": [{"serverName": "box"}]}


class World:
    """A server that writes a line at each start."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._marks = home / "starts"
        self._marks.touch()

    def entry(self, **fields: Any) -> dict[str, Any]:
        serve = shlex.join([sys.executable, "-S", "-E", str(SERVER_PROGRAMS / "well_behaved.py")])
        script = f"echo x >> {shlex.quote(str(self._marks))}; exec {serve}"
        return {"command": "/bin/sh", "args": ["-c", script], **fields}

    @property
    def starts(self) -> int:
        return self._marks.read_text().count("x")


@pytest.fixture
def world(home: Path) -> World:
    return World(home)


def user_denies(world: World) -> None:
    file = Sources.here().user_file
    known = json.loads(file.read_text()) if file.exists() else {}
    projects.user(world.home, {**known, **DENY})


def user_allows_others(world: World) -> None:
    file = Sources.here().user_file
    known = json.loads(file.read_text()) if file.exists() else {}
    projects.user(world.home, {**known, "allowedMcpServers": [{"serverName": "other"}]})


def local_denies(world: World) -> None:
    write(world.home / "work" / ".dragoman" / "settings.local.json", DENY)


def managed_denies(world: World) -> None:
    projects.managed(world.home, DENY)


def managed_denies_the_program(world: World) -> None:
    projects.managed(world.home, {"deniedMcpServers": [{"serverCommand": ["sh", "-c", "*"]}]})


def managed_is_exclusive(world: World) -> None:
    projects.managed(world.home, servers(other={"command": "true"}))


CHANGES: dict[str, Callable[[World], None]] = {
    "the person denies": user_denies,
    "the person allows others": user_allows_others,
    "the local file denies": local_denies,
    "the administrator denies": managed_denies,
    "the administrator denies the program": managed_denies_the_program,
    "the administrator's servers are the only ones": managed_is_exclusive,
}


async def by_reconnecting(host: Host) -> None:
    await host.reconnect("box")


async def by_enabling(host: Host) -> None:
    await host.disable("box", remember=False)
    await host.enable("box", remember=False)


async def by_dying(host: Host) -> None:
    pid = host.servers["box"].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        await until(lambda: host.servers["box"].status == "failed")


STARTS: dict[str, Callable[[Host], Awaitable[None]]] = {
    "reconnected": by_reconnecting,
    "enabled": by_enabling,
    "started again after its death": by_dying,
}


@pytest.mark.parametrize(("change", "way"), some(CHANGES, product(STARTS, ["file", "code"]), each=3))
async def test_t110_a_server_that_is_denied_meanwhile_does_not_start_again(
    world: World, change: str, way: tuple[str, str]
):
    start, given = way
    if given == "file":
        projects.user(world.home, servers(box=world.entry()))
        host = Host.configured(settings=SETTINGS)
    else:
        host = Host({"box": world.entry()}, settings=SETTINGS)
    async with host:
        await host.ready(timeout=30)
        assert (host.servers["box"].status, world.starts) == ("connected", 1)

        CHANGES[change](world)
        await STARTS[start](host)

        view = host.servers["box"]
        assert view.status == "failed"
        assert isinstance(view.error, PolicyRefused)
        if change == "the administrator's servers are the only ones":
            assert view.error.reason == EXCLUSIVE
        assert world.starts == 1


@pytest.mark.parametrize("change", CHANGES)
async def test_t110_a_lazy_server_that_is_denied_meanwhile_is_not_started_by_a_call(
    world: World, change: str
):
    projects.user(world.home, servers(box=world.entry(lazy=True)))
    options: Any = {"permission_mode": "bypassPermissions", "settings": SETTINGS}
    async with Host.configured(**options) as host:
        await host.ready(timeout=30)
        assert (await host.call("mcp__box__echo", {"message": "x"})).text == "x"
        async with asyncio.timeout(30):
            await until(lambda: host.servers["box"].status == "pending")
        starts = world.starts

        CHANGES[change](world)
        with pytest.raises(Exception, match=r"denied|allow list|declares servers"):
            await host.call("mcp__box__echo", {"message": "x"})

        assert world.starts == starts


@pytest.mark.parametrize("change", CHANGES)
async def test_t110_an_agents_own_server_that_is_denied_meanwhile_does_not_start_again(
    world: World, change: str
):
    async with Host({}, settings=SETTINGS) as host, host.for_agent([{"box": world.entry()}]) as agent:
        await agent.ready(timeout=30)
        assert world.starts == 1
        CHANGES[change](world)
        pid = agent.servers["box"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(30):
            await until(lambda: agent.servers["box"].status == "failed")
        assert isinstance(agent.servers["box"].error, PolicyRefused)
        assert world.starts == 1


async def test_t110_a_server_that_is_no_longer_denied_can_be_started_again(world: World):
    projects.user(world.home, servers(box=world.entry()))
    async with Host.configured() as host:
        await host.ready(timeout=30)
        managed_denies(world)
        assert (await host.reconnect("box")).status == "failed"
        (world.home / "managed" / "managed-mcp.json").unlink()
        assert (await host.reconnect("box")).status == "connected"


async def test_t110_a_policy_file_that_cannot_be_read_leaves_the_last_version_in_force(world: World):
    projects.user(world.home, servers(box=world.entry()))
    file = projects.managed(world.home, {"deniedMcpServers": [{"serverName": "other"}]})
    async with Host.configured() as host:
        await host.ready(timeout=30)
        file.write_text("{")
        assert (await host.reconnect("box")).status == "connected"
        file.write_text(json.dumps(DENY))
        assert (await host.reconnect("box")).status == "failed"
        file.write_text("{")
        assert (await host.reconnect("box")).status == "failed"


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("words", [["mcp", "approve", "box", "--no"], ["mcp", "reset-project-choices"]])
@pytest.mark.parametrize("start", STARTS)
async def test_t110_a_server_whose_approval_was_revoked_does_not_start_again(
    world: World, words: list[str], start: str
):
    projects.approve(write(world.home / "work" / ".mcp.json", servers(box=world.entry())), "box")
    async with Host.configured(settings=SETTINGS) as host:
        await host.ready(timeout=30)
        assert world.starts == 1
        assert (await asyncio.to_thread(run, *words)).returncode == 0
        await STARTS[start](host)
        view = host.servers["box"]
        assert view.status == "failed"
        assert isinstance(view.error, ConfigError)
        assert world.starts == 1


async def test_t110_a_server_that_was_disabled_elsewhere_does_not_start_again(world: World):
    projects.user(world.home, servers(box=world.entry()))
    async with Host.configured(settings=SETTINGS) as host:
        await host.ready(timeout=30)
        assert (await asyncio.to_thread(run, "mcp", "disable", "box")).returncode == 0
        await by_dying(host)
        assert "disabled in" in str(host.servers["box"].reason)
        assert world.starts == 1


@pytest.mark.parametrize("size", [1, 2])
async def test_t110_a_change_without_a_new_time_stamp_is_noticed(world: World, size: int):
    """Same length, same time, same inode."""
    projects.user(world.home, servers(box=world.entry()))
    names = [{"serverName": name} for name in ("bix", "bax")[:size]]
    file = projects.managed(world.home, {"deniedMcpServers": names})
    before = file.stat()
    async with Host.configured() as host:
        await host.ready(timeout=30)
        file.write_text(file.read_text().replace("bix", "box"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (await host.reconnect("box")).status == "failed"


async def test_t110_unchanged_files_are_not_read_again(world: World, monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    whole = all_files.read_file

    def counted(scope: Any, path: Path) -> Any:
        read.append(str(path))
        return whole(scope, path)

    projects.user(world.home, servers(box=world.entry()))
    async with Host.configured() as host:
        await host.ready(timeout=30)
        monkeypatch.setattr(all_files, "read_file", counted)
        await host.reconnect("box")
        assert read == []
        add_rule(Sources.here(), "user", "deny", "mcp__other")
        await host.reconnect("box")
        assert read.count(str(Sources.here().user_file)) == 1
        read.clear()
        await host.reconnect("box")
        assert read == []

"""T68: With concurrent commands for one server the last one applies, and it never has two connections."""

import asyncio
import json
import os
import random
from pathlib import Path

import pytest

from dragoman import DragomanError, Host
from dragoman.errors import ConnectionLost, NotConnected
from tests.integration.workshop import our_server
from tests.leftover_processes import leftovers, running_processes
from tests.servers import stdio_server
from tests.servers.web import answers, streamable
from tests.torture.bystander_host import until

QUICK = {
    "DRAGOMAN_RECONNECT_ATTEMPTS": 1000,
    "DRAGOMAN_RECONNECT_WAIT_MS": 2,
    "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 10,
}
OPTIONS = {"permission_mode": "bypassPermissions", "settings": QUICK}
NEVER_MS = "3600000"


class StartLog:
    """The pids of all processes that were started as the server, in the order of their starts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def entry(self, **more: object) -> dict[str, object]:
        return stdio_server("exits_soon.py", str(self._path), NEVER_MS, **more)

    def starts(self) -> list[int]:
        return [int(pid) for pid in self._path.read_text().split()]

    def living(self) -> list[int]:
        return [pid for pid in self.starts() if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def start_log(tmp_path: Path) -> StartLog:
    return StartLog(tmp_path / "starts")


async def settled(host: Host, status: str) -> None:
    await until(lambda: host.servers["x"].status == status)


@pytest.mark.requirement("LIF-4", "LIF-9")
async def test_t68_connecting_twenty_times_at_once_makes_one_connection(start_log):
    async with Host({"x": start_log.entry()}, **OPTIONS) as host:
        views = await asyncio.gather(*(host.enable("x") for _ in range(20)))
        assert {view.status for view in views} == {"connected"}
        assert len(start_log.starts()) == 1
        await asyncio.gather(*(host.reconnect("x") for _ in range(20)))
        await settled(host, "connected")
        assert len(start_log.living()) == 1
        assert len(start_log.starts()) <= 4, "twenty wishes that come at once are one"
    assert start_log.living() == []


@pytest.mark.requirement("LIF-9")
@pytest.mark.parametrize("turns", range(12))
async def test_t68_disabling_applies_at_any_moment_during_a_connect(start_log, turns):
    async with Host({"x": start_log.entry()}, **OPTIONS) as host:
        for _ in range(turns**2):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            view = await host.disable("x")
        assert (view.status, host.tools(), start_log.living()) == ("disabled", [], [])
        with pytest.raises(DragomanError):
            (await host.call("mcp__x__echo", {"message": "?"})).raise_for_error()


class Files:
    """A person's configuration with one server, edited while a host runs."""

    def __init__(self, home: Path) -> None:
        self._path = home / ".dragoman" / "settings.json"
        self._path.parent.mkdir(mode=0o700, exist_ok=True)

    def say(self, **servers: object) -> None:
        self._path.write_text(json.dumps({"mcpServers": servers}))


@pytest.fixture
def files(home: Path) -> Files:
    return Files(home)


@pytest.mark.requirement("LIF-9")
async def test_t68_a_server_removed_during_a_call_ends_the_call_with_an_error_that_names_it(files, start_log):
    files.say(x=stdio_server("holds_replies.py"), y=start_log.entry())
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=20)
        calls = [asyncio.create_task(host.call("mcp__x__hold", {})) for _ in range(5)]
        # Its server reads in order, so those are in progress when this one is answered.
        assert (await host.call("mcp__x__echo", {"message": "now"})).text == "now"
        assert not any(call.done() for call in calls)
        files.say(y=start_log.entry())
        async with asyncio.timeout(5):
            await host.reload()
            ended = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(each) for each in ended} <= {ConnectionLost, NotConnected}, ended
        assert "x" not in host.servers
        assert len(start_log.starts()) == 1, "the other one was not disturbed"


@pytest.mark.requirement("LIF-9")
async def test_t68_a_server_removed_while_calls_wait_for_it_ends_the_calls_with_an_error_that_names_it(files):
    files.say(x=stdio_server("starts_slowly.py", "never"))
    settings = {**QUICK, "MCP_TIMEOUT": 60_000}
    async with Host.configured(permission_mode="bypassPermissions", settings=settings) as host:
        await until(lambda: host.servers["x"].phase == "handshaking")
        waiting = asyncio.create_task(host.ready())
        files.say()
        async with asyncio.timeout(5):
            await host.reload()
            await waiting
        assert dict(host.servers) == {}


@pytest.mark.requirement("LIF-9")
async def test_t68_an_entry_edited_while_its_server_reconnects_is_used(files, tmp_path):
    old, new = StartLog(tmp_path / "old"), StartLog(tmp_path / "new")
    files.say(x=old.entry())
    slow = {**QUICK, "DRAGOMAN_RECONNECT_WAIT_MS": 60_000, "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 60_000}
    async with Host.configured(permission_mode="bypassPermissions", settings=slow) as host:
        await host.ready(timeout=20)
        os.kill(old.starts()[0], 9)
        await until(lambda: host.servers["x"].phase == "reconnecting")
        calling = asyncio.create_task(host.call("mcp__x__echo", {"message": "late"}, timeout_seconds=10))
        await asyncio.sleep(0)
        files.say(x=new.entry())
        async with asyncio.timeout(10):
            await host.reload()
            await host.ready(timeout=20)
            ended = (await asyncio.gather(calling, return_exceptions=True))[0]
        assert getattr(ended, "text", None) == "late" or isinstance(ended, NotConnected), ended
        assert (host.servers["x"].status, len(new.living())) == ("connected", 1)
        assert (len(old.starts()), old.living()) == (1, [])


@pytest.mark.requirement("LIF-9")
async def test_t68_reconnecting_while_a_sign_in_is_needed_asks_again_and_uses_the_approval():
    async with (
        streamable(on={"*": answers.challenge()}) as server,
        Host({"x": {"url": server.url}}, **OPTIONS) as host,
    ):
        await host.ready(timeout=20)
        assert host.servers["x"].status == "needs-auth"
        before = len(server.asks)
        views = await asyncio.gather(*(host.reconnect("x") for _ in range(10)))
        await settled(host, "needs-auth")
        assert {view.status for view in views} == {"needs-auth"}
        assert len(server.asks) <= before + 4, "ten wishes at once are not ten visits"
        server.on.clear()
        await asyncio.gather(*(host.reconnect("x") for _ in range(10)), host.enable("x"))
        await settled(host, "connected")
        assert (await host.call("mcp__x__echo", {"text": "in"})).text == "in"
        await asyncio.gather(host.reconnect("x"), host.disable("x"))
        assert host.servers["x"].status == "disabled"


COMMANDS = ("enable", "disable", "reconnect")


async def say(host: Host, word: str) -> None:
    if word in ("disable", "enable"):
        await getattr(host, word)("x", remember=False)
    else:
        await host.reconnect("x")


async def concurrent_commands(host: Host, chance: random.Random, count: int, nuisance) -> str:
    """This many commands at random moments, in separate tasks, with failures between them; returns the
    last command."""
    saying: list[asyncio.Task[None]] = []
    word = "enable"
    for _ in range(count):
        word = chance.choice(COMMANDS)
        saying.append(asyncio.create_task(say(host, word)))
        for _ in range(chance.choice((0, 1, 1, 3, 30, 200))):
            await asyncio.sleep(0)
        if chance.random() < 0.3:
            await nuisance(chance)
        if chance.random() < 0.2:
            chance.choice(saying).cancel()  # cancelling the wait does not revoke the command
    async with asyncio.timeout(20):
        await asyncio.gather(*saying, return_exceptions=True)
    return word


async def check(host: Host, last: str, tool: str, arguments: dict[str, object], text: str) -> None:
    if last == "disable":
        await settled(host, "disabled")
        assert host.tools() == []
    else:
        await settled(host, "connected")
        try:
            outcome = await host.call(tool, arguments)
        except ConnectionLost:  # killed just before, which was not noticed yet
            outcome = await host.call(tool, arguments)
        assert outcome.text == text
        await settled(host, "connected")


@pytest.mark.requirement("LIF-9")
@pytest.mark.parametrize("seed", range(40))
async def test_t68_after_concurrent_commands_the_last_one_applies_in_process(seed):
    chance = random.Random(seed)

    async def nuisance(chance: random.Random) -> None:
        calling = asyncio.create_task(host.call("mcp__x__add", {"a": 1, "b": 1}, timeout_seconds=5))
        await asyncio.sleep(0)
        if chance.random() < 0.5:
            calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

    async with Host({"x": our_server()}, **OPTIONS) as host:
        last = await concurrent_commands(host, chance, 30, nuisance)
        await check(host, last, "mcp__x__add", {"a": 1, "b": 2}, "3")


@pytest.mark.slow
@pytest.mark.requirement("LIF-9")
@pytest.mark.parametrize("seed", range(6))
async def test_t68_after_concurrent_commands_the_last_one_applies_and_one_process_runs(seed, home, start_log):
    chance = random.Random(seed)
    most = 0

    async def nuisance(chance: random.Random) -> None:
        nonlocal most
        most = max(most, len(start_log.living()))
        if chance.random() < 0.5:
            for pid in start_log.living():
                os.kill(pid, 9)
        else:
            await asyncio.sleep(chance.random() * 0.1)

    before = running_processes()
    async with Host({"x": start_log.entry()}, **OPTIONS) as host:
        last = await concurrent_commands(host, chance, 25, nuisance)
        if last != "disable":
            await until(lambda: host.servers["x"].status in ("connected", "failed"))
            if host.servers["x"].status == "failed":
                # A process that is killed during its handshake never connected, so it is not started again.
                assert host.servers["x"].reason == "x: handshake failed: it was ended by SIGKILL"
                await host.reconnect("x")
        await check(host, last, "mcp__x__echo", {"message": "well"}, "well")
        assert len(start_log.living()) == (last != "disable")
        assert most <= 1, "never two at the same time"
    assert leftovers(home, before, grace_seconds=1.0) == []


@pytest.mark.slow
@pytest.mark.requirement("LIF-9")
@pytest.mark.parametrize("seed", range(3))
async def test_t68_a_configuration_edited_repeatedly_ends_in_the_last_edit(seed, home, files, tmp_path):
    """Entries are changed, removed and added during commands and calls; the last edit applies."""
    chance = random.Random(seed)
    diaries = [StartLog(tmp_path / str(n)) for n in range(3)]
    before = running_processes()
    files.say(x=diaries[0].entry())
    async with Host.configured(**OPTIONS) as host:
        doing: list[asyncio.Task[object]] = []
        for _ in range(15):
            which = chance.randrange(4)
            files.say(**({"x": diaries[which].entry()} if which < 3 else {}))
            doing.append(asyncio.create_task(host.reload()))
            if "x" in host.servers:
                doing.append(asyncio.create_task(say(host, chance.choice(COMMANDS))))
                doing.append(asyncio.create_task(host.call("mcp__x__echo", {"message": "?"})))
            await asyncio.sleep(chance.random() * 0.05)
        async with asyncio.timeout(20):
            ended = await asyncio.gather(*doing, return_exceptions=True)
        for end in ended:
            if isinstance(end, Exception) and not isinstance(end, DragomanError):
                raise AssertionError("an end without a name of ours") from end
        files.say(x=diaries[1].entry())
        await host.reload()
        await host.reconnect("x")
        await settled(host, "connected")
        assert [len(each.living()) for each in diaries] == [0, 1, 0]
    assert leftovers(home, before, grace_seconds=1.0) == []

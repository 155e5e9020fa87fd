"""Servers beside each other: none waits for another, and a broken one harms only itself."""

import asyncio
from pathlib import Path

import pytest

from bench.direct import open_session
from dragoman import ConfigError, Host
from dragoman.errors import CommandNotFound, ConnectionLost, ConnectTimeout, StartFailed
from tests.integration.waiting import until
from tests.integration.workshop import fastmcp_server, our_server, sdk_server, workshop
from tests.servers import stdio_server


@pytest.mark.slow
async def test_with_three_of_ten_servers_broken_the_others_work_at_once() -> None:
    good = {f"calm{n}": stdio_server("well_behaved.py") for n in range(5)} | {
        "ours": our_server(),
        "sdk": sdk_server(),
    }
    broken = {
        "missing": {"command": "no-such-program-anywhere"},
        "exits": stdio_server("exits.py", "start", "3"),
        "mute": stdio_server("silent.py"),
    }
    async with Host(
        {**broken, **good}, permission_mode="bypassPermissions", settings={"MCP_TIMEOUT": 4000}
    ) as host:
        # Usable while the mute one still has its time.
        await until(lambda: all(host.servers[name].status == "connected" for name in good))
        assert host.servers["mute"].status == "pending"
        answers = await asyncio.gather(
            *(host.call(f"mcp__calm{n}__echo", {"message": f"hello {n}"}) for n in range(5)),
            *(host.call(f"mcp__{name}__add", {"a": 1, "b": 2}) for name in ("ours", "sdk")),
        )
        assert [answer.text for answer in answers] == [*(f"hello {n}" for n in range(5)), "3", "3"]

        views = await host.ready(timeout=30)
        assert {name for name, view in views.items() if view.status == "failed"} == set(broken)
        assert isinstance(views["missing"].error, CommandNotFound)
        assert "no-such-program-anywhere" in str(views["missing"].reason)
        assert isinstance(views["exits"].error, StartFailed)
        assert "code 3" in str(views["exits"].reason)
        assert views["exits"].exit_code == 3
        assert "opening the database" in views["exits"].stderr_tail
        assert isinstance(views["mute"].error, ConnectTimeout)
        for name in broken:
            error = views[name].error
            assert error is not None
            assert error.hint, f"{name}: a person is told what to do next"
            assert not [tool for tool in host.tools() if tool.server == name]
        assert (await host.call("mcp__calm0__echo", {"message": "still here"})).text == "still here"


async def test_a_server_that_starts_slowly_delays_no_other(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    servers = {"late": workshop("ours", "--gate", gate), "quick": our_server()}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await until(lambda: host.servers["quick"].status == "connected")
        assert (await host.call("mcp__quick__add", {"a": 1, "b": 2})).text == "3"
        views = await host.ready(timeout=0.01)
        assert (views["quick"].status, views["late"].status) == ("connected", "pending")
        gate.touch()
        views = await host.ready(timeout=30)
        assert views["late"].status == "connected"
        assert (await host.call("mcp__late__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.parametrize("kind", ["ours", pytest.param("sdk", marks=pytest.mark.slow)])
async def test_a_server_that_crashes_in_a_tool_fails_only_that_call(kind: str) -> None:
    servers = {"doomed": workshop(kind), "other": our_server()}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        with pytest.raises(ConnectionLost) as caught:
            await host.call("mcp__doomed__crash")
        assert caught.value.may_have_run
        assert "code 7" in caught.value.cause
        view = host.servers["doomed"]
        assert (view.status, view.phase) == ("pending", "reconnecting")
        assert "code 7" in str(view.reason)
        assert view.exit_code == 7
        assert (await host.call("mcp__other__add", {"a": 1, "b": 2})).text == "3"
        # It is started again meanwhile, and the call waits for it.
        assert (await host.call("mcp__doomed__add", {"a": 1, "b": 2})).text == "3"
        assert host.servers["doomed"].pid != view.pid


async def test_objects_and_processes_of_all_kinds_share_a_host() -> None:
    servers = {
        "ours": our_server(),
        "sdk": sdk_server(),
        "fastmcp": fastmcp_server(),
        "process": workshop("ours"),
        "old": our_server(("2024-11-05",)),
    }
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        calls = [host.call(f"mcp__{name}__add", {"a": n, "b": 1}) for name in servers for n in range(20)]
        sums = [outcome.structured["result"] for outcome in await asyncio.gather(*calls)]
        assert sums == [n + 1 for _ in servers for n in range(20)]


@pytest.mark.parametrize(
    "entry",
    [
        {"comand": "npx"},
        {"command": "x", "args": [1]},
        {"command": "x", "protocol": "1999"},
        None,
        "npx",
        7,
        {},
    ],
    ids=str,
)
async def test_an_invalid_entry_is_named_and_affects_no_other(entry: object) -> None:
    async with Host({"bad": entry, "ours": our_server()}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        bad = host.servers["bad"]
        assert (bad.status, type(bad.error)) == ("failed", ConfigError)
        assert "'bad'" in str(bad.reason)
        assert (await host.call("mcp__ours__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.requirement("CFG-4")
async def test_a_missing_variable_is_an_error_of_its_server_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_KIND", "ours")
    needs = {"command": "x", "env": {"KEY": "${SHOP_KEY}"}}
    kind = workshop("${SHOP_KIND}")
    async with Host({"needs": needs, "shop": kind}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        assert "SHOP_KEY" in str(host.servers["needs"].reason)
        assert (await host.call("mcp__shop__add", {"a": 1, "b": 2})).text == "3"


async def test_cancelling_a_session_leaves_no_process() -> None:
    """The check for leftover processes after the test shows it."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await open_session(stdio_server("silent.py"))

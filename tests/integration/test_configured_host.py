"""A host that takes its servers from configuration files, and follows them while it runs."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import ConfigError, Host
from dragoman.config import approval
from dragoman.errors import PolicyRefused
from dragoman.events import ConfigurationChanged
from tests.integration.desk import WELL_BEHAVED, Desk, other_well_behaved
from tests.integration.waiting import until
from tests.integration.workshop import workshop
from tests.servers import stdio_server

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {"permission_mode": "bypassPermissions"}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def approve(desk: Desk, path: Path, name: str, entry: dict[str, Any]) -> None:
    approval.remember(desk.approvals_file, path, name, entry, "approved")


def statuses(host: Host) -> dict[str, str]:
    return {name: view.status for name, view in host.servers.items()}


@pytest.mark.requirement("CFG-1", "CFG-2")
async def test_servers_of_every_file_are_listed_with_their_source(desk: Desk):
    desk.write(desk.plugin_file("tools"), {"plug": WELL_BEHAVED})
    desk.user({"mine": other_well_behaved()})
    desk.in_project(
        {"ours": stdio_server("well_behaved.py", protocol="legacy") | {"args": [*WELL_BEHAVED["args"], "3"]}}
    )
    entry = {**WELL_BEHAVED, "args": [*WELL_BEHAVED["args"], "4"]}
    desk.local({"here": entry})
    approve(desk, desk.local_file, "here", entry)
    given = {"now": {**WELL_BEHAVED, "args": [*WELL_BEHAVED["args"], "5"]}}
    async with Host.configured(servers=given, **OPTIONS) as host:
        views = await host.ready(timeout=30)
        assert statuses(host) == {
            "plug": "connected",
            "mine": "connected",
            "ours": "pending",
            "here": "connected",
            "now": "connected",
        }
        assert {name: (view.scope, view.source) for name, view in views.items()} == {
            "plug": ("plugin", str(desk.plugin_file("tools"))),
            "mine": ("user", str(desk.user_file)),
            "ours": ("project", str(desk.project_file)),
            "here": ("local", str(desk.local_file)),
            "now": ("dynamic", "code"),
        }


@pytest.mark.requirement("CFG-3")
async def test_with_servers_of_the_administrator_no_other_is_used_even_if_given_in_code(desk: Desk):
    desk.managed({"official": WELL_BEHAVED})
    desk.user({"mine": other_well_behaved()})
    async with Host.configured(servers={"now": stdio_server("well_behaved.py")}, **OPTIONS) as host:
        await host.ready(timeout=30)
        assert statuses(host) == {"official": "connected"}
        assert {dropped.candidate.name for dropped in host.configuration.dropped} == {"mine", "now"}
    async with Host({"now": WELL_BEHAVED}, **OPTIONS) as host:
        await host.ready(timeout=30)
        assert statuses(host) == {"official": "connected"}


@pytest.mark.requirement("CFG-3")
async def test_an_empty_list_of_the_administrator_disables_all_servers(desk: Desk):
    desk.managed({})
    desk.user({"mine": WELL_BEHAVED})
    async with Host.configured(**OPTIONS) as host:
        assert await host.ready(timeout=30) == {}


@pytest.mark.requirement("CFG-7")
async def test_policy_applies_to_servers_given_in_code(desk: Desk):
    desk.managed(deniedMcpServers=[{"serverName": "evil"}])
    async with Host({"evil": WELL_BEHAVED, "good": other_well_behaved()}, **OPTIONS) as host:
        await host.ready(timeout=30)
        assert statuses(host) == {"evil": "disabled", "good": "connected"}
        assert isinstance(host.servers["evil"].error, PolicyRefused)
        assert str(desk.managed_file) in str(host.servers["evil"].reason)


@pytest.mark.requirement("CFG-5")
async def test_only_the_tools_an_entry_enables_are_listed_and_can_be_called(desk: Desk):
    first, second = "add", "fail"
    servers = {
        "some": {**workshop("ours"), "enabledTools": [first]},
        "others": {**workshop("ours"), "disabledTools": [first]},
    }
    async with Host(servers, **OPTIONS) as host:
        await host.ready(timeout=30)
        offered = {(tool.server, tool.wire_name) for tool in host.tools()}
        assert ("some", first) in offered
        assert ("some", second) not in offered
        assert ("others", first) not in offered
        assert ("others", second) in offered
        outcome = await host.call(f"mcp__some__{second}", {})
        assert outcome.error is not None
        assert outcome.error.code == "unknown-tool"


# --- live ---


@pytest.mark.requirement("CFG-11")
async def test_reloading_applies_the_difference_and_keeps_other_connections(desk: Desk):
    desk.user({"stays": WELL_BEHAVED, "goes": other_well_behaved()})
    async with Host.configured(**OPTIONS) as host:
        before = await host.ready(timeout=30)
        pid, left = before["stays"].pid, before["goes"].pid
        desk.user({"stays": WELL_BEHAVED, "comes": {**WELL_BEHAVED, "args": [*WELL_BEHAVED["args"], "new"]}})
        preview = await host.plan()
        plan = await host.reload()
        assert plan == preview
        assert (plan.added, plan.removed, plan.changed, plan.unchanged) == (
            ("comes",),
            ("goes",),
            (),
            ("stays",),
        )
        after = await host.ready(timeout=30)
        assert statuses(host) == {"stays": "connected", "comes": "connected"}
        assert after["stays"].pid == pid
        assert left is not None
        assert not Path(f"/proc/{left}").exists()
        assert {tool.server for tool in host.tools()} == {"stays", "comes"}
        assert (await host.plan()).is_empty


@pytest.mark.requirement("CFG-11")
async def test_a_changed_entry_is_reconnected(desk: Desk):
    desk.user({"box": WELL_BEHAVED})
    async with Host.configured(**OPTIONS) as host:
        pid = (await host.ready(timeout=30))["box"].pid
        desk.user({"box": {**WELL_BEHAVED, "env": {"NEW": "1"}}})
        assert (await host.reload()).changed == ("box",)
        assert (await host.ready(timeout=30))["box"].pid not in (None, pid)


@pytest.mark.requirement("CFG-11", "CFG-9")
async def test_changed_settings_are_applied_too(desk: Desk):
    desk.user({"box": WELL_BEHAVED}, env={"MCP_TOOL_TIMEOUT": "60000"})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert host.configuration.settings["MCP_TOOL_TIMEOUT"] == 60_000
        desk.user({"box": WELL_BEHAVED}, env={"MCP_TOOL_TIMEOUT": "50000"})
        assert (await host.reload()).is_empty
        assert host.configuration.settings["MCP_TOOL_TIMEOUT"] == 50_000


@pytest.mark.requirement("CFG-11")
async def test_a_watched_file_is_reloaded_automatically_also_if_created_later(desk: Desk):
    async with Host.configured(watch=True, **OPTIONS) as host:
        listener = host.events()
        await asyncio.sleep(0.3)  # the watcher begins in its own time; an edit before that would be missed
        desk.user({"late": WELL_BEHAVED})
        await _changed(listener, lambda event: event.added == ("late",))
        await host.ready(timeout=30)
        assert statuses(host) == {"late": "connected"}
        desk.user({})
        await _changed(listener, lambda event: event.removed == ("late",))
        assert statuses(host) == {}


@pytest.mark.requirement("CFG-8", "CFG-11")
@pytest.mark.parametrize(
    "choice", [{}, {"enableAllProjectMcpServers": True}, {"enabledMcpjsonServers": ["new"]}]
)
async def test_an_edit_of_a_projects_file_alone_starts_nothing(
    desk: Desk, choice: dict[str, Any], tmp_path: Path
):
    canary = tmp_path / "canary"
    desk.user({"mine": WELL_BEHAVED}, **choice)
    desk.in_project({})
    async with Host.configured(watch=True, **OPTIONS) as host:
        await host.ready(timeout=30)
        listener = host.events()
        await asyncio.sleep(0.3)
        desk.in_project({"new": {"command": "touch", "args": [str(canary)]}})
        desk.local({"sly": {"command": "touch", "args": [str(canary)]}})
        await _changed(listener, lambda _: {"new", "sly"} <= host.servers.keys())
        assert statuses(host) == {"mine": "connected", "new": "pending", "sly": "pending"}
        assert "approv" in str(host.servers["new"].reason)
        assert not canary.exists()


@pytest.mark.requirement("CFG-8", "CFG-11")
async def test_approving_while_a_host_runs_starts_exactly_that(desk: Desk):
    entry = other_well_behaved()
    desk.in_project({"ours": entry, "theirs": WELL_BEHAVED})
    async with Host.configured(watch=True, **OPTIONS) as host:
        await host.ready(timeout=30)
        assert statuses(host) == {"ours": "pending", "theirs": "pending"}
        listener = host.events()
        await asyncio.sleep(0.3)
        approve(desk, desk.project_file, "ours", entry)
        await _changed(listener, lambda event: event.changed == ("ours",))
        await host.ready(timeout=30)
        assert statuses(host) == {"ours": "connected", "theirs": "pending"}


@pytest.mark.requirement("CFG-8")
async def test_a_name_approved_in_settings_is_bound_to_its_first_entry(desk: Desk):
    desk.user(enabledMcpjsonServers=["ours"])
    desk.in_project({"ours": WELL_BEHAVED})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert statuses(host) == {"ours": "connected"}
        await until(desk.approvals_file.exists)
    desk.in_project({"ours": other_well_behaved()})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert statuses(host) == {"ours": "pending"}
        assert "changed" in str(host.servers["ours"].reason)


@pytest.mark.requirement("CFG-10", "CFG-11")
async def test_a_file_broken_by_an_edit_is_reported_and_read_again_after_the_next_edit(desk: Desk):
    desk.user({"mine": WELL_BEHAVED})
    entry = other_well_behaved()
    desk.local({"here": entry})
    approve(desk, desk.local_file, "here", entry)
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        desk.local_file.write_text('{"mcpServers": {')
        await host.reload()
        assert statuses(host) == {"mine": "connected", "here": "connected"}, "the last good entries stay"
        assert any("settings.local.json, line 1" in problem for problem in host.configuration.problems)
        desk.local({"here": entry})
        await host.reload()
        await host.ready(timeout=30)
        assert statuses(host) == {"mine": "connected", "here": "connected"}


async def test_concurrent_reloads_run_one_after_another(desk: Desk):
    desk.user({"mine": WELL_BEHAVED})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        desk.user({"other": other_well_behaved()})
        plans = await asyncio.gather(*(host.reload() for _ in range(5)))
        assert [plan.is_empty for plan in plans] == [False, True, True, True, True]


async def test_a_call_to_a_server_removed_during_it_ends_with_a_named_error(desk: Desk):
    desk.user({"box": workshop("ours")})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        call = asyncio.create_task(host.call("mcp__box__hold", {}))
        await until(lambda: _has_begun(host))
        desk.user({})
        await host.reload()
        with pytest.raises(Exception) as caught:
            (await asyncio.wait_for(call, 10)).raise_for_error()
        assert getattr(caught.value, "code", None) in ("connection-lost", "not-connected")


async def _has_begun(host: Host) -> bool:
    return (await host.call("mcp__box__held", {})).text.startswith("1 begun")


# --- agents ---


@pytest.mark.requirement("CFG-13")
async def test_an_agent_shares_named_servers_and_has_its_own_defined_ones(desk: Desk):
    desk.user({"shared": WELL_BEHAVED, "hidden": other_well_behaved()})
    async with Host.configured(**OPTIONS) as host:
        pid = (await host.ready(timeout=30))["shared"].pid
        inline = {"own": {**WELL_BEHAVED, "args": [*WELL_BEHAVED["args"], "own"]}}
        async with host.for_agent(["shared", inline], required=["shared", "own"]) as part:
            views = await part.ready(timeout=30)
            assert {name: view.status for name, view in views.items()} == {
                "shared": "connected",
                "own": "connected",
            }
            assert views["shared"].pid == pid
            own_pid = views["own"].pid
            assert {tool.server for tool in part.tools()} == {"shared", "own"}
            for server in ("shared", "own"):
                tool = next(tool for tool in part.tools() if tool.server == server)
                assert (await part.call(tool.name, {"message": server})).text == server
            hidden = next(tool.name for tool in host.tools() if tool.server == "hidden")
            outcome = await part.call(hidden, {})
            assert outcome.error is not None
            assert outcome.error.code == "unknown-tool"
            assert "own" not in host.servers
        assert own_pid is not None
        assert not Path(f"/proc/{own_pid}").exists()
        assert statuses(host) == {"shared": "connected", "hidden": "connected"}


@pytest.mark.requirement("CFG-13")
async def test_two_agents_may_define_the_same_name(desk: Desk):
    async with (
        Host({}, **OPTIONS) as host,
        host.for_agent([{"box": WELL_BEHAVED}]) as one,
        host.for_agent([{"box": WELL_BEHAVED}]) as two,
    ):
        first, second = await asyncio.gather(one.ready(timeout=30), two.ready(timeout=30))
        assert first["box"].pid != second["box"].pid


@pytest.mark.requirement("CFG-13")
@pytest.mark.parametrize(
    ("servers", "required", "complaint"),
    [
        ([], ["gone"], "'gone', which is not configured"),
        (["gone"], [], "'gone', which is not configured"),
        (["off"], [], "'off', which is disabled"),
        (["ours"], [], "'ours', which is pending"),
        ([{"evil": WELL_BEHAVED}], ["evil"], "'evil', which is refused"),
        (["mine", {"mine": WELL_BEHAVED}], [], "names server 'mine' twice"),
    ],
)
async def test_a_missing_required_server_of_an_agent_is_an_error_before_its_start(
    desk: Desk, servers: list[Any], required: list[str], complaint: str
):
    desk.user(
        {"mine": WELL_BEHAVED, "off": WELL_BEHAVED},
        disabledMcpServers=["off"],
        deniedMcpServers=[{"serverName": "evil"}],
    )
    desk.managed(deniedMcpServers=[{"serverName": "evil"}])
    desk.in_project({"ours": WELL_BEHAVED})
    async with Host.configured(**OPTIONS) as host:
        with pytest.raises(ConfigError, match=complaint):
            host.for_agent(servers, required=required)


@pytest.mark.requirement("CFG-7", "CFG-13")
async def test_policy_applies_to_an_agents_own_servers(desk: Desk, tmp_path: Path):
    canary = tmp_path / "canary"
    desk.managed(deniedMcpServers=[{"serverCommand": ["touch", "*"]}])
    inline = {"evil": {"command": "touch", "args": [str(canary)]}}
    async with Host({}, **OPTIONS) as host, host.for_agent([inline]) as part:
        views = await part.ready(timeout=30)
        assert views["evil"].status == "disabled"
        assert not canary.exists()


async def _changed(listener: Any, wanted: Callable[[ConfigurationChanged], bool]) -> ConfigurationChanged:
    async with asyncio.timeout(20):
        async for event in listener:
            if isinstance(event, ConfigurationChanged) and wanted(event):
                return event
    raise AssertionError("the host was closed first")


def test_loading_does_not_change_the_process(desk: Desk):
    before = dict(os.environ)
    desk.user({"mine": WELL_BEHAVED}, env={"MCP_TIMEOUT": "1000", "OTHER": "x"})
    Host.configured()
    assert dict(os.environ) == before


# --- while something else goes on ---


@pytest.mark.requirement("CFG-11")
async def test_a_reload_whose_caller_is_cancelled_is_completed(desk: Desk):
    desk.user({"a": WELL_BEHAVED, "b": other_well_behaved()})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        desk.user({"b": other_well_behaved(), "c": WELL_BEHAVED})
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host.reload(), 0.001)
        assert (await host.reload()).is_empty
        await host.ready(timeout=30)
        assert statuses(host) == {"b": "connected", "c": "connected"}


async def test_a_server_ended_by_a_reload_is_ended_when_the_host_closes(desk: Desk):
    desk.user({"a": stdio_server("ignores_signals.py"), "b": other_well_behaved()})
    async with Host.configured(**OPTIONS) as host:
        pid = (await host.ready(timeout=30))["a"].pid
        desk.user({"b": other_well_behaved()})
        reload = asyncio.create_task(host.reload())
        await until(lambda: "a" not in host.servers)
        await host.close()
        assert not Path(f"/proc/{pid}").exists()
        await asyncio.gather(reload, return_exceptions=True)


@pytest.mark.requirement("CFG-13")
async def test_an_agents_own_servers_end_with_the_host_and_follow_policy_changes(desk: Desk):
    async with Host.configured(**OPTIONS) as host, host.for_agent([{"own": WELL_BEHAVED}]) as part:
        await part.ready(timeout=30)
        desk.managed(deniedMcpServers=[{"serverName": "own"}])
        await host.reload()
        assert part.servers["own"].status == "disabled"
        desk.managed()
        await host.reload()
        pid = (await part.ready(timeout=30))["own"].pid
        assert pid is not None
        await host.close()
        assert not Path(f"/proc/{pid}").exists()


async def test_a_reload_succeeds_without_a_writable_state_folder(desk: Desk):
    desk.user({"a": WELL_BEHAVED})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        in_use = desk.home / ".dragoman" / "state" / "in-use"
        await until(in_use.exists)
        for file in in_use.iterdir():
            file.unlink()
            file.mkdir()
        desk.user({"a": WELL_BEHAVED, "b": other_well_behaved()})
        assert (await host.reload()).added == ("b",)
        assert (await host.ready(timeout=30))["b"].status == "connected"

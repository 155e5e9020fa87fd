"""T89: No entry and no tool can avoid a hook by its name: hooks match tools by the same names as deny
rules."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config import approval
from dragoman.config.scopes import Sources
from dragoman.errors import PermissionRefused
from dragoman.hooks.declared import hook
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import servers, write
from tests.torture.test_t44_names import SERVERS, disguises, in_memory, lists, names_of

pytestmark = pytest.mark.requirement("PRM-5")

NAME = "mcp__home_drive__delete_file"
REFUSES = {"hooks": {"PreToolUse": [{"matcher": NAME, "hooks": [{"command": "echo no >&2; exit 2"}]}]}}
ANNOTATED = lists("delete_file")


def refuse(event: dict[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": "no"}


def allow(event: dict[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"permissionDecision": "allow"}}


async def refused(host: Host, name: str) -> bool:
    outcome = await host.call(name)
    return isinstance(outcome.error, PermissionRefused) and "refused by the hook" in outcome.text


# --- unapproved entries ---


def pending(work: Path) -> None:
    write(work / ".mcp.json", servers(**{"home.drive": lists("delete_file")}))


def rejected(work: Path) -> None:
    file = write(work / ".mcp.json", servers(**{"home.drive": lists("delete_file")}))
    entry = json.loads(file.read_text())["mcpServers"]["home.drive"]
    approval.remember(Sources.here().approvals_file, file, "home.drive", entry, "rejected")


def pending_and_switched_off(work: Path) -> None:
    pending(work)
    write(work / ".dragoman" / "settings.local.json", {"disabledMcpServers": ["home.drive"]})


def pending_and_shorter(work: Path) -> None:
    write(
        work / ".mcp.json",
        servers(home_drive__delete=lists("x"), home_drive__=lists("delete_file")),
    )


def broken(work: Path) -> None:
    write(work / ".mcp.json", servers(**{"home.drive": {"type": "nonsense"}}))


WAYS = [pending, rejected, pending_and_switched_off, pending_and_shorter, broken]


@pytest.mark.parametrize("whose", ["the person's", "the administrator's"])
@pytest.mark.parametrize("way", WAYS, ids=[way.__name__ for way in WAYS])
async def test_t89_an_unapproved_entry_renames_no_tool_and_disables_no_hook(home: Path, way: Any, whose: str):
    if whose == "the person's":
        projects.user(home, {**servers(home_drive=ANNOTATED), **REFUSES})
    else:
        projects.user(home, servers(home_drive=ANNOTATED))
        projects.managed(home, REFUSES)
    way(home / "work")
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready()
        assert [tool.name for tool in host.tools()] == [NAME]
        assert await refused(host, NAME)


async def test_t89_an_unapproved_entry_renames_no_prompt(home: Path):
    projects.user(home, servers(home_drive=stdio_server("library.py")))
    async with Host.configured() as host:
        await host.ready()
        before = [prompt.name for prompt in await host.prompts.list()]
    write(home / "work" / ".mcp.json", servers(**{"home.drive": stdio_server("library.py")}))
    async with Host.configured() as host:
        await host.ready()
        assert [prompt.name for prompt in await host.prompts.list()] == before
        assert all(name.startswith("mcp__home_drive__") for name in before)
        assert before


async def test_t89_an_entry_added_while_the_host_runs_renames_no_tool_for_agents(home: Path):
    projects.user(home, servers(home_drive=ANNOTATED))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready()
        async with host.for_agent([{"own": lists("t")}]) as agent:
            await agent.ready()
            write(home / "work" / ".mcp.json", servers(**{"home.drive": ANNOTATED, "o.wn": ANNOTATED}))
            await host.reload()
            assert [tool.name for tool in host.tools()] == [NAME]
            assert [tool.name for tool in agent.tools()] == ["mcp__own__t"]


# --- servers and tools with similar names, all of them approved ---


async def test_t89_a_server_with_two_similar_tool_names_does_not_avoid_a_hook():
    host = Host(
        {"home_drive": lists("delete_file", "delete.file", "DELETE_file", "read")},
        permission_mode="bypassPermissions",
        hooks=[hook(refuse, "PreToolUse", matcher=NAME)],
    )
    async with host:
        await host.ready()
        found = {tool.wire_name: await refused(host, tool.name) for tool in host.tools()}
    assert found == {"delete_file": True, "delete.file": True, "DELETE_file": True, "read": False}


@pytest.mark.parametrize(
    "matcher",
    [NAME, "mcp__home_drive__*", "mcp__home_drive__.*", "mcp__home_drive__(delete)_file", "other|" + NAME],
)
async def test_t89_servers_with_similar_names_do_not_avoid_a_hook(matcher: str):
    host = Host(
        {"home_drive": lists("delete_file"), "home.drive": lists("delete_file"), "b": lists("delete_file")},
        permission_mode="bypassPermissions",
        hooks=[hook(refuse, "PreToolUse", matcher=matcher)],
    )
    async with host:
        await host.ready()
        found = {tool.server: await refused(host, tool.name) for tool in host.tools()}
    assert found == {"home_drive": True, "home.drive": True, "b": False}


async def test_t89_a_hook_matches_a_tool_by_every_name_that_a_deny_rule_matches():
    names = await names_of(SERVERS)
    escaped: list[tuple[str, str, str]] = []
    for (server, wire_name), name in names.items():
        offered = in_memory([listed for owner, listed in names if owner == server])
        for kind, matcher in disguises(server, wire_name, name).items():
            is_expression = re.fullmatch(r"[\w.*|-]*", matcher, re.ASCII) is None
            if kind == "full width" or not matcher.isprintable() or (is_expression and "*" in matcher):
                continue  # `*` is a wildcard only where all characters are plain
            options: Any = {"permission_mode": "bypassPermissions"}
            hooks = [hook(refuse, "PreToolUse", matcher=matcher)]
            async with Host({server: offered}, hooks=hooks, **options) as host:
                await host.ready()
                (tool,) = (each for each in host.tools() if each.wire_name == wire_name)
                if not await refused(host, tool.name):
                    escaped.append((kind, matcher, tool.name))
    assert escaped == []


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest", "PostToolUse"])
async def test_t89_every_event_of_a_call_matches_the_tool_by_its_names(event: str):
    seen: list[tuple[str, str, str]] = []

    def see(given: dict[str, Any]) -> dict[str, Any] | None:
        seen.append((given["tool_name"], given["mcp_server_name"], given["mcp_tool_name"]))
        return None

    hooks = [hook(see, event, matcher="mcp__s__delete_file")]
    if event != "PermissionRequest":
        hooks.append(hook(allow, "PreToolUse"))
    async with Host({"s": lists("delete_file", "delete.file")}, hooks=hooks) as host:
        await host.ready()
        names = [(tool.name, "s", tool.wire_name) for tool in host.tools()]
        for tool in host.tools():
            await host.call(tool.name)
    assert seen == names


# --- limits of similar names ---


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_t89_an_allow_of_a_hook_applies_only_to_the_exact_name_of_the_tool(event: str):
    said: Any = (
        allow
        if event == "PreToolUse"
        else lambda given: {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}
    )
    hooks = [hook(said, event, matcher="mcp__s__read")]
    async with Host({"s": lists("read")}, hooks=hooks) as host:
        await host.ready()
        assert not (await host.call("mcp__s__read")).is_error
    async with Host({"S": lists("read", "Read", "re.ad")}, hooks=hooks) as host:
        await host.ready()
        for tool in host.tools():
            outcome = await host.call(tool.name)
            assert isinstance(outcome.error, PermissionRefused), tool.name

"""Tool names are unique, valid, stable over restarts, and refer to exactly one tool."""

import json
import re
from collections.abc import Iterable
from itertools import permutations
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from dragoman.testing import InMemoryServer
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("CAT-1")

LEGAL = re.compile(r"mcp__[a-zA-Z0-9_-]{1,59}")


def lists(*names: str) -> dict[str, Any]:
    return stdio_server(
        "lists_given_pages.py", json.dumps([{"tools": [{"name": n, "inputSchema": {}} for n in names]}])
    )


SERVERS = {
    "shop": lists("search", "a.b", "a_b", "a__b", "x" * 200, "x" * 201),
    "shop__a": lists("b", "search"),
    "other.shop": lists("search", "tool_search", "Bash"),
    "other_shop": lists("search", "mcp__shop__search"),
    "店": lists("検索", "搜索", "🔍", "search\u202e", "sea\u200brch"),
    "claude.ai  Shop!": lists("search"),
}


def in_memory(names: Iterable[str]) -> InMemoryServer:
    """The same tools without a process, for tests that open very many hosts."""
    server = InMemoryServer("s")
    for name in names:
        server.add_tool(name, lambda given, context: "")
    return server


async def names_of(servers: dict[str, Any]) -> dict[tuple[str, str], str]:
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready()
        for tool in host.tools():
            outcome = await host.call(tool.name, raw=True)
            assert outcome.text == tool.wire_name, "the name leads to its own tool"
        return {(tool.server, tool.wire_name): tool.name for tool in host.tools()}


async def test_t44_names_are_unique_valid_and_independent_of_the_order_of_servers():
    first = await names_of(SERVERS)

    assert len(first) == 19
    assert len(set(first.values())) == len(first)
    assert all(LEGAL.fullmatch(name) and len(name) <= 64 for name in first.values())
    assert first["shop", "search"] == "mcp__shop__search"
    assert first["claude.ai  Shop!", "search"] == "mcp__claude_ai_Shop__search"
    assert first["shop", "x" * 200].startswith("mcp__shop__xxxxxxxxxx")
    for order in list(permutations(SERVERS))[::300]:
        assert await names_of({name: SERVERS[name] for name in order}) == first


async def test_t44_a_name_does_not_change_when_a_similar_server_connects_later():
    alike = {name: SERVERS[name] for name in ("other.shop", "other_shop")}
    async with Host(alike) as host:
        await host.ready()
        await host.disable("other_shop", remember=False)
        before = {tool.wire_name: tool.name for tool in host.tools()}
        await host.enable("other_shop", remember=False)
        after = {tool.wire_name: tool.name for tool in host.tools() if tool.server == "other.shop"}

    assert before == after


async def test_t44_renamed_tools_are_reported():
    async with Host({"s": lists("a.b", "a_b", "c")}) as host:
        (view,) = (await host.ready()).values()

    assert len(view.problems) == 2
    assert all("another tool would have the same name" in problem for problem in view.problems)


async def test_t44_an_agents_own_server_similar_to_a_shared_one_has_other_names():
    async with Host({"git_hub": lists("t")}, permission_mode="bypassPermissions") as host:
        await host.ready()
        async with host.for_agent(["git_hub", {"git.hub": lists("t")}]) as agent:
            await agent.ready()
            names = [tool.name for tool in agent.tools()]

    assert len(set(names)) == 2
    assert "mcp__git_hub__t" in names


# --- rules against names ---


def disguises(server: str, wire_name: str, name: str) -> dict[str, str]:
    """Rules that refer to the tool, with every name that it may be known by."""
    return {
        "as listed": name,
        "as the server calls it": f"mcp__{server}__{wire_name}",
        "in capitals": f"MCP__{server}__{wire_name}".upper(),
        "full width": "".join(
            chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" and sign not in "*_" else sign for sign in name
        ),
        "its whole server": f"mcp__{server}",
        "every tool of it": f"mcp__{server}__*",
    }


@pytest.mark.requirement("PRM-1")
async def test_t44_a_deny_rule_with_any_of_its_names_applies_to_a_tool():
    names = await names_of(SERVERS)
    unharmed: list[tuple[str, str, str]] = []
    for (server, wire_name), name in names.items():
        offered = in_memory([listed for owner, listed in names if owner == server])
        for kind, rule in disguises(server, wire_name, name).items():
            if any(sign in rule for sign in "(@") or "\u202e" in rule or "\u200b" in rule:
                continue
            options: Any = {"permission_mode": "bypassPermissions", "rules": {"deny": [rule]}}
            async with Host({server: offered}, **options) as host:
                await host.ready()
                # In a host of its own, its server may give it another name; it is the same tool.
                listed = host.tools(include_denied=True)
                (tool,) = (each for each in listed if each.wire_name == wire_name)
                if not isinstance((await host.call(tool.name)).error, PermissionRefused):
                    unharmed.append((kind, rule, tool.name))
    assert unharmed == []


@pytest.mark.requirement("PRM-1")
async def test_t44_an_allow_rule_for_one_tool_allows_no_similar_tool():
    names = await names_of(SERVERS)
    for key in (("shop", "search"), ("shop", "a_b"), ("shop__a", "b"), ("other.shop", "search")):
        async with Host(SERVERS, rules={"allow": [names[key]]}) as host:
            await host.ready()
            made = [tool for tool in host.tools() if not (await host.call(tool.name)).is_error]
        assert [(tool.server, tool.wire_name) for tool in made] == [key]


@pytest.mark.requirement("PRM-1")
async def test_t44_an_allow_rule_for_a_server_does_not_allow_one_whose_name_begins_with_it():
    async with Host(SERVERS, rules={"allow": ["mcp__shop"]}) as host:
        await host.ready()
        made = {tool.server for tool in host.tools() if not (await host.call(tool.name)).is_error}
    assert made == {"shop"}

"""T230: a caller can neither find denied tools with `tool_search` nor call them with `call_tool`, in any
spelling; the answers are those for tools that do not exist."""

import json

import pytest

from dragoman.gateway.settings import CallerEntry, View
from dragoman.testing import InMemoryServer
from tests.gateway import ADA, BOB, Client, Json, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
CALLERS = {
    "ada": CallerEntry(token=ADA, servers=("open",)),
    "bob": CallerEntry(token=BOB, tools=("open__list", "vault__peek")),
}
QUERIES = [
    "vault",
    "canary",
    "drop everything",
    "select:vault__drop",
    "select:drop",
    "select:mcp__vault__drop",
    "select:open__hidden,hidden",
]
NAMES = ["vault__drop", "mcp__vault__drop", "drop", "VAULT__drop", "vault__drop ", "open__hidden"]


def servers() -> dict[str, InMemoryServer]:
    opened, vault = InMemoryServer("open"), InMemoryServer("vault")
    opened.add_tool("list", lambda *_: "listed", description="List the canary")
    opened.add_tool("hidden", lambda *_: "canary-result", description="A canary that a rule denies")
    vault.add_tool("drop", lambda *_: "canary-result", description="Drop everything: canary-description")
    return {"open": opened, "vault": vault}


@pytest.mark.parametrize("token", [ADA, BOB])
async def test_t230_tools_that_a_caller_may_not_use_are_neither_found_nor_called(token: str):
    views = {"": View(tool_search=True)}
    rules = {"deny": ["mcp__open__hidden"]}
    served = gateway_of(servers(), views=views, callers=CALLERS, rules=rules)
    async with served as running, Client(running.url, token) as client:
        listed = (await client.modern("tools/list")).last["result"]["tools"]
        assert [each["name"] for each in listed] == ["tool_search", "call_tool"]
        assert listed[0]["description"].endswith("What can be found:\nopen: open__list")
        for query in QUERIES:
            for server in (None, "vault", "open"):
                arguments: Json = {"query": query, **({} if server is None else {"server": server})}
                reply = await client.modern("tools/call", {"name": "tool_search", "arguments": arguments})
                text: str = reply.last["result"]["content"][0]["text"]
                found = [json.loads(line)["name"] for line in text.splitlines() if line.startswith("{")]
                assert set(found) <= {"open__list"}
                assert "canary-" not in text
                assert "Servers: open." in text or found
        for name in NAMES:
            params: Json = {"name": "call_tool", "arguments": {"name": name, "arguments": {}}}
            reply = await client.modern("tools/call", params)
            assert reply.last["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}


async def test_t230_a_tool_that_is_denied_later_is_not_found_any_more():
    served = gateway_of(servers(), views={"": View(tool_search=True)})
    async with served as running, Client(running.url) as client:
        params = {"name": "tool_search", "arguments": {"query": "select:vault__drop"}}
        assert "canary" in (await client.modern("tools/call", params)).last["result"]["content"][0]["text"]
        running.host.add_rule("deny", "mcp__vault")
        text = (await client.modern("tools/call", params)).last["result"]["content"][0]["text"]
        assert "canary" not in text
        call = {"name": "call_tool", "arguments": {"name": "vault__drop"}}
        assert "error" in (await client.modern("tools/call", call)).last


async def test_t230_a_failed_server_is_named_only_to_callers_that_may_use_it():
    broken = {"command": "/does/not/exist"}
    callers = {"ada": CallerEntry(token=ADA), "bob": CallerEntry(token=BOB, servers=("open",))}
    served = gateway_of({**servers(), "broken": broken}, views={"": View(tool_search=True)}, callers=callers)
    async with served as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        params = {"name": "tool_search", "arguments": {"query": "list"}}
        texts = [
            (await each.modern("tools/call", params)).last["result"]["content"][0]["text"]
            for each in (ada, bob)
        ]
        assert ["Not available: broken" in text for text in texts] == [True, False]

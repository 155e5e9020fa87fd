"""T830: a view fixes the arguments of a tool also under its name in rules (`mcp__tickets__search`), and what
it fixes for a tool that no server has is reported. Otherwise clients could choose such arguments.
"""

from typing import Any

import pytest

from dragoman.gateway.settings import View
from dragoman.testing import InMemoryServer
from tests.gateway import Client, Json, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")


def tickets(seen: list[Any]) -> InMemoryServer:
    def search(arguments: Json, context: object) -> str:
        seen.append(arguments)
        return "found"

    server = InMemoryServer("tickets")
    server.add_tool("search", search, inputSchema={"type": "object"})
    return server


def fixing(name: str, **view: Any) -> dict[str, View]:
    return {"support": View(arguments={name: {"project": "SUP"}}, **view)}


@pytest.mark.parametrize("plain_names", [False, True])
@pytest.mark.parametrize("rename", [{}, {"tickets__search": "find"}], ids=["as it is", "renamed"])
async def test_t830_a_client_cannot_choose_what_is_fixed(plain_names: bool, rename: dict[str, str]):
    seen: list[Any] = []
    views = fixing("mcp__tickets__search", rename=rename)
    async with gateway_of({"tickets": tickets(seen)}, views=views, plain_names=plain_names) as running:
        async with Client(f"{running.url}/support") as client:
            (tool,) = (await client.modern("tools/list")).last["result"]["tools"]
            await client.modern("tools/call", {"name": tool["name"], "arguments": {"project": "mine"}})
        assert running.gateway.unused_arguments() == []
    assert seen == [{"project": "SUP"}]


@pytest.mark.parametrize("name", ["tickets__serach", "Tickets__search", "tickets__*", "search", "find"])
async def test_t830_what_is_fixed_for_no_tool_is_reported(name: str):
    async with gateway_of({"tickets": tickets([])}, views=fixing(name)) as running:
        assert running.gateway.unused_arguments() == [
            f"view 'support' fixes arguments of {name!r}, but no server has this tool; they have no effect"
        ]


async def test_t830_tools_of_servers_with_a_sign_in_of_each_caller_are_not_known():
    servers = {"tickets": tickets([]), "tracker": {"url": "http://127.0.0.1:9/mcp"}}
    async with gateway_of(servers, views=fixing("tracker__find"), own=["tracker"]) as running:
        assert running.gateway.unused_arguments() == []

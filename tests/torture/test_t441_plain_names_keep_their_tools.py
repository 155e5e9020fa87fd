"""T441: a plain name of the gateway that belonged to the tool or prompt of one server is never given to
another server."""

from typing import Any

import pytest

from dragoman.gateway.settings import View
from dragoman.testing import InMemoryServer
from tests.gateway import Client, Json, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")


def server_with(name: str, tools: list[str], seen: list[Any]) -> InMemoryServer:
    def answer(arguments: Json, context: object) -> str:
        seen.append(arguments)
        return name

    server = InMemoryServer(name)
    for tool in tools:
        server.add_tool(tool, answer)
        server.contents.add_prompt(tool, lambda _: name, [], {})
    return server


async def names(client: Client, kind: str) -> list[str]:
    listed = (await client.modern(f"{kind}/list")).last["result"][kind]
    return [each["name"] for each in listed]


@pytest.mark.parametrize("kind", ["tools", "prompts"])
async def test_t441_a_server_does_not_inherit_the_name_of_a_removed_server(kind: str):
    seen: list[Any] = []
    servers = {"files": server_with("files", ["save"], []), "late": server_with("late", ["save"], seen)}
    async with gateway_of(servers, plain_names=True) as running, Client(running.url) as client:
        await running.host.disable("late", remember=False)
        assert await names(client, kind) == ["save"]
        await running.host.enable("late", remember=False)
        assert await names(client, kind) == ["files__save", "late__save"]
        await running.host.disable("files", remember=False)
        assert await names(client, kind) == ["late__save"]
        method = "tools/call" if kind == "tools" else "prompts/get"
        reply = await client.modern(method, {"name": "save", "arguments": {}})
        assert reply.last["error"]["message"].endswith(": save")
        await running.host.enable("files", remember=False)
        await running.host.disable("late", remember=False)
        assert await names(client, kind) == ["save"]
    assert seen == []


@pytest.mark.parametrize("kind", ["tools", "prompts"])
async def test_t441_a_name_that_was_ambiguous_from_the_beginning_is_not_inherited(kind: str):
    servers = {"files": server_with("files", ["save"], []), "mail": server_with("mail", ["save"], [])}
    async with gateway_of(servers, plain_names=True) as running, Client(running.url) as client:
        assert await names(client, kind) == ["files__save", "mail__save"]
        await running.host.disable("files", remember=False)
        assert await names(client, kind) == ["mail__save"]


@pytest.mark.parametrize("kind", ["tools", "prompts"])
async def test_t441_a_qualified_name_of_a_removed_server_is_not_inherited(kind: str):
    servers = {"files": server_with("files", ["save"], []), "mail": server_with("mail", ["files__save"], [])}
    async with gateway_of(servers, plain_names=True) as running, Client(running.url) as client:
        await running.host.disable("files", remember=False)
        assert await names(client, kind) == ["mail__files__save"]


async def test_t441_a_qualified_name_in_a_view_refers_to_the_tool_of_one_server():
    seen: list[Any] = []
    servers = {
        "tickets": server_with("tickets", ["search"], []),
        "evil": server_with("evil", ["search"], seen),
    }
    view = View(rename={"tickets__search": "find"}, arguments={"find": {"project": "SUP"}})
    served = gateway_of(servers, plain_names=True, views={"desk": view})
    async with served as running, Client(f"{running.url}/desk") as client:
        await running.host.disable("evil", remember=False)
        assert await names(client, "tools") == ["find"]
        await running.host.enable("evil", remember=False)
        assert await names(client, "tools") == ["find", "evil__search"]
        await running.host.disable("tickets", remember=False)
        assert await names(client, "tools") == ["evil__search"]
        reply = await client.modern("tools/call", {"name": "find", "arguments": {}})
        assert reply.last["error"]["message"] == "Unknown tool: find"
        reply = await client.modern("tools/call", {"name": "evil__search", "arguments": {}})
        assert reply.last["result"]["content"] == [{"type": "text", "text": "evil"}]
    assert seen == [{}]

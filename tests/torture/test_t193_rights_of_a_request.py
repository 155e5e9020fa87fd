"""T193: the rights of a gateway request are determined by its own token, path and headers."""

from collections.abc import Collection
from typing import Any

import pytest

from dragoman.gateway.access import KnownCaller
from dragoman.gateway.settings import EVERYTHING, CallerEntry, Rights, View
from dragoman.interaction import Caller
from dragoman.testing import InMemoryServer
from tests.gateway import ADA, BOB, Client, Json, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")

NARROW = Rights(tools=("office__ledger",))


async def by_scope(authorization: Collection[str]) -> KnownCaller:
    """The same person, with an access token for all tools or for one tool."""
    is_wide = next(iter(authorization)).endswith(ADA)
    return KnownCaller(Caller("ada@issuer"), (EVERYTHING,) if is_wide else (NARROW,))


async def test_t193_a_request_in_a_session_has_the_rights_of_its_own_token():
    async with (
        gateway_of({"office": Office()}, identify=by_scope) as running,
        Client(running.url, ADA) as wide,
        Client(running.url, BOB) as narrow,
    ):
        await wide.initialize()
        session = {"Mcp-Session-Id": wide.headers["Mcp-Session-Id"]}
        asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}
        assert (await narrow.post(asked, **session)).status == 404
        assert (await wide.post(asked)).status == 200


async def test_t193_a_request_beside_an_sse_stream_has_the_rights_of_its_own_token():
    async with gateway_of({"office": Office()}, identify=by_scope) as running, Client(running.url) as wide:
        base = f"http://127.0.0.1:{running.port}"
        async with wide.http.get(f"{base}/sse", headers=wide.headers) as stream:
            lines = [line async for line in _until_endpoint(stream.content)]
            endpoint = base + lines[-1][6:].decode().strip()
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            async with Client(endpoint, BOB) as narrow:
                assert (await narrow.post(ping)).status == 404
            async with Client(endpoint) as own:
                assert (await own.post(ping)).status == 202


async def _until_endpoint(content: Any) -> Any:
    async for line in content:
        yield line
        if line.startswith(b"data: "):
            return


def server_with_instructions(name: str) -> InMemoryServer:
    server = InMemoryServer(name, instructions=f"the secret way of {name}")
    server.add_tool("look", lambda arguments, context: "seen")
    return server


async def instructions(client: Client, era: str) -> str | None:
    if era == "legacy":
        return (await client.initialize()).last["result"].get("instructions")
    return (await client.modern("server/discover")).last["result"].get("instructions")


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_t193_a_caller_receives_the_instructions_of_permitted_servers_only(era: str):
    callers = {
        "ada": CallerEntry(token=ADA, servers=("one",)),
        "bob": CallerEntry(token=BOB, tools=("two__look",)),
    }
    views = {"second": View(servers=("two",)), "none": View(tools=("three__look",))}
    servers = {"one": server_with_instructions("one"), "two": server_with_instructions("two")}
    async with gateway_of(servers, callers=callers, views=views) as running:
        expected = {
            (ADA, ""): "## one\nthe secret way of one",
            (ADA, "/second"): None,
            (BOB, ""): "## two\nthe secret way of two",
            (BOB, "/second"): "## two\nthe secret way of two",
            (BOB, "/none"): None,
        }
        found: dict[tuple[str, str], str | None] = {}
        for token, path in expected:
            async with Client(running.url + path, token) as client:
                found[token, path] = await instructions(client, era)
        assert found == expected


CALL: Json = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "office__ledger"}}
CONTRADICTING = {
    "another name": (CALL, {"Mcp-Name": "office__count"}),
    "another method": (CALL, {"Mcp-Method": "tools/list"}),
    "in a batch": ([{"jsonrpc": "2.0", "id": 4, "method": "ping"}, CALL], {"Mcp-Method": "ping"}),
}


@pytest.mark.requirement("GWY-1")
@pytest.mark.parametrize(("message", "headers"), CONTRADICTING.values(), ids=CONTRADICTING.keys())
async def test_t193_headers_that_contradict_the_body_are_refused_in_a_session(
    message: Any, headers: dict[str, str]
):
    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        await client.initialize(revision="2025-03-26")
        reply = await client.post(message, **headers)
        assert (reply.status, reply.last["error"]["code"]) == (400, -32020)
        right = {"Mcp-Method": "tools/call", "Mcp-Name": "office__ledger"}
        assert "result" in (await client.post(CALL, **right)).last


async def test_t193_a_request_without_an_id_is_not_executed():
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await client.initialize()
        hold = {"name": "office__hold", "arguments": {}}
        sent = await client.post({"jsonrpc": "2.0", "method": "tools/call", "params": hold})
        assert sent.status == 202
        await client.legacy("tools/call", {"name": "office__ledger", "arguments": {}})
        assert [line for line in office.ledger if "hold" in line] == []


async def test_t193_an_answer_to_a_permission_question_that_was_not_asked_is_ignored():
    office = Office()
    yes = {"action": "accept", "content": {"answer": "allow while the gateway runs"}}
    params: Json = {"name": "office__ledger", "arguments": {}, "inputResponses": {"": yes, "1": yes}}
    served = gateway_of({"office": office}, permission_mode="default")
    async with served as running, Client(running.url) as client:
        reply = await client.modern("tools/call", params, capabilities={"elicitation": {"form": {}}})
        assert list(reply.last["result"]["inputRequests"]) == ["1"]


def searching(name: str, seen: list[Any]) -> InMemoryServer:
    def search(arguments: Json, context: object) -> str:
        seen.append(arguments)
        return "found"

    properties = {"project": {"type": "string"}, "text": {"type": "string"}}
    server = InMemoryServer(name)
    server.add_tool("search", search, properties=properties)
    return server


@pytest.mark.parametrize("renamed", [False, True])
async def test_t193_a_tool_of_the_same_name_on_another_server_does_not_unlock_fixed_arguments_of_a_view(
    renamed: bool,
):
    seen: list[Any] = []
    servers = {"tickets": searching("tickets", seen), "evil": searching("evil", [])}
    name = "find" if renamed else "search"
    view = View(rename={"search": "find"} if renamed else {}, arguments={name: {"project": "SUP"}})
    served = gateway_of(servers, plain_names=True, views={"support": view})
    async with served as running, Client(f"{running.url}/support") as client:
        listed = (await client.modern("tools/list")).last["result"]["tools"]
        for tool in listed:
            assert list(tool["inputSchema"]["properties"]) == ["text"]
            arguments = {"project": "HR", "text": "x"}
            await client.modern("tools/call", {"name": tool["name"], "arguments": arguments})
    assert seen == [{"project": "SUP", "text": "x"}]

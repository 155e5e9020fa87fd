"""The gateway in `tool_search` mode, and callers that may use views only."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.catalog.tokens import estimate
from dragoman.errors import ConfigError
from dragoman.gateway.settings import CallerEntry, View, searched
from dragoman.gateway.settings_file import read_settings
from dragoman.testing import InMemoryServer
from dragoman.testing.server import ToolContext
from tests.data.catalogue import make
from tests.gateway import ADA, BOB, LEGACY, MODERN, Client, Json, gateway_of
from tests.servers.office import Office

SEARCHED = searched({})
FORMS = {"elicitation": {"form": {}}}


def names_in(message: Json) -> list[str]:
    return [tool["name"] for tool in message["result"]["tools"]]


def text_of(message: Json) -> str:
    return message["result"]["content"][0]["text"]


def found_in(message: Json) -> list[Json]:
    return [json.loads(line) for line in text_of(message).splitlines() if line.startswith("{")]


async def search(client: Client, query: str, **more: Any) -> Json:
    arguments = {"query": query, **more}
    return (await client.modern("tools/call", {"name": "tool_search", "arguments": arguments})).last


async def call(client: Client, name: str, arguments: Json | None = None, **options: Any) -> Json:
    params = {"name": "call_tool", "arguments": {"name": name, "arguments": arguments or {}}}
    return (await client.modern("tools/call", params, **options)).last


def desk() -> InMemoryServer:
    server = InMemoryServer("desk")
    text = {"text": {"type": "string"}, "project": {"type": "string"}}
    server.add_tool(
        "search", lambda given, _: json.dumps(given), description="Find a ticket", properties=text
    )
    server.add_tool("close", lambda *_: "closed", description="Close a ticket")
    server.add_tool("now", lambda *_: "noon", _meta={"anthropic/alwaysLoad": True})
    return server


@pytest.mark.requirement("GWY-1")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_client_finds_a_tool_and_calls_it(revision: str):
    async with gateway_of({"desk": desk()}, views=SEARCHED) as running, Client(running.url) as client:
        if revision == LEGACY:
            await client.initialize()
        ask = client.legacy if revision == LEGACY else client.modern
        listed = (await ask("tools/list")).last
        assert names_in(listed) == ["tool_search", "call_tool", "desk__now"]
        assert "desk: desk__close, desk__now, desk__search" in listed["result"]["tools"][0]["description"]
        query = {"name": "tool_search", "arguments": {"query": "find ticket", "max_results": 1}}
        assert found_in((await ask("tools/call", query)).last) == [
            {
                "name": "desk__search",
                "description": "Find a ticket",
                "input_schema": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}, "project": {"type": "string"}},
                    "required": [],
                },
            }
        ]
        params = {"name": "call_tool", "arguments": {"name": "desk__search", "arguments": {"text": "x"}}}
        assert text_of((await ask("tools/call", params)).last) == '{"text": "x"}'
        direct = await ask("tools/call", {"name": "desk__close", "arguments": {}})
        assert text_of(direct.last) == "closed"


async def test_a_found_tool_is_called_with_progress_and_questions_like_a_listed_one():
    office = Office()
    async with gateway_of({"office": office}, views=SEARCHED) as running, Client(running.url) as client:
        params: Json = {
            "name": "call_tool",
            "arguments": {"name": "office__count", "arguments": {"to": 3}},
        }
        counted = await client.modern("tools/call", params, meta={"progressToken": 7})
        progress = [m["params"] for m in counted.messages if m.get("method") == "notifications/progress"]
        assert [each["progress"] for each in progress] == [1, 2, 3]
        assert {each["progressToken"] for each in progress} == {7}
        params = {"name": "call_tool", "arguments": {"name": "office__ask"}}
        answers: list[Json] = []
        for name in ("Ada", "Bob"):
            asked = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
            (key,) = asked["inputRequests"]
            answers.append({"action": "accept", "content": {"name": name}})
            params = {
                **params,
                "requestState": asked["requestState"],
                "inputResponses": {key: answers[-1]},
            }
        done = (await client.modern("tools/call", params, capabilities=FORMS)).last
        assert [each["content"]["name"] for each in json.loads(text_of(done))] == ["Ada", "Bob"]


async def test_a_view_gives_found_tools_its_names_and_fixed_arguments():
    view = View(
        rename={"desk__search": "find_ticket"},
        arguments={"find_ticket": {"project": "SUP"}},
        tool_search=True,
    )
    async with gateway_of({"desk": desk()}, views={"support": view}) as running:  # noqa: SIM117
        async with Client(f"{running.url}/support") as client, Client(running.url) as whole:
            (found,) = found_in(await search(client, "select:find_ticket"))
            assert list(found["input_schema"]["properties"]) == ["text"]
            assert found_in(await search(client, "select:search,desk__search")) == []
            made = await call(client, "find_ticket", {"text": "x", "project": "MINE"})
            assert json.loads(text_of(made)) == {"text": "x", "project": "SUP"}
            assert (await call(client, "desk__search"))["error"]["message"] == "Unknown tool: desk__search"
            assert names_in((await whole.modern("tools/list")).last) == [
                "desk__close",
                "desk__now",
                "desk__search",
            ]
            assert (await search(whole, "ticket"))["error"]["message"] == "Unknown tool: tool_search"


async def test_calls_are_counted_and_the_audit_log_names_the_tool_itself(home: Path):
    callers = {"ada": CallerEntry(token=ADA, calls_per_minute=2)}
    from dragoman import paths
    from dragoman.calls import audit

    served = gateway_of({"desk": desk()}, views=SEARCHED, callers=callers, audit=True)
    async with served as running, Client(running.url) as client:
        await search(client, "ticket")
        assert text_of(await call(client, "desk__close")) == "closed"
        assert (await call(client, "desk__close"))["error"]["code"] == -32029
        assert (await search(client, "ticket"))["error"]["code"] == -32029
    entries = list(audit.read(paths.logs_dir()))
    assert [(each["caller"], each["tool"]) for each in entries] == [("ada", "mcp__desk__close")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "arguments: Object missing required field `name`"),
        ({"name": 1}, "arguments: Expected `str`, got `int` - at `$.name`"),
        (
            {"name": "desk__close", "arguments": "{}"},
            "arguments: Expected `object`, got `str` - at `$.arguments`",
        ),
        ({"name": "call_tool", "arguments": {"name": "desk__close"}}, "Unknown tool: call_tool"),
        ({"name": "tool_search", "arguments": {"query": "x"}}, "Unknown tool: tool_search"),
        ({"name": "mcp__desk__close"}, "Unknown tool: mcp__desk__close"),
    ],
)
async def test_invalid_arguments_of_call_tool_are_named(arguments: Json, message: str):
    async with gateway_of({"desk": desk()}, views=SEARCHED) as running, Client(running.url) as client:
        reply = await client.modern("tools/call", {"name": "call_tool", "arguments": arguments})
        assert reply.last["error"] == {"code": -32602, "message": message}


async def test_a_tool_of_a_server_does_not_take_the_name_of_the_search():
    server = InMemoryServer("sly")
    server.add_tool("tool_search", lambda *_: "sly", _meta={"anthropic/alwaysLoad": True})
    server.add_tool("call_tool", lambda *_: "sly")
    served = gateway_of({"sly": server}, views=SEARCHED, plain_names=True)
    async with served as running, Client(running.url) as client:
        assert names_in((await client.modern("tools/list")).last) == [
            "tool_search",
            "call_tool",
            "sly__tool_search",
        ]
        assert text_of(await call(client, "sly__call_tool")) == "sly"


async def test_a_schema_that_is_too_long_beside_others_is_shown_alone():
    server = InMemoryServer("big")
    long = {f"option_{number}": {"type": "string", "description": "x" * 100} for number in range(300)}
    server.add_tool("first", lambda *_: "", description="a ticket", properties=long)
    server.add_tool("second", lambda *_: "", description="a ticket")
    async with gateway_of({"big": server}, views=SEARCHED) as running, Client(running.url) as client:
        both = {each["name"]: each for each in found_in(await search(client, "ticket"))}
        assert both["big__first"]["input_schema"] == (
            "too long to be shown beside others; search for select:big__first alone"
        )
        (alone,) = found_in(await search(client, "select:big__first"))
        assert len(alone["input_schema"]["properties"]) == 300


@pytest.mark.requirement("CAT-7")
async def test_the_search_tools_take_a_hundredth_of_the_tokens_of_a_large_catalogue():
    servers: dict[str, InMemoryServer] = {}

    async def answer(arguments: Json, context: ToolContext) -> str:
        return "done"

    for server, definition in make.definitions():
        own = servers.setdefault(server, InMemoryServer(server))
        own._tools[definition["name"]] = (definition, answer)  # pyright: ignore[reportPrivateUsage]
    views = {"searched": View(tool_search=True)}
    async with gateway_of(servers, views=views) as running:  # noqa: SIM117
        async with Client(running.url) as whole, Client(f"{running.url}/searched") as client:
            lists = [
                estimate(json.dumps((await each.modern("tools/list")).last["result"]["tools"]))
                for each in (whole, client)
            ]
            found = found_in(await search(client, "open a pull request"))
            assert len(found) == 5
            assert any("pull_request" in each["name"] for each in found)
    assert len(make.definitions()) > 2000
    print("tokens of the list: whole, searched, one search:", *lists, estimate(json.dumps(found)))
    assert lists[1] < lists[0] / 100


# Callers that may use views only.

CALLERS = {"ada": CallerEntry(token=ADA), "bob": CallerEntry(token=BOB, views=("support",))}


@pytest.mark.requirement("GWY-3")
async def test_a_caller_of_views_uses_their_paths_only():
    views = {"support": View(arguments={"desk__search": {"project": "SUP"}}), "other": View()}
    async with gateway_of({"desk": desk()}, callers=CALLERS, views=views) as running:
        base = running.url.removesuffix("/mcp")
        async with Client(f"{running.url}/support", BOB) as bob:
            made = await bob.modern("tools/call", {"name": "desk__search", "arguments": {"project": "X"}})
            assert json.loads(text_of(made.last)) == {"project": "SUP"}
            await bob.initialize()
            assert "result" in (await bob.legacy("tools/list")).last
            session = bob.headers["Mcp-Session-Id"]
        refused = {
            "error": "this caller may not use this path, and another sign-in does not change that; "
            "use the path of a view: /mcp/NAME"
        }
        for path in ("/mcp", "/mcp/other"):
            async with Client(base + path, BOB) as bob:
                reply = await bob.modern("tools/list")
                assert (reply.status, reply.last) == (403, refused)
                old = await bob.post(
                    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **{"Mcp-Session-Id": session}
                )
                assert (old.status, old.last) == (403, refused)
        for path in ("/sse", "/messages?session=x", "/ws", "/metrics"):
            headers = {"Authorization": f"Bearer {BOB}"}
            async with aiohttp.ClientSession() as http, http.get(base + path, headers=headers) as response:
                assert (path, response.status) == (path, 403)
        async with Client(running.url) as ada:
            assert "result" in (await ada.modern("tools/list")).last


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"callers": {"bob": {"token": BOB, "views": ["suport"]}}},
            "caller 'bob' names the view 'suport', which does not exist",
        ),
        (
            {
                "oauth": {
                    "issuer": "https://a.example",
                    "audience": "https://b.example",
                    "scopes": {"s": {"views": ["x"]}},
                }
            },
            "scope 's' names the view 'x', which does not exist",
        ),
        (
            {"views": {"v": {"rename": {"a__b": "call_tool"}}}},
            "the view 'v' gives a tool the name 'call_tool', which the gateway uses itself",
        ),
    ],
)
def test_settings_that_name_no_view_are_refused(tmp_path: Path, more: Json, problem: str):
    path = tmp_path / "gateway.json"
    path.write_text(json.dumps({"callers": {"ada": {"token": ADA}}, **more}))
    path.chmod(0o600)
    with pytest.raises(ConfigError) as raised:
        read_settings(path)
    assert str(raised.value) == f"{path}: {problem}"

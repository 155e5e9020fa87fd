"""T98: A server that returns the secrets of its own entry, in any message and any encoding."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from dragoman import DragomanError, Host
from dragoman.interaction import FormAnswer, FormElicitation, PermissionAnswer
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.servers.web import Streamable, streamable
from tests.servers.web.given_answers import error, replace_results
from tests.torture.conftest import MODERN

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

SECRET = "s3cr3t-0f-th1s-entry"
PASSWORD = "hunter2hunter2"
HEADERS = {
    "Authorization": f"Bearer {SECRET}",
    "X-Login": f"Basic {base64.b64encode(f'me:{PASSWORD}'.encode()).decode()}",
}
SPELLINGS = {
    "plain": SECRET,
    "hexadecimal": SECRET.encode().hex(),
    "in capitals": SECRET.encode().hex().upper(),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 behind a letter": base64.b64encode(f"x{SECRET}z".encode()).decode(),
    "base64 behind two": base64.b64encode(f"xy{SECRET}z".encode()).decode(),
    "the password of a login": PASSWORD,
    "the login": f"me:{PASSWORD}",
}
SECRET_IN_ALL_SPELLINGS = " | ".join(SPELLINGS.values())


def leaks(value: Any) -> list[str]:
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    # Around a secret in base64, characters that depend on adjacent bytes may be left.
    return [name for name, spelling in SPELLINGS.items() if (spelling[4:-4] or spelling) in text]


class Person:
    def __init__(self) -> None:
        self.shown: list[Any] = []

    async def allow(self, question: Any) -> PermissionAnswer:
        self.shown.append(question)
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.shown.append(question)
        return FormAnswer("accept", {})


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def add_secret_to(server: Streamable) -> None:
    """Adds tools, prompts and resources to the server; the secret is in all of them."""
    server.in_memory._instructions = f"Use {SECRET_IN_ALL_SPELLINGS} with care."
    schema = {
        "type": "object",
        "description": SECRET_IN_ALL_SPELLINGS,
        "properties": {
            "a": {
                "type": "string",
                "description": SECRET_IN_ALL_SPELLINGS,
                "enum": [SECRET_IN_ALL_SPELLINGS],
                "default": SECRET_IN_ALL_SPELLINGS,
            }
        },
    }
    server.in_memory.add_tool(
        "told",
        lambda _a, _c: {
            "content": [text(SECRET_IN_ALL_SPELLINGS)],
            "structuredContent": {"x": [SECRET_IN_ALL_SPELLINGS], SECRET_IN_ALL_SPELLINGS: 1},
        },
        description=f"Tells {SECRET_IN_ALL_SPELLINGS}.",
        title=SECRET_IN_ALL_SPELLINGS,
        inputSchema=schema,
        outputSchema={"type": "object", "description": SECRET_IN_ALL_SPELLINGS},
        annotations={"title": SECRET_IN_ALL_SPELLINGS},
        _meta={"anthropic/searchHint": SECRET_IN_ALL_SPELLINGS},
    )
    server.in_memory.add_tool(f"named_{SECRET}", lambda _a, _c: "x")
    halves = [text(f"it is {SECRET[:9]}"), text(SECRET[9:14]), text(f"{SECRET[14:]}, so")]
    server.in_memory.add_tool("split", lambda _a, _c: {"content": halves})
    contents = server.in_memory.contents
    contents.add_resource(
        "note://a",
        SECRET_IN_ALL_SPELLINGS,
        description=SECRET_IN_ALL_SPELLINGS,
        title=SECRET_IN_ALL_SPELLINGS,
    )
    contents.add_resource(f"note://{SECRET}", "x", name="b")
    contents.add_template(
        "note://{name}",
        lambda _: SECRET_IN_ALL_SPELLINGS,
        {"name": [SECRET, "fine"]},
        description=SECRET_IN_ALL_SPELLINGS,
    )
    argument = {"name": "who", "description": SECRET_IN_ALL_SPELLINGS}
    contents.add_prompt(
        "hello",
        lambda _: SECRET_IN_ALL_SPELLINGS,
        [argument],
        {"who": [SECRET, "me"]},
        description=SECRET_IN_ALL_SPELLINGS,
    )


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[tuple[Host, Streamable]]:
    async with streamable(revisions=(MODERN,)) as server:
        add_secret_to(server)
        entry = {"type": "http", "url": server.url, "headers": HEADERS}
        async with Host({"x": entry}, permission_mode="bypassPermissions", **options) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected", host.servers["x"].reason
            yield host, server


async def test_t98_no_list_of_a_server_contains_its_secrets():
    async with connected() as (host, _):
        view = host.servers["x"]
        assert leaks(view) == []
        assert any("holds a secret" in problem for problem in view.problems), "the tool whose name is one"
        tools = {tool.wire_name: tool for tool in host.tools()}
        assert f"named_{SECRET}" not in tools
        told = tools["told"]
        for seen in (told.title, told.description, told.search_hint, told.model_schema, told.input_schema):
            assert leaks(seen) == []
        assert leaks(told.as_listed()) == []
        box = host.toolbox()
        assert leaks((await box.call("tool_search", {"query": "told"})).text) == []
        resources, templates = await host.resources.list(), await host.resources.templates()
        prompts = await host.prompts.list()
        assert leaks([resources, templates, prompts]) == []
        assert [each.uri for each in resources] == ["note://a"], "an address that cannot be shown is left out"
        assert resources.problems == (
            "x: number 2 of the resources is left out: its address holds a secret of the server's entry",
        )
        assert [each.wire_name for each in prompts] == ["hello"]
        assert leaks(dict(host.instructions())) == []
        assert leaks((await box.call("list_mcp_resources")).text) == []


async def test_t98_no_answer_of_a_server_contains_its_secrets():
    async with connected() as (host, _):
        for raw in (False, True):
            outcome = await host.call("mcp__x__told", {"a": "[secret]"}, raw=raw)
            assert leaks(outcome.text) == []
            assert leaks(outcome.structured) == []
        read = await host.resources.read("x", "note://a")
        assert leaks(read) == []
        box = host.toolbox()
        assert leaks((await box.call("read_mcp_resource", {"server": "x", "uri": "note://a"})).text) == []
        assert leaks(await host.prompts.get("mcp__x__hello", {"who": "me"})) == []
        assert (await host.prompts.complete("mcp__x__hello", "who")).values == ("me",)
        assert (await host.resources.complete("x", "note://{name}", "name")).values == ("fine",)


async def test_t98_a_secret_split_over_several_blocks_is_redacted():
    async with connected() as (host, _):
        for raw in (False, True):
            outcome = await host.call("mcp__x__split", raw=raw)
            assert [block.as_text() for block in outcome.content] == ["it is [secret]", "", ", so"]


async def test_t98_a_secret_split_over_several_parts_or_messages_is_redacted():
    parts = [{"uri": "note://a", "text": f"it is {SECRET[:9]}"}, {"uri": "note://b", "text": SECRET[9:]}]
    messages = [{"role": "user", "content": text(each["text"])} for each in parts]
    async with connected() as (host, server):
        replace_results(
            server,
            {
                "resources/read": lambda _: {"resultType": "complete", "contents": parts},
                "prompts/get": lambda _: {"resultType": "complete", "messages": messages},
            },
        )
        read = await host.resources.read("x", "note://a")
        assert [part.text for part in read.contents] == ["it is [secret]", ""]
        said = await host.prompts.get("mcp__x__hello", {})
        assert [message.content.as_text() for message in said.messages] == ["it is [secret]", ""]


async def test_t98_errors_and_questions_contain_no_secrets():
    person = Person()
    form = {
        "message": SECRET_IN_ALL_SPELLINGS,
        "requestedSchema": {"type": "object", "properties": {"a": {"title": SECRET_IN_ALL_SPELLINGS}}},
    }
    asked = {"k": {"method": "elicitation/create", "params": form}}
    async with connected(interaction=person) as (host, server):
        refused = error(-32603, SECRET_IN_ALL_SPELLINGS, {"more": SECRET_IN_ALL_SPELLINGS})
        replace_results(server, {method: lambda _: refused for method in ("resources/read", "prompts/get")})
        for request in (host.resources.read("x", "note://a"), host.prompts.get("mcp__x__hello", {})):
            with pytest.raises(DragomanError) as caught:
                await request
            assert leaks(str(caught.value)) == []
            assert leaks(getattr(caught.value, "remote_data", None)) == []
        rounds = {"resultType": "input_required", "inputRequests": asked, "requestState": "s"}
        done = {"resultType": "complete", "content": []}
        replace_results(server, {"tools/call": lambda params: done if "inputResponses" in params else rounds})
        await host.call("mcp__x__split")
    assert len(person.shown) == 1
    assert leaks(person.shown) == []


# --- credentials inside values ---

ENTRIES: dict[str, dict[str, Any]] = {
    "a database URL": {"env": {"DATABASE_URL": f"postgres://me:{PASSWORD}@db.example/x?sslmode=require"}},
    "a URL with a user alone": {"env": {"REDIS": f"redis://:{PASSWORD}@h:6379/0"}},
    "a connection string": {"env": {"DSN": f"host=h user=me password={PASSWORD} dbname=x"}},
    "a connection string with semicolons": {"env": {"CONN": f"Server=h;Uid=me;Pwd={PASSWORD};"}},
    "a query": {"env": {"ENDPOINT": f"https://h.example/x?sig={PASSWORD}"}},
    "headers as JSON": {"env": {"OPENAPI_MCP_HEADERS": json.dumps({"Authorization": f"Bearer {PASSWORD}"})}},
    "settings as JSON": {"env": {"CONFIG": json.dumps({"db": [{"password": PASSWORD}]})}},
    "options in a variable": {"env": {"OPTS": f"--verbose --token {PASSWORD}"}},
    "a login option": {"args": ["-u", f"me:{PASSWORD}"]},
    "a login option with =": {"args": [f"--user=me:{PASSWORD}"]},
}


@pytest.mark.parametrize("fields", ENTRIES.values(), ids=ENTRIES.keys())
async def test_t98_credentials_inside_values_are_redacted(fields: dict[str, Any]):
    entry = stdio_server("reveals_environment.py")
    entry = {**entry, **fields, "args": [*entry["args"], *fields.get("args", [])]}
    async with Host({"s": entry}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        assert PASSWORD not in host.servers["s"].stderr_tail
        for tool in ("result", "structured", "error"):
            said = (await host.call(f"mcp__s__{tool}", raw=True)).text
            assert PASSWORD not in said
            assert "[secret]" in said


def test_t98_commands_print_no_secret_that_a_server_returns():
    env = {"DATABASE_URL": f"postgres://me:{PASSWORD}@db.example/x"}
    tools = [{"name": "t", "inputSchema": {"type": "object"}, "description": f"with {PASSWORD}"}]
    server = stdio_server("lists_given_pages.py", json.dumps([{"tools": tools}]), env=env)
    given = ("--mcp-config", config(s=server))
    for words in (
        ("tools",),
        ("tools", "show", "mcp__s__t"),
        ("tools", "search", "with"),
        ("tools", "--json"),
    ):
        done = run(*words, *given)
        assert PASSWORD not in done.stdout + done.stderr

"""T102: A lone surrogate (half of an emoji, from a string cut by JavaScript) affects only itself."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.errors import RemoteError
from dragoman.interaction import FormAnswer, FormElicitation
from tests.servers import stdio_server
from tests.servers.library import Client, Library
from tests.servers.web import answers, http_sse, streamable, websocket
from tests.servers.web.streams import Viewing
from tests.torture.bystander_host import HOSTILE, at_once
from tests.torture.conftest import LEGACY, MODERN
from tests.torture.lines import ID, VERSION, message

HALF, LOST = "\ud83d", "\ufffd"
OBJECT = {"type": "object"}
GOOD = [{"name": f"good_{n}", "inputSchema": OBJECT} for n in range(20)]

SPELLED = {
    r"cut \ud83d": "cut \ufffd",
    r"cut \uD83D here": "cut \ufffd here",
    r"\ude00 the other half": "\ufffd the other half",
    r"\ud83d\ud83d\ude00": "\ufffd😀",
    r"\ud83d\ude00\ude00": "😀\ufffd",
    r"\ud83d\u0041": "\ufffdA",
    r"\ud83d\n": "\ufffd\n",
    r"\\ud83d \ud83d": r"\ud83d " + "\ufffd",
    r"\\\ud83d": "\\\ufffd",
    r"\\ud83d\ude00": "\\ud83d\ufffd",
    r"whole \ud83d\ude00": "whole 😀",
}


def text_result(spelled: str) -> str:
    return message(VERSION, ID, f'"result":{{"resultType":"complete","content":[{content(spelled)}]}}')


def content(spelled: str) -> str:
    return f'{{"type":"text","text":"{spelled}"}}'


@pytest.mark.requirement("CAL-7")
@pytest.mark.parametrize(("spelled", "text"), SPELLED.items(), ids=SPELLED.keys())
async def test_t102_a_result_arrives_with_the_lone_surrogate_replaced(bystander_host, era, spelled, text):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once():
            assert (await a.outcome("say", writes=[text_result(spelled)], raw=True)).text == text
        assert a.view.ignored == {}
        await a.serves_still()


async def test_t102_a_large_result_with_a_lone_surrogate_arrives(bystander_host, era):
    text = "né€" * 300_000
    spelled = json.dumps(text, ensure_ascii=False)[1:-1].encode().decode("latin-1")
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once(5):
            outcome = await a.outcome("say", writes=[text_result(spelled + r"\ud83d")], raw=True)
        assert outcome.text == text + LOST


async def test_t102_structured_content_and_errors_with_a_lone_surrogate_arrive(bystander_host, era):
    structured = message(
        VERSION,
        ID,
        r'"result":{"resultType":"complete","content":[],"structuredContent":{"a\ud83d":["\ude00"]}}',
    )
    error = message(VERSION, ID, r'"error":{"code":7,"message":"no \ud83d","data":{"why":"\ud83d"}}')
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once():
            assert (await a.outcome("say", writes=[structured])).structured == {f"a{LOST}": [LOST]}
            refused = (await a.outcome("say", writes=[error])).error
        assert isinstance(refused, RemoteError)
        assert (refused.remote_code, refused.remote_message) == (7, f"no {LOST}")
        assert refused.remote_data == {"why": LOST}


async def test_t102_notifications_and_progress_arrive(bystander_host, era):
    log = r'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"cut \ud83d"}}'
    progress = (
        r'{"jsonrpc":"2.0","method":"notifications/progress",'
        r'"params":{"progressToken":$ID,"progress":1,"message":"half \ud83d"}}'
    )
    told: list[str | None] = []
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        writes = [f"{log}\n{progress}\n", text_result("fine")]
        async with at_once():
            await a.outcome("say", writes=writes, on_progress=lambda update: told.append(update.message))
        assert told == [f"half {LOST}"]
        assert a.log() == [f"cut {LOST}"]


ODD_TOOLS = {
    "in its description": ({"name": "odd", "inputSchema": OBJECT, "description": HALF}, None),
    "in its title": ({"name": "odd", "inputSchema": OBJECT, "title": HALF}, None),
    "in its annotations": ({"name": "odd", "inputSchema": OBJECT, "annotations": {"title": HALF}}, None),
    "in its _meta": ({"name": "odd", "inputSchema": OBJECT, "_meta": {"a": HALF}}, None),
    "in a parameter's description": (
        {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"description": HALF}}}},
        None,
    ),
    "in its output schema": ({"name": "odd", "inputSchema": OBJECT, "outputSchema": {"title": HALF}}, None),
    "in its name": ({"name": f"odd{HALF}", "inputSchema": OBJECT}, f"tool 'odd{LOST}' is left out: "),
    "in a parameter's name": (
        {"name": "odd", "inputSchema": {"type": "object", "properties": {f"a{HALF}": {}}}},
        "tool 'odd' is left out: ",
    ),
}


@pytest.mark.parametrize(("odd", "problem"), ODD_TOOLS.values(), ids=ODD_TOOLS.keys())
async def test_t102_one_definition_does_not_affect_the_others(bystander_host, odd, problem):
    entry = stdio_server("lists_given_pages.py", json.dumps([{"tools": [*GOOD[:10], odd, *GOOD[10:]]}]))
    async with bystander_host(entry) as a:
        names = {tool.wire_name for tool in a.host.tools() if tool.server == HOSTILE}
        good = {tool["name"] for tool in GOOD}
        if problem is None:
            assert (names, a.view.problems) == (good | {"odd"}, ())
        else:
            assert names == good
            (told,) = a.view.problems
            assert told[: len(problem)] == problem
        async with at_once():
            assert await a.call("good_7") == "good_7"


async def test_t102_a_cursor_is_sent_back_unchanged(bystander_host):
    pages = [
        {"tools": GOOD[:5], "nextCursor": f"page {HALF}"},
        {"tools": GOOD[5:], "nextCursor": f"page {HALF}\udc00{HALF}"},
        {"tools": [{"name": "last", "inputSchema": OBJECT, "description": HALF}]},
    ]
    async with bystander_host(stdio_server("lists_given_pages.py", json.dumps(pages))) as a:
        assert a.view.problems == ()
        assert a.view.tool_count == 21


class CutLibrary(Library):
    """Every text of its definitions and results ends with a lone surrogate."""

    def result(self, client: Client, message: Any) -> Any:
        said = super().result(client, message)
        return said if message["method"] == "tools/list" else _cut(said)


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: each + HALF if key in ("description", "text") and isinstance(each, str) else _cut(each)
            for key, each in value.items()
        }
    return [_cut(each) for each in value] if isinstance(value, list) else value


async def test_t102_resources_and_prompts_are_listed_and_read(bystander_host):
    async with bystander_host(others={"library": CutLibrary()}) as a:
        listed = {resource.uri: resource for resource in await a.host.resources.list("library")}
        assert listed["book://divan"].description == f"The divan{LOST}"
        read = await a.host.resources.read("library", "book://divan")
        assert read.contents[0].text == f"Poems{LOST}"
        prompts = {prompt.wire_name: prompt for prompt in await a.host.prompts.list("library")}
        assert prompts["greet"].description == f"To greet{LOST}"
        said = await a.host.prompts.get(prompts["greet"].name)
        assert said.messages[0].content.text == f"greet: {{}}{LOST}"


class Hello(Library):
    """Its server information contains a lone surrogate."""

    def result(self, client: Client, message: Any) -> Any:
        said = super().result(client, message)
        if message["method"] in ("initialize", "server/discover"):
            return {**said, "instructions": f"Be kind {HALF}"}
        return said


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_t102_instructions_with_a_lone_surrogate_do_not_prevent_a_connection(bystander_host, revision):
    async with bystander_host(others={"hello": Hello(revisions=(revision,))}) as a:
        view = a.host.servers["hello"]
        assert (view.status, view.instructions) == ("connected", f"Be kind {LOST}")


STATES = [f"state {HALF}", f"{HALF}{HALF}\ude00 né \\ud83d", "plain"]


class Rounds(Library):
    """Asks once, sends a request state, and returns the state it received."""

    state = ""

    def take(self, client: Client, message: Any) -> None:
        if message.get("method") != "tools/call":
            return super().take(client, message)
        came = message["params"].get("requestState")
        question = {
            "method": "elicitation/create",
            "params": {"message": f"who {HALF}?", "requestedSchema": {"type": "object", "properties": {}}},
        }
        asks = {
            "resultType": "input_required",
            "inputRequests": {"who": question},
            "requestState": self.state,
        }
        tells = {
            "resultType": "complete",
            "content": [{"type": "text", "text": json.dumps(came)}],
        }
        client.send({"jsonrpc": "2.0", "id": message["id"], "result": asks if came is None else tells})


class Person:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.asked.append(question.message)
        return FormAnswer("accept", {})


@pytest.mark.parametrize("state", STATES, ids=ascii)
async def test_t102_the_request_state_is_sent_back_unchanged(bystander_host, state):
    person = Person()
    server = Rounds(revisions=(MODERN,))
    server.state = state
    async with bystander_host(others={"asks": server}, interaction=person) as a:
        outcome = await a.host.call("mcp__asks__heard", {}, timeout_seconds=20)
        assert json.loads(outcome.text) == json.loads(json.dumps(state))
        assert person.asked == [f"who {LOST}?"]


@pytest.mark.parametrize("kind", ["body", "events"])
async def test_t102_a_result_with_a_lone_surrogate_arrives_over_http(bystander_host, kind):
    spoiled = answers.body(lambda ask: answers.reply_to(ask, f"cut {HALF}"))
    if kind == "events":
        spoiled = answers.events(lambda reply: b"data: " + reply.replace(b"fine", rb"cut \ud83d") + b"\n\n")
    async with (
        streamable(on={"tools/call": spoiled}) as server,
        bystander_host({"url": server.url}) as a,
        at_once(),
    ):
        assert await a.call("echo") == f"cut {LOST}"


async def test_t102_an_error_with_a_lone_surrogate_in_the_body_of_a_status_arrives(bystander_host):
    refused = answers.error(-32602, f"bad {HALF}", status=400)
    async with streamable(on={"tools/call": refused}) as server, bystander_host({"url": server.url}) as a:
        async with at_once():
            error = (await a.outcome("echo")).error
        assert isinstance(error, RemoteError)
        assert (error.remote_code, error.remote_message) == (-32602, f"bad {LOST}")


async def test_t102_a_message_with_a_lone_surrogate_arrives_over_a_stream(bystander_host, monkeypatch):
    spell = Viewing._event
    monkeypatch.setattr(Viewing, "_event", lambda self, data: spell(self, data.replace(b"@@", rb"\ud83d")))
    async with http_sse() as server, bystander_host({"type": "sse", "url": server.url}) as a, at_once():
        assert await a.call("echo", text="cut @@") == f"cut {LOST}"


async def test_t102_a_message_with_a_lone_surrogate_arrives_over_a_websocket(bystander_host, monkeypatch):
    async with websocket() as server, bystander_host({"type": "ws", "url": server.url}) as a, at_once():
        write = server._write
        monkeypatch.setattr(
            server, "_write", lambda socket, data: write(socket, data.replace(b"@@", rb"\ud83d"))
        )
        assert await a.call("echo", text="cut @@") == f"cut {LOST}"


async def test_t102_an_in_process_server_of_the_official_sdk_does_not_hang(bystander_host):
    from mcp.server.mcpserver import MCPServer

    app = MCPServer("sdk")

    @app.tool()
    def half() -> str:
        return f"cut {HALF}"

    @app.tool()
    def whole() -> str:
        return "fine"

    async with bystander_host(others={"sdk": app}) as a:
        async with at_once(5):
            texts = await asyncio.gather(
                *(a.host.call(f"mcp__sdk__{name}", {}) for name in ("whole", "half", "whole"))
            )
        assert [outcome.text for outcome in texts] == ["fine", f"cut {LOST}", "fine"]


async def test_t102_very_many_lone_surrogates_do_not_block_the_loop(bystander_host):
    """The event loop is measured; beyond a limit the message is not repaired, and its call fails."""
    async with bystander_host(stdio_server("writes_given_bytes.py")) as a:
        for spelled in (r"\ud83d" * 45_000, r"\ud83d" * 1_000_000, r"\\" * 3_000_000 + r"\ud83d"):
            async with at_once(10):
                await asyncio.gather(a.call("say", writes=[text_result(spelled)]), return_exceptions=True)
        await a.serves_still()

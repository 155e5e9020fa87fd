"""The gateway in front of a server, with clients of both eras over bare HTTP."""

import asyncio
import json
from typing import Any

import pytest

from dragoman.gateway.settings import CallerEntry, View
from dragoman.testing import InMemoryServer
from tests.gateway import ADA, BOB, LEGACY, MODERN, Client, Json, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1")
FORMS: Json = {"elicitation": {"form": {}}}
upstream = pytest.mark.parametrize("revision", [LEGACY, MODERN], ids=["legacy-server", "modern-server"])


def text_of(message: Json) -> Any:
    return json.loads(message["result"]["content"][0]["text"])


def names_in(message: Json) -> list[str]:
    return [tool["name"] for tool in message["result"]["tools"]]


@upstream
async def test_a_modern_client_lists_calls_and_reads(revision: str):
    async with gateway_of({"office": Office((revision,))}) as running, Client(running.url) as client:
        listed = await client.modern("tools/list")
        assert names_in(listed.last) == [
            f"office__{name}" for name in ("ask", "count", "hire", "hold", "ledger", "touch")
        ]
        called = await client.modern("tools/call", {"name": "office__count", "arguments": {"to": 2}})
        assert called.last["result"]["resultType"] == "complete"
        assert text_of(called.last) == 2
        read = await client.modern("resources/read", {"uri": "file:///a"})
        assert read.last["result"]["contents"] == [{"uri": "file:///a", "text": "one"}]


@upstream
async def test_a_legacy_client_lists_calls_and_reads(revision: str):
    async with gateway_of({"office": Office((revision,))}) as running, Client(running.url) as client:
        opened = await client.initialize()
        assert opened.last["result"]["protocolVersion"] == LEGACY
        assert len(names_in((await client.legacy("tools/list")).last)) == 6
        called = await client.legacy("tools/call", {"name": "office__count", "arguments": {"to": 2}})
        assert called.last["result"] == {"content": [{"type": "text", "text": "2"}]} or revision == MODERN
        assert text_of(called.last) == 2
        read = await client.legacy("resources/read", {"uri": "file:///b"})
        assert read.last["result"]["contents"] == [{"uri": "file:///b", "text": "two"}]


@pytest.mark.requirement("GWY-2")
@upstream
async def test_questions_reach_a_modern_client_as_input_required(revision: str):
    async with gateway_of({"office": Office((revision,))}) as running, Client(running.url) as client:
        params: Json = {"name": "office__ask", "arguments": {}}
        for question, name in (("office asks: Who asks?", "Ada"), ("office asks: Who pays?", "Bob")):
            reply = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
            assert reply["resultType"] == "input_required"
            ((key, asked),) = reply["inputRequests"].items()
            assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", question)
            answer = {"action": "accept", "content": {"name": name}}
            params = {**params, "inputResponses": {key: answer}, "requestState": reply["requestState"]}
        done = await client.modern("tools/call", params, capabilities=FORMS)
        assert [each["content"]["name"] for each in text_of(done.last)] == ["Ada", "Bob"]
        if revision == LEGACY:  # the call went on meanwhile: it was not made again
            assert running.gateway.questions._kept == {}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.requirement("GWY-2")
@upstream
async def test_questions_reach_a_legacy_client_as_requests(revision: str):
    async with gateway_of({"office": Office((revision,))}) as running, Client(running.url) as client:
        await client.initialize(FORMS)
        names = iter(["Ada", "Bob"])
        done: list[Json] = []

        async with client.http.post(
            client.url,
            headers=client.headers,
            json={"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "office__ask"}},
        ) as response:
            assert response.content_type == "text/event-stream"
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                message = json.loads(line[6:])
                if message.get("method") == "elicitation/create":
                    answer = {"action": "accept", "content": {"name": next(names)}}
                    await client.post({"jsonrpc": "2.0", "id": message["id"], "result": answer})
                elif "result" in message:
                    done.append(message)
        assert [each["content"]["name"] for each in text_of(done[0])] == ["Ada", "Bob"]


@pytest.mark.requirement("GWY-2")
async def test_questions_to_a_client_without_elicitation_are_declined():
    async with gateway_of({"office": Office((LEGACY,))}) as running, Client(running.url) as client:
        called = await client.modern("tools/call", {"name": "office__ask", "arguments": {}})
        assert text_of(called.last) == [{"action": "decline"}, {"action": "decline"}]


@pytest.mark.requirement("GWY-2")
@upstream
async def test_progress_and_log_messages_are_passed_on(revision: str):
    async with gateway_of({"office": Office((revision,))}) as running, Client(running.url) as client:
        reply = await client.modern(
            "tools/call",
            {"name": "office__count", "arguments": {"to": 3}},
            meta={"progressToken": "mine", "io.modelcontextprotocol/logLevel": "info"},
        )
        progress = [m["params"] for m in reply.messages if m.get("method") == "notifications/progress"]
        assert [each["progress"] for each in progress] == [1, 2, 3]
        assert {each["progressToken"] for each in progress} == {"mine"}
        logs = [m["params"] for m in reply.messages if m.get("method") == "notifications/message"]
        assert [each["data"] for each in logs] == ["1", "2", "3"]


@pytest.mark.requirement("GWY-2")
async def test_while_the_call_of_one_client_waits_for_an_answer_no_other_client_gets_log_messages():
    async with (
        gateway_of({"office": Office((LEGACY,))}) as running,
        Client(running.url) as ada,
        Client(running.url, BOB) as bob,
    ):
        asked = await ada.modern("tools/call", {"name": "office__ask", "arguments": {}}, capabilities=FORMS)
        assert asked.last["result"]["resultType"] == "input_required"
        counted = await bob.modern(
            "tools/call",
            {"name": "office__count", "arguments": {"to": 3}},
            meta={"io.modelcontextprotocol/logLevel": "info"},
        )
        assert [m["method"] for m in counted.messages if "method" in m] == []


@pytest.mark.requirement("GWY-2")
async def test_a_cancelled_request_is_cancelled_at_the_server():
    office = Office((LEGACY,))
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await client.initialize()
        holding = asyncio.create_task(client.legacy("tools/call", {"name": "office__hold"}, request_id=77))
        await until(lambda: office.ledger == ["hold"])
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
        assert (await client.post(cancel)).status == 202
        await until(lambda: office.ledger == ["hold", "cancelled"])
        assert (await holding).messages == []


@pytest.mark.requirement("GWY-2")
async def test_a_modern_client_that_disconnects_cancels_its_call():
    office = Office((LEGACY,))
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        holding = asyncio.create_task(client.modern("tools/call", {"name": "office__hold"}))
        await until(lambda: office.ledger == ["hold"])
        holding.cancel()
        await until(lambda: office.ledger == ["hold", "cancelled"])


@pytest.mark.requirement("GWY-2")
async def test_changes_of_lists_and_resources_are_passed_on_to_a_subscriber():
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///a", "file:///none"]}
        seen: list[Json] = []

        async def listen() -> None:
            headers = {
                **client.headers,
                "MCP-Protocol-Version": MODERN,
                "Mcp-Method": "subscriptions/listen",
            }
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {"notifications": wanted, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
            async with client.http.post(client.url, headers=headers, json=message) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        seen.append(json.loads(line[6:]))

        listening = asyncio.create_task(listen())
        await until(lambda: bool(seen))
        assert seen[0]["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["file:///a"],
        }
        await client.modern("tools/call", {"name": "office__touch", "arguments": {"uri": "file:///a"}})
        await until(lambda: any(each["method"] == "notifications/resources/updated" for each in seen))
        await client.modern("tools/call", {"name": "office__hire", "arguments": {"name": "new"}})
        await until(lambda: any(each["method"] == "notifications/tools/list_changed" for each in seen))
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await until(lambda: office.subscribed == [])


@pytest.mark.requirement("GWY-3")
async def test_callers_may_use_what_their_entry_names():
    callers = {
        "ada": CallerEntry(token=ADA, servers=("office",)),
        "bob": CallerEntry(token=BOB, tools=("other__e*",)),
    }
    async with gateway_of({"office": Office(), "other": echo_server()}, callers=callers) as running:  # noqa: SIM117
        async with Client(running.url) as ada, Client(running.url, BOB) as bob:
            assert {name.partition("__")[0] for name in names_in((await ada.modern("tools/list")).last)} == {
                "office"
            }
            assert names_in((await bob.modern("tools/list")).last) == ["other__echo"]
            refused = await ada.modern("tools/call", {"name": "other__echo", "arguments": {}})
            assert refused.last["error"] == {"code": -32602, "message": "Unknown tool: other__echo"}
            assert (await bob.modern("resources/list")).last["result"]["resources"] == []
            hidden = await bob.modern("resources/read", {"uri": "file:///a"})
            assert hidden.last["error"]["message"] == "no resource file:///a"


@pytest.mark.requirement("GWY-3")
async def test_a_uri_of_two_servers_is_read_from_the_named_one():
    second = Office()
    second.files = {"file:///a": "of the second"}
    callers = {"ada": CallerEntry(token=ADA), "bob": CallerEntry(token=BOB, servers=("second",))}
    served = gateway_of({"first": Office(), "second": second}, callers=callers)
    async with served as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        listed = (await ada.modern("resources/list")).last["result"]["resources"]
        assert [each["uri"] for each in listed] == [
            "mcp-server:first:file:///a",
            "file:///b",
            "mcp-server:second:file:///a",
        ]
        texts = [
            (await ada.modern("resources/read", {"uri": each["uri"]})).last["result"]["contents"][0]["text"]
            for each in listed
        ]
        assert texts == ["one", "two", "of the second"]
        assert "error" in (await ada.modern("resources/read", {"uri": "file:///a"})).last
        own = (await bob.modern("resources/read", {"uri": "file:///a"})).last["result"]
        assert own["contents"][0]["text"] == "of the second"


@pytest.mark.requirement("GWY-3")
async def test_a_caller_that_makes_too_many_calls_has_to_wait():
    callers = {"ada": CallerEntry(token=ADA, calls_per_minute=2), "bob": CallerEntry(token=BOB)}
    async with gateway_of({"other": echo_server()}, callers=callers) as running:  # noqa: SIM117
        async with Client(running.url) as ada, Client(running.url, BOB) as bob:
            replies = [await ada.modern("tools/call", {"name": "other__echo"}) for _ in range(3)]
            assert ["error" in reply.last for reply in replies] == [False, False, True]
            assert replies[2].last["error"]["code"] == -32029
            assert "result" in (await bob.modern("tools/call", {"name": "other__echo"})).last


async def test_a_view_has_its_own_names_and_fixed_arguments():
    views = {
        "small": View(
            tools=("other__e*",), rename={"other__echo": "say"}, arguments={"say": {"text": "fixed"}}
        )
    }
    async with gateway_of({"office": Office(), "other": echo_server()}, views=views) as running:  # noqa: SIM117
        async with Client(f"{running.url}/small") as client:
            (tool,) = (await client.modern("tools/list")).last["result"]["tools"]
            assert tool["name"] == "say"
            assert tool["inputSchema"] == {"type": "object", "properties": {"times": {}}, "required": []}
            said = await client.modern("tools/call", {"name": "say", "arguments": {"text": "mine"}})
            assert said.last["result"]["content"] == [{"type": "text", "text": "fixed"}]
            hidden = await client.modern("tools/call", {"name": "other__echo", "arguments": {}})
            assert hidden.last["error"]["message"] == "Unknown tool: other__echo"


async def test_rules_apply_to_clients_and_denied_tools_are_unknown():
    rules = {"deny": ["mcp__other__echo"], "ask": ["mcp__office__ledger"]}
    servers = {"office": Office(), "other": echo_server()}
    async with gateway_of(servers, rules=rules) as running, Client(running.url) as client:
        assert "other__echo" not in names_in((await client.modern("tools/list")).last)
        denied = await client.modern("tools/call", {"name": "other__echo"})
        assert denied.last["error"]["message"] == "Unknown tool: other__echo"
        unasked = (await client.modern("tools/call", {"name": "office__ledger"})).last["result"]
        assert unasked["isError"] is True
        params: Json = {"name": "office__ledger", "arguments": {}}
        asked = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
        ((key, question),) = asked["inputRequests"].items()
        assert question["params"]["requestedSchema"]["properties"]["answer"]["enum"] == [
            "allow this call",
            "refuse",
        ]
        params["requestState"] = asked["requestState"]
        params["inputResponses"] = {key: {"action": "accept", "content": {"answer": "allow this call"}}}
        assert "calls" in text_of((await client.modern("tools/call", params, capabilities=FORMS)).last)


async def test_a_lost_stream_is_continued_without_a_gap():
    office = Office((LEGACY,))
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await client.initialize(FORMS)
        message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "office__ask"}}
        last_id, question = "", 0
        async with client.http.post(client.url, headers=client.headers, json=message) as response:
            async for line in response.content:
                if line.startswith(b"id: "):
                    last_id = line[4:].decode().strip()
                if line.startswith(b"data: {"):
                    question = json.loads(line[6:])["id"]
                    break  # the connection is lost with the question unanswered
        for name in ("Ada", "Bob"):
            answer = {"action": "accept", "content": {"name": name}}
            headers = {**client.headers, "Last-Event-ID": last_id}
            await client.post({"jsonrpc": "2.0", "id": question, "result": answer})
            async with client.http.get(client.url, headers=headers) as response:
                assert response.status == 200
                async for line in response.content:
                    if line.startswith(b"id: "):
                        last_id = line[4:].decode().strip()
                    if line.startswith(b"data: {"):
                        found = json.loads(line[6:])
                        question = found["id"]
                        break
        assert [each["content"]["name"] for each in text_of(found)] == ["Ada", "Bob"]


def echo_server() -> InMemoryServer:
    server = InMemoryServer("other")
    server.add_tool(
        "echo",
        lambda arguments, _: arguments.get("text", ""),
        properties={"text": {"type": "string"}, "times": {}},
        required=(),
    )
    server.add_tool("other", lambda *_: "other")
    return server


async def test_a_client_that_waits_for_100_continue_gets_it():
    async with gateway_of({"office": Office((LEGACY,))}) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{running.port}",
            f"Authorization: Bearer {ADA}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Expect: 100-continue",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        async with asyncio.timeout(10):
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(body)
            assert await reader.readline() == b"HTTP/1.1 400 Bad Request\r\n"  # it names no session
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("HEAD", "/readyz", 200),
        ("POST", "/healthz", 405),
        ("GET", "/mcp/", 404),
        ("GET", "/", 404),
        ("GET", "/sign-in/x", 404),
        ("PUT", "/mcp", 405),
    ],
)
async def test_every_path_has_its_methods(method: str, path: str, status: int):
    async with gateway_of({"office": Office((LEGACY,))}) as running, Client(running.url) as client:
        url = f"http://127.0.0.1:{running.port}{path}"
        async with client.http.request(method, url, headers=client.headers) as response:
            assert response.status == status

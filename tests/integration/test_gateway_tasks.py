"""A server that answers calls with tasks, behind the gateway: its clients see ordinary calls."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gateway import BOB, Client, Json, gateway_of
from tests.integration.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CAL-8", "GWY-2")]
FORMS = {"elicitation": {"form": {}}}
SERVER = Path(__file__).parents[1] / "servers" / "runs_tasks.py"
server_eras = pytest.mark.parametrize("server_era", ["legacy", "modern"])
client_eras = pytest.mark.parametrize("client_era", ["legacy", "modern"])


def keeps_tasks(era: str, folder: Path) -> tuple[dict[str, object], Path]:
    notes = folder / "tasks.json"
    return {"command": sys.executable, "args": [str(SERVER), era, str(notes)]}, notes


def statuses(notes: Path) -> list[str]:
    if not notes.exists():
        return []
    try:
        return [each["status"] for each in json.loads(notes.read_text())["tasks"].values()]
    except ValueError:  # it is being written
        return []


def text_of(message: Json) -> Any:
    return message["result"]["content"][0]["text"]


async def call(client: Client, era: str, tool: str, arguments: Json | None = None, **more: Any) -> list[Json]:
    params: Json = {"name": f"t__{tool}", "arguments": arguments or {}, **more}
    if era == "modern":
        meta = {"progressToken": 5}
        return (await client.modern("tools/call", params, meta=meta, capabilities=FORMS)).messages
    return (await client.legacy("tools/call", {**params, "_meta": {"progressToken": 5}})).messages


@server_eras
@client_eras
async def test_a_task_is_a_call_with_progress_and_a_result_or_an_error(
    server_era: str, client_era: str, tmp_path: Path
):
    server, _ = keeps_tasks(server_era, tmp_path)
    async with gateway_of({"t": server}) as running, Client(running.url) as client:
        await client.initialize()
        listed = await (client.modern if client_era == "modern" else client.legacy)("tools/list")
        assert all("execution" not in tool for tool in listed.last["result"]["tools"])
        *progress, reply = await call(client, client_era, "work", {"steps": 3, "text": "all of it"})
        assert text_of(reply) == "all of it"
        assert [each["params"]["message"] for each in progress] == ["2 left", "1 left"]
        *_, failed = await call(client, client_era, "fail")
        assert failed["error"] == {"code": -32050, "message": "it did not work"}
        *_, given_up = await call(client, client_era, "give_up")
        assert given_up["result"]["isError"] is True
        assert text_of(given_up) == "t has cancelled the task of mcp__t__give_up"


@server_eras
async def test_a_modern_client_gives_the_input_of_a_task(server_era: str, tmp_path: Path):
    server, _ = keeps_tasks(server_era, tmp_path)
    async with gateway_of({"t": server}) as running, Client(running.url) as client:
        *_, asked = await call(client, "modern", "ask")
        ((key, question),) = asked["result"]["inputRequests"].items()
        assert question["params"]["message"] == "t asks: Who?"
        answer = {"action": "accept", "content": {"name": "Ada"}}
        state = asked["result"]["requestState"]
        *_, done = await call(client, "modern", "ask", requestState=state, inputResponses={key: answer})
        assert text_of(done) == "hello Ada"


async def ask_over_a_session(client: Client, name: str, both: asyncio.Barrier) -> Json:
    """The result of `ask`; the question is answered when all clients were asked."""
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t__ask"}}
    async with client.http.post(client.url, headers=client.headers, json=message) as response:
        async for line in response.content:
            if line.startswith(b"data: {"):
                received = json.loads(line[6:])
                if "method" not in received:
                    return received
                await both.wait()
                answer = {"action": "accept", "content": {"name": name}}
                await client.post({"jsonrpc": "2.0", "id": received["id"], "result": answer})
    raise AssertionError("the response has no result")


@server_eras
@pytest.mark.parametrize("count", [1, 2])
async def test_the_calling_legacy_client_gives_the_input_of_a_task(
    server_era: str, count: int, tmp_path: Path
):
    server, _ = keeps_tasks(server_era, tmp_path)
    async with gateway_of({"t": server}) as running:  # noqa: SIM117
        async with Client(running.url) as ada, Client(running.url, BOB) as bob:
            await ada.initialize(FORMS)
            await bob.initialize(FORMS)
            both = asyncio.Barrier(count)
            pairs = [(ada, "Ada"), (bob, "Bob")][:count]
            replies = await asyncio.gather(*(ask_over_a_session(*pair, both) for pair in pairs))
            assert [text_of(reply) for reply in replies] == ["hello Ada", "hello Bob"][:count]


@server_eras
async def test_a_question_to_a_client_without_elicitation_is_declined(server_era: str, tmp_path: Path):
    server, _ = keeps_tasks(server_era, tmp_path)
    async with gateway_of({"t": server}) as running, Client(running.url) as client:
        reply = await client.modern("tools/call", {"name": "t__ask", "arguments": {}})
        assert text_of(reply.last) == "hello decline"


@server_eras
async def test_a_task_of_a_cancelled_or_abandoned_call_is_cancelled(server_era: str, tmp_path: Path):
    server, notes = keeps_tasks(server_era, tmp_path)
    async with gateway_of({"t": server}) as running, Client(running.url) as client:
        modern = asyncio.create_task(client.modern("tools/call", {"name": "t__endless", "arguments": {}}))
        await until(lambda: statuses(notes) == ["working"])
        modern.cancel()  # the connection is closed
        await until(lambda: statuses(notes) == ["cancelled"])
        await client.initialize()
        params = {"name": "t__endless", "arguments": {}}
        legacy = asyncio.create_task(client.legacy("tools/call", params, request_id=60))
        await until(lambda: statuses(notes) == ["cancelled", "working"])
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 60}}
        await client.post(cancel)
        await until(lambda: statuses(notes) == ["cancelled", "cancelled"])
        assert (await legacy).messages == []


@server_eras
async def test_a_task_continues_while_the_connection_of_its_session_is_lost(server_era: str, tmp_path: Path):
    server, _ = keeps_tasks(server_era, tmp_path)
    async with gateway_of({"t": server}) as running, Client(running.url) as client:
        await client.initialize()
        params = {"name": "t__work", "arguments": {"steps": 5}, "_meta": {"progressToken": 1}}
        message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
        async with client.http.post(client.url, headers=client.headers, json=message) as response:
            last_id = (await response.content.readline()).decode().removeprefix("id: ").strip()
        headers = {**client.headers, "Last-Event-ID": last_id}
        async with client.http.get(client.url, headers=headers) as response:
            found = (await response.read()).decode()
        assert '"text":"done"' in found.replace(": ", ":")


async def test_tasks_are_not_offered_to_clients(tmp_path: Path):
    server, _ = keeps_tasks("modern", tmp_path)
    async with gateway_of({"t": server}) as running, Client(running.url) as client:
        found = (await client.modern("server/discover")).last["result"]["capabilities"]
        assert "tasks" not in found
        assert "extensions" not in found
        reply = await client.modern("tasks/get", {"taskId": "t1"})
        assert reply.last["error"] == {"code": -32601, "message": "unknown method tasks/get"}
        params = {"name": "t__work", "arguments": {"steps": 1}, "task": {"ttl": 1000}}
        assert text_of((await client.modern("tools/call", params)).last) == "done"

"""T79: A caller that has an id of another caller cannot use it."""

import asyncio
import json

import pytest

from dragoman.gateway.settings import View
from tests.gateway import BOB, Client, Json, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
FORMS: Json = {"elicitation": {"form": {}}}
ANSWER: Json = {"action": "accept", "content": {"name": "Mallory"}}


async def test_t79_a_session_is_bound_to_its_caller_and_its_path():
    views = {"small": View(servers=("office",))}
    async with gateway_of({"office": Office()}, views=views) as running, Client(running.url) as ada:
        await ada.initialize()
        session = ada.headers["Mcp-Session-Id"]
        assert len(session) >= 32
        async with Client(running.url, BOB) as bob, Client(f"{running.url}/small") as elsewhere:
            for client, known in (
                (bob, session),
                (elsewhere, session),
                (ada, session[:-1] + ("y" if session.endswith("x") else "x")),
                (ada, "1"),
            ):
                stolen = {"Mcp-Session-Id": known}
                listed = await client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **stolen)
                assert listed.status == 404
                streamed = await client.post(b"", "GET", **stolen)
                assert streamed.status == 404
                resumed = await client.post(b"", "GET", **stolen, **{"Last-Event-ID": "s1.0"})
                assert resumed.status == 404
                ended = await client.post(b"", "DELETE", **stolen)
                assert ended.status == 404
        assert "result" in (await ada.legacy("tools/list")).last


async def test_t79_a_question_can_be_answered_by_its_own_caller_only():
    office = Office(("2025-11-25",))
    async with gateway_of({"office": office}) as running, Client(running.url) as ada:
        params: Json = {"name": "office__ask", "arguments": {}}
        asked = (await ada.modern("tools/call", params, capabilities=FORMS)).last["result"]
        (key,) = asked["inputRequests"]
        answered = {**params, "inputResponses": {key: ANSWER}, "requestState": asked["requestState"]}
        refusal = "requestState: no such call is waiting for an answer"
        async with Client(running.url, BOB) as bob:
            stolen = await bob.modern("tools/call", answered, capabilities=FORMS)
            assert stolen.last["error"]["message"] == refusal
        changed = {**answered, "arguments": {"more": 1}}
        assert (await ada.modern("tools/call", changed, capabilities=FORMS)).last["error"][
            "message"
        ] == refusal
        answered["inputResponses"] = {key: {"action": "accept", "content": {"name": "Ada"}}}
        second = (await ada.modern("tools/call", answered, capabilities=FORMS)).last["result"]
        assert second["inputRequests"]
        again = await ada.modern("tools/call", answered, capabilities=FORMS)
        assert again.last["error"]["message"] == refusal  # a state is used once


async def test_t79_a_session_over_sse_is_bound_to_its_caller():
    async with gateway_of({"office": Office()}) as running, Client(running.url) as ada:
        base = f"http://127.0.0.1:{running.port}"
        async with ada.http.get(f"{base}/sse", headers=ada.headers) as stream:
            endpoint = ""
            async for line in stream.content:
                if line.startswith(b"data: "):
                    endpoint = line[6:].decode().strip()
                    break
            async with Client(base + endpoint, BOB) as bob:
                assert (await bob.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 404
            async with Client(base + endpoint) as own:
                assert (await own.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 202
            async for line in stream.content:
                if line.startswith(b"data: "):
                    assert json.loads(line[6:]) == {"jsonrpc": "2.0", "id": 1, "result": {}}
                    break


async def test_t79_a_subscription_of_one_caller_sends_no_notification_to_another():
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url) as ada:  # noqa: SIM117
        async with Client(running.url, BOB) as bob:
            await ada.initialize()
            await bob.initialize()
            await ada.legacy("resources/subscribe", {"uri": "file:///a"})
            seen: dict[str, list[str]] = {"ada": [], "bob": []}

            async def listen(name: str, client: Client) -> None:
                async with client.http.get(client.url, headers=client.headers) as stream:
                    async for line in stream.content:
                        if line.startswith(b"data: {"):
                            seen[name].append(json.loads(line[6:])["method"])

            listening = [
                asyncio.create_task(listen(name, each)) for name, each in (("ada", ada), ("bob", bob))
            ]
            await bob.legacy("resources/unsubscribe", {"uri": "file:///a"})
            await ada.legacy("tools/call", {"name": "office__touch", "arguments": {"uri": "file:///a"}})
            await until(lambda: "notifications/resources/updated" in seen["ada"])
            assert seen["bob"] == []
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)

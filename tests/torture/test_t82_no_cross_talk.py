"""T82: many clients with the same ids, tokens and names each get their own."""

import asyncio
import itertools
import json

import pytest

from dragoman.gateway.settings import CallerEntry
from dragoman.testing import InMemoryServer
from dragoman.testing.server import ToolContext
from tests.gateway import Client, Json, gateway_of
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("GWY-3")
CLIENTS, ROUNDS = 50, 20
CALLERS = {f"caller{n}": CallerEntry(token=f"token-of-caller-{n:04d}") for n in range(CLIENTS)}


def mirror() -> InMemoryServer:
    """Repeats what it is given, out of order, with progress that names the caller."""
    server = InMemoryServer("mirror")
    turns = itertools.count()

    async def say(arguments: Json, context: ToolContext) -> str:
        context.progress(1, 2, arguments["canary"])
        await asyncio.sleep((next(turns) * 7 % 5) / 1000)
        context.progress(2, 2, arguments["canary"])
        return arguments["canary"]

    server.add_tool("say", say, properties={"canary": {"type": "string"}}, required=("canary",))
    return server


async def work(url: str, number: int, *, era: str) -> list[str]:
    """What does not belong to this client, of all that it was sent."""
    foreign: list[str] = []
    async with Client(url, f"token-of-caller-{number:04d}") as client:
        if era == "legacy":
            await client.initialize()
        for turn in range(ROUNDS):
            canary = f"canary-{number}-{turn}"
            params = {"name": "mirror__say", "arguments": {"canary": canary}}
            token = {"progressToken": 1}
            if era == "modern":
                reply = await client.modern("tools/call", params, meta=token, request_id=1)
            else:
                reply = await client.legacy(
                    "tools/call", {**params, "_meta": {"progressToken": 1}}, request_id=1
                )
            assert reply.last["id"] == 1
            assert reply.last["result"]["content"][0]["text"] == canary
            said = [
                m["params"]["message"] for m in reply.messages if m.get("method") == "notifications/progress"
            ]
            foreign += [text for text in said if text != canary]
    return foreign


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_t82_fifty_clients_with_one_id_each_get_their_own(era: str):
    async with gateway_of({"mirror": mirror()}, callers=CALLERS) as running:
        found = await asyncio.gather(*(work(running.url, number, era=era) for number in range(CLIENTS)))
    assert [foreign for foreign in found if foreign] == []


async def test_t82_a_cancelled_id_is_the_clients_own():
    server = InMemoryServer("mirror")
    begun: list[str] = []
    ended: list[str] = []

    async def hold(arguments: Json, context: ToolContext) -> str:
        begun.append(arguments["canary"])
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(arguments["canary"])
        return ""

    server.add_tool("hold", hold, properties={"canary": {"type": "string"}})
    async with gateway_of({"mirror": server}, callers=CALLERS) as running:
        clients = [Client(running.url, f"token-of-caller-{number:04d}") for number in range(3)]
        holding: list[asyncio.Task[object]] = []
        for number, client in enumerate(clients):
            await client.initialize()
            params = {"name": "mirror__hold", "arguments": {"canary": str(number)}}
            holding.append(asyncio.create_task(client.legacy("tools/call", params, request_id=1)))
        await until(lambda: len(begun) == 3)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        await clients[1].post(cancel)
        await until(lambda: bool(ended))
        assert ended == ["1"]
        for task in holding:
            task.cancel()
        await asyncio.gather(*holding, return_exceptions=True)
        for client in clients:
            await client.http.close()


async def test_t82_log_messages_of_one_callers_work_reach_no_other():
    from tests.servers.office import Office

    async with gateway_of({"office": Office(("2025-11-25",))}, callers=CALLERS) as running:
        clients = [Client(running.url, f"token-of-caller-{number:04d}") for number in range(2)]
        level = {"io.modelcontextprotocol/logLevel": "debug"}
        params = [{"name": "office__count", "arguments": {"to": to}} for to in (200, 3)]
        replies = await asyncio.gather(
            *(client.modern("tools/call", each, meta=level) for client, each in zip(clients, params))
        )
        texts = [
            [m["params"]["data"] for m in reply.messages if m.get("method") == "notifications/message"]
            for reply in replies
        ]
        assert texts[1] == [] or max(map(int, texts[1])) <= 3
        assert [json.loads(reply.last["result"]["content"][0]["text"]) for reply in replies] == [200, 3]
        for client in clients:
            await client.http.close()

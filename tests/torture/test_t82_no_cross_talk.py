"""T82: Concurrent clients with the same ids, tokens and names each get their own messages."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from dragoman.gateway.settings import CallerEntry
from dragoman.testing import InMemoryServer
from dragoman.testing.server import ToolContext
from tests.gateway import ACCEPT, LEGACY, MODERN, Client, Json, gateway_of
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("GWY-3")
SERVERS = Path(__file__).parents[1] / "servers"
CLIENTS = 50
CALLS = 40_000
PROGRESS_EVERY = 10
CALLERS = {f"caller{n}": CallerEntry(token=f"token-of-caller-{n:04d}") for n in range(CLIENTS)}


class Wire:
    """One client's connection, which stays open: requests are written and responses read without a
    library, so that most of the time is spent in the gateway."""

    def __init__(self, port: int, number: int, era: str) -> None:
        self._port = port
        self._era = era
        headers = {
            "Host": f"127.0.0.1:{port}",
            "Authorization": f"Bearer token-of-caller-{number:04d}",
            "Accept": ACCEPT,
            "Content-Type": "application/json",
        }
        if era == "modern":
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "mirror__say"}
        self._head = "POST /mcp HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        if self._era == "legacy":
            opening = {
                "protocolVersion": LEGACY,
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }
            await self._post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
            await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call(self, canary: str, *, with_progress: bool) -> list[Json]:
        """Every message of the response. The id and the progress token are the same for all clients."""
        meta: Json = {"progressToken": 1} if with_progress else {}
        if self._era == "modern":
            meta["io.modelcontextprotocol/protocolVersion"] = MODERN
            meta["io.modelcontextprotocol/clientCapabilities"] = {}
        params = {"name": "mirror__say", "arguments": {"canary": canary}, "_meta": meta}
        return await self._post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    async def _post(self, message: Json) -> list[Json]:
        body = json.dumps(message).encode()
        self._writer.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if session := re.search(rb"Mcp-Session-Id: (\S+)", head):
            self._head += f"Mcp-Session-Id: {session[1].decode()}\r\nMCP-Protocol-Version: {LEGACY}\r\n"
        if b"chunked" in head:
            found = await self._reader.readuntil(b"0\r\n\r\n")
            return [json.loads(line) for line in re.findall(rb"data: (\{.*\})", found)]
        size = int(re.search(rb"Content-Length: (\d+)", head)[1])  # type: ignore[index]
        return [json.loads(await self._reader.readexactly(size))] if size else []

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def work(port: int, number: int, era: str) -> list[str]:
    """Everything this client received that does not belong to it."""
    foreign: list[str] = []
    wire = Wire(port, number, era)
    await wire.open()
    try:
        for turn in range(CALLS // 2 // CLIENTS):
            canary, with_progress = f"canary-{number}-{turn}", turn % PROGRESS_EVERY == 0
            *before, reply = await wire.call(canary, with_progress=with_progress)
            texts = [each["params"]["message"] for each in before] + [reply["result"]["content"][0]["text"]]
            foreign += [text for text in texts if text != canary or reply["id"] != 1]
            assert len(before) == (2 if with_progress else 0)
    finally:
        await wire.close()
    return foreign


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_t82_fifty_clients_with_the_same_id_each_get_their_own_reply(era: str):
    server = {"command": sys.executable, "args": ["-S", "-E", str(SERVERS / "echoes.py")]}
    async with gateway_of({"mirror": server}, callers=CALLERS) as running:
        clients = (work(running.port, number, era) for number in range(CLIENTS))
        found = await asyncio.gather(*clients, return_exceptions=True)
    assert [each for each in found if each] == []  # neither messages of others nor errors


async def test_t82_a_cancellation_applies_to_the_request_of_its_own_client():
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


async def test_t82_log_messages_of_one_caller_reach_no_other_caller():
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

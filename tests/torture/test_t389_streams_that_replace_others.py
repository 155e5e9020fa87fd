"""T389: a client of the gateway replaces a subscription stream by another one for the same resource."""

import asyncio
import json

import aiohttp
import pytest

from tests.gateway import ADA, LEGACY, MODERN, Json, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
WATCHED = "file:///a"


class Listener:
    """A client over a WebSocket, with all its streams on one connection."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.got: list[str] = []

    async def read(self) -> None:
        async for message in self._socket:
            found = json.loads(message.data)
            self.got.append(found.get("method", "reply").rpartition("/")[2])

    async def send(self, message: Json) -> None:
        await self._socket.send_str(json.dumps({"jsonrpc": "2.0", **message}))

    async def listen(self, request_id: int, *uris: str) -> None:
        params = {"notifications": {"resourceSubscriptions": uris}, "_meta": META}
        await self.send({"id": request_id, "method": "subscriptions/listen", "params": params})

    async def ask(self, request_id: int) -> None:
        replies = self.got.count("reply")
        await self.send({"id": request_id, "method": "tools/list", "params": {"_meta": META}})
        await until(lambda: self.got.count("reply") > replies)


@pytest.mark.requirement("GWY-2")
@pytest.mark.parametrize("together", [False, True], ids=["one after the other", "at once"])
async def test_t389_the_new_stream_reports_changes(together: bool):
    office = Office((LEGACY,))
    async with gateway_of({"office": office}, plain_names=True) as running, aiohttp.ClientSession() as http:
        url, headers = f"http://127.0.0.1:{running.port}/ws", {"Authorization": f"Bearer {ADA}"}
        async with http.ws_connect(url, protocols=["mcp"], headers=headers) as socket:
            listener = Listener(socket)
            reading = asyncio.create_task(listener.read())
            await listener.listen(1, WATCHED)
            if not together:
                await until(lambda: listener.got.count("acknowledged") == 1)
            await listener.listen(2, WATCHED, "file:///b")
            await until(lambda: listener.got.count("acknowledged") == 2)
            await listener.send({"method": "notifications/cancelled", "params": {"requestId": 1}})
            await listener.ask(3)
            assert office.subscribed == [WATCHED, "file:///b"]
            await running.host.call("mcp__office__touch", {"uri": WATCHED})
            await until(lambda: "updated" in listener.got)
            await listener.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
            await until(lambda: office.subscribed == [])
            reading.cancel()

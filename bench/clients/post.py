"""The practical limit over HTTP: an aiohttp POST and msgspec by hand, without limits or recovery."""

from typing import Any

import aiohttp
import msgspec

from bench.clients import ToolClient
from bench.clients.raw import META, Request, decode_called, decode_listed, decode_reply, encode

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
}


class Client(ToolClient):
    async def connect(self, commands: list[list[str]]) -> None:
        self.url = commands[0][0]
        self.last = 0
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        await self.request("server/discover", {})

    async def request(self, method: str, params: dict[str, Any]) -> msgspec.Raw:
        self.last += 1
        body = encode(Request(self.last, method, {**params, "_meta": META}))
        headers = {**HEADERS, "Mcp-Method": method}
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        async with self.session.post(self.url, data=body, headers=headers) as response:
            data = await response.read()
        if response.content_type == "text/event-stream":
            data = data.partition(b"data: ")[2].partition(b"\n")[0]
        return decode_reply(data).result

    async def text(self, tool: str, arguments: dict[str, Any]) -> str:
        result = await self.request("tools/call", {"name": tool, "arguments": arguments})
        return decode_called(result).content[0].text

    async def list_tools(self) -> int:
        return len(decode_listed(await self.request("tools/list", {})).tools)

    async def close(self) -> None:
        await self.session.close()

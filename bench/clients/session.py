"""Dragoman's session on its own: protocol and transport, without catalog, permissions and events."""

import asyncio
from typing import Any

from bench.clients import ToolClient, entry_of
from bench.clients.raw import decode_called
from bench.direct import open_session
from dragoman.catalog.listing import read_list


class Client(ToolClient):
    async def connect(self, commands: list[list[str]]) -> None:
        entries = [entry_of(command) for command in commands]
        self.sessions = await asyncio.gather(*map(open_session, entries))
        self.first = self.sessions[0]

    async def text(self, tool: str, arguments: dict[str, Any]) -> str:
        params = {"name": tool, "arguments": arguments}
        result = await self.first.request("tools/call", params, timeout_seconds=60)
        return decode_called(result).content[0].text

    async def list_tools(self) -> int:
        listed = await read_list(lambda params: self.first.request("tools/list", params))
        return len(listed.items)

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self.sessions))

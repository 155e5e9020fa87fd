"""The client of FastMCP 4, used as its documentation shows."""

import asyncio
from typing import Any

from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport

from bench.clients import Owner, ToolClient


class Client(ToolClient):
    async def connect(self, commands: list[list[str]]) -> None:
        self.owners = [Owner() for _ in commands]
        clients = [
            FastClient(StdioTransport(first, args, keep_alive=False) if args else first)
            for first, *args in commands
        ]
        opening = [owner.open(client) for owner, client in zip(self.owners, clients, strict=True)]
        self.first = (await asyncio.gather(*opening))[0]

    async def text(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self.first.call_tool(tool, arguments)).content[0].text

    async def list_tools(self) -> int:
        return len(await self.first.list_tools())

    async def close(self) -> None:
        await asyncio.gather(*(owner.close() for owner in self.owners))

"""The client of the official SDK, package `mcp`, used as its documentation shows."""

import asyncio
from typing import Any

from mcp import Client as SdkClient
from mcp import StdioServerParameters, types

from bench.clients import Owner, ToolClient


class Client(ToolClient):
    async def connect(self, commands: list[list[str]]) -> None:
        self.owners = [Owner() for _ in commands]
        servers = [
            StdioServerParameters(command=first, args=args) if args else first for first, *args in commands
        ]
        opening = [owner.open(SdkClient(server)) for owner, server in zip(self.owners, servers, strict=True)]
        self.first = (await asyncio.gather(*opening))[0]

    async def text(self, tool: str, arguments: dict[str, Any]) -> str:
        return (await self.first.call_tool(tool, arguments)).content[0].text

    async def list_tools(self) -> int:
        return len((await self.first.list_tools()).tools)

    async def parse_tools(self, reply: bytes) -> int:
        """As its stdio transport and its session do, one after the other."""
        message = types.jsonrpc_message_adapter.validate_json(reply, by_name=False)
        return len(types.ListToolsResult.model_validate(message.result, by_name=False).tools)

    async def close(self) -> None:
        await asyncio.gather(*(owner.close() for owner in self.owners))

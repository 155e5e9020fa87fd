"""Dragoman's Host, as a program uses it: every call goes through the whole pipeline."""

from typing import Any

from bench.clients import ToolClient, entry_of
from dragoman import Host


class Client(ToolClient):
    async def connect(self, commands: list[list[str]]) -> None:
        servers = {f"s{n}": entry_of(command) for n, command in enumerate(commands)}
        self.host = Host(servers=servers, permission_mode="bypassPermissions")
        await self.host.__aenter__()
        await self.host.ready(timeout=60)
        for view in self.host.servers.values():
            if view.status != "connected":
                raise RuntimeError(f"{view.name} is {view.status}: {view.reason}")

    async def text(self, tool: str, arguments: dict[str, Any]) -> str:
        outcome = await self.host.call(f"mcp__s0__{tool}", arguments)
        return outcome.text

    async def list_tools(self) -> int:
        return len(self.host.tools())

    async def close(self) -> None:
        await self.host.__aexit__(None, None, None)

"""Dragoman's Host, as a program uses it: every call goes through the whole pipeline."""

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from bench.clients import ToolClient, entry_of
from dragoman import Host
from dragoman.catalog.catalog import Catalog, ServerTools
from dragoman.catalog.listing import read_list
from dragoman.names import ServerName
from dragoman.wire.codec import decode_envelope


class Client(ToolClient):
    async def connect(self, commands: list[list[str]]) -> None:
        servers = {f"s{n}": entry_of(command) for n, command in enumerate(commands)}
        self.host = self.make(servers)
        await self.host.__aenter__()
        await self.host.ready(timeout=60)
        for view in self.host.servers.values():
            if view.status != "connected":
                raise RuntimeError(f"{view.name} is {view.status}: {view.reason}")

    def make(self, servers: dict[str, Any]) -> Host:
        return Host(servers, permission_mode="bypassPermissions")

    async def big(self, size: int) -> int:
        outcome = await self.host.call("mcp__s0__big", {"size": size}, raw=True)
        return len(outcome.text)

    async def text(self, tool: str, arguments: dict[str, Any]) -> str:
        outcome = await self.host.call(f"mcp__s0__{tool}", arguments)
        return outcome.text

    async def list_tools(self) -> int:
        return len(self.host.tools())

    async def parse_tools(self, reply: bytes) -> int:
        """From the reply's bytes to a pool of named tools whose texts are cleaned."""
        raw = decode_envelope(reply).result

        async def fetch(params: Mapping[str, Any]) -> Raw:
            return raw

        tools, catalog = ServerTools(ServerName("s0")), Catalog()
        tools.set(await read_list(fetch))
        catalog.add(tools)
        return len([(tool.name, tool.title, tool.description) for tool in catalog.tools()])

    async def close(self) -> None:
        await self.host.__aexit__(None, None, None)

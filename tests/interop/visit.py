"""Connects to one real server: the expected revision is used, and no process or file remains afterwards."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman import CallOutcome, Host, ServerStatus

CONNECT_SECONDS = 50.0


class Visit:
    def __init__(self, host: Host) -> None:
        self.host = host

    @property
    def view(self) -> ServerStatus:
        return self.host.servers["visited"]

    def tool_names(self) -> set[str]:
        return {tool.wire_name for tool in self.host.tools()}

    async def outcome(self, tool: str, **arguments: Any) -> CallOutcome:
        return await self.host.call(f"mcp__visited__{tool}", arguments)

    async def as_it_came(self, tool: str, **arguments: Any) -> CallOutcome:
        """The same, with its blocks as the server made them."""
        outcome = await self.host.call(f"mcp__visited__{tool}", arguments, raw=True)
        return outcome.raise_for_error()

    async def call(self, tool: str, **arguments: Any) -> CallOutcome:
        """A call that is meant to succeed."""
        return (await self.outcome(tool, **arguments)).raise_for_error()


@asynccontextmanager
async def visit(entry: Mapping[str, Any], revision: str) -> AsyncIterator[Visit]:
    async with Host({"visited": entry}, permission_mode="bypassPermissions") as host:
        view = (await host.ready(timeout=CONNECT_SECONDS))["visited"]
        assert (view.status, view.reason, view.problems) == ("connected", None, ())
        assert view.protocol_version == revision
        assert view.tool_count == len(host.tools()) > 0
        yield Visit(host)
    assert not Path(f"/proc/{view.pid}").exists()

"""The same few tools, offered by every kind of server that a host can connect to.

`add` sums, `count` reports progress, `fail` fails, `hold` never answers, `held` returns how often `hold` was
started and cancelled, `crash` ends the process. As a program it serves over stdio:

    python workshop.py ours [--speaking FILE] [--gate FILE]   a server of Dragoman, with the revisions in FILE
    python workshop.py sdk                                    a server on the official SDK

With `--gate` a server starts to serve when that file exists.
"""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from dragoman.protocol import REVISIONS
from dragoman.testing import InMemoryServer, ToolContext

TOOLS = ["add", "count", "crash", "fail", "held", "hold"]
INTEGER = {"type": "integer"}


class Held:
    """How often `hold` was begun, and given up before it ended."""

    def __init__(self) -> None:
        self.begun = 0
        self.given_up = 0

    def __str__(self) -> str:
        return f"{self.begun} begun, {self.given_up} given up"

    async def hold(self) -> str:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return "never"


def our_server(revisions: tuple[str, ...] = REVISIONS) -> InMemoryServer:
    return furnish_ours(InMemoryServer("workshop", revisions=revisions))


def furnish_ours(server: InMemoryServer) -> InMemoryServer:
    held = Held()

    def add(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        total = arguments["a"] + arguments["b"]
        return {"content": [{"type": "text", "text": str(total)}], "structuredContent": {"result": total}}

    def count(arguments: dict[str, Any], context: ToolContext) -> str:
        for number in range(1, arguments["to"] + 1):
            context.progress(number, arguments["to"], f"at {number}")
        return "done"

    def fail(arguments: dict[str, Any], context: ToolContext) -> str:
        raise ValueError("no luck")

    server.add_tool("add", add, properties={"a": INTEGER, "b": INTEGER}, required=("a", "b"))
    server.add_tool("count", count, properties={"to": INTEGER}, required=("to",))
    server.add_tool("fail", fail)
    server.add_tool("hold", lambda arguments, context: held.hold())
    server.add_tool("held", lambda arguments, context: str(held))
    server.add_tool("crash", lambda arguments, context: os._exit(7))
    return server


def sdk_server(**options: Any) -> Any:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

    server: Any = MCPServer("workshop", log_level="CRITICAL", **options)
    _furnish_theirs(server, Context)
    return server


def fastmcp_server() -> Any:
    import fastmcp

    server = fastmcp.FastMCP("workshop")
    _furnish_theirs(server, fastmcp.Context)
    return server


def _furnish_theirs(server: Any, context_type: Any) -> None:
    held = Held()

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    async def count(to: int, context: context_type) -> str:
        for number in range(1, to + 1):
            await context.report_progress(number, to, f"at {number}")
        return "done"

    @server.tool()
    def fail() -> str:
        raise ValueError("no luck")

    @server.tool(name="held")
    def tell_held() -> str:
        return str(held)

    @server.tool()
    def crash() -> str:
        os._exit(7)

    server.tool(name="hold")(held.hold)


def workshop(kind: str, *arguments: str | Path, **fields: Any) -> dict[str, Any]:
    """The config entry that starts this file; `fields` are further fields of the entry."""
    return {"command": sys.executable, "args": [__file__, kind, *map(str, arguments)], **fields}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("ours", "sdk"))
    parser.add_argument("--speaking", type=Path)
    parser.add_argument("--gate", type=Path)
    asked = parser.parse_args()
    while asked.gate and not asked.gate.exists():
        time.sleep(0.01)
    if asked.kind == "sdk":
        sdk_server().run("stdio")
    else:
        our_server(tuple(asked.speaking.read_text().split()) if asked.speaking else REVISIONS).run_stdio()


if __name__ == "__main__":
    main()

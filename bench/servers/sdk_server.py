"""A server on the official SDK: the common case, where the server and not the client is the bottleneck."""

import os
import sys

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

calls = 0


def tool(name: str, **properties: dict[str, str]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name=name, description=name, input_schema=schema)


async def list_tools(context, params) -> ListToolsResult:
    return ListToolsResult(tools=[tool("echo", text={"type": "string"}), tool("count")])


async def call_tool(context, params) -> CallToolResult:
    global calls
    if params.name == "count":
        return CallToolResult(content=[TextContent(type="text", text=str(calls))])
    calls += 1
    return CallToolResult(content=[TextContent(type="text", text=params.arguments["text"])])


async def main() -> None:
    server = Server("sdk", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    if "--cpu" in sys.argv:
        os.sched_setaffinity(0, {int(sys.argv[sys.argv.index("--cpu") + 1])})
    anyio.run(main)

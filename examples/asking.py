"""A program that asks a person in the terminal before it makes a call: python examples/asking.py"""

import asyncio

from dragoman import Host, TerminalInteraction
from dragoman.testing import InMemoryServer


def files() -> InMemoryServer:
    """A server with one read-only and one destructive tool."""
    server = InMemoryServer("files")
    path = {"path": {"type": "string"}, "reason": {"type": "string"}}
    server.add_tool(
        "read_file",
        lambda arguments, context: f"{arguments['path']}: 12 lines",
        description="Reads a file.",
        properties=path,
        annotations={"readOnlyHint": True, "openWorldHint": False},
    )
    server.add_tool(
        "delete_file",
        lambda arguments, context: f"{arguments['path']} is deleted",
        description="Deletes a file.",
        properties=path,
        title="Delete a file",
        annotations={"destructiveHint": True, "openWorldHint": False},
    )
    return server


async def main() -> None:
    # Calls of read-only tools are allowed; a person is asked about the others.
    rules = {"allow": ["mcp__files(readOnly)"]}
    async with Host.configured(
        servers={"files": files()}, rules=rules, interaction=TerminalInteraction()
    ) as host:
        await host.ready()
        print((await host.call("mcp__files__read_file", {"path": "notes/2026.md"})).text)
        reason = "It was moved to the archive last week, and the copy there has been checked."
        print((await host.call("mcp__files__delete_file", {"path": "notes/2026.md", "reason": reason})).text)


asyncio.run(main())

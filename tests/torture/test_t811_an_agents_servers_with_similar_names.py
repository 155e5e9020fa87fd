"""T811: an agent whose file names a server has no tools of another server whose name begins with that
name."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.definitions import parse
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-1")


def server(name: str, tool: str) -> InMemoryServer:
    made = InMemoryServer(name)
    made.add_tool(tool, lambda arguments, _: "done")
    return made


@pytest.mark.parametrize(
    ("tools", "found"),
    [
        ("mcp__a", ["mcp__a__read"]),
        ("mcp__a__b", []),
        ("mcp__a__*", ["mcp__a__b__delete", "mcp__a__read"]),
        ("mcp__a, mcp__a__b__delete", ["mcp__a__b__delete", "mcp__a__read"]),
    ],
)
async def test_t811_only_the_named_server_is_matched(tmp_path: Path, tools: str, found: list[str]):
    agent = parse(f"---\ntools: {tools}\n---\n", tmp_path / "a.md", "user")
    async with Host({"a": server("a", "read"), "a__b": server("a__b", "delete")}) as host:
        await host.ready()
        async with open_agent_tools(host, Folders(tmp_path), agent) as agent_tools:
            await agent_tools.wait_until_connected()
            assert [tool.name for tool in agent_tools.servers.tools()] == found

"""T611: an agent does not have a tool that its file disallows, however the server or the file spells the
name; nor the resources of a disallowed server."""

import sys
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.definitions import parse
from dragoman.errors import UnknownTool

pytestmark = pytest.mark.requirement("PRM-1")
SERVER = """
import json, sys

NAMES = ("delete_file", "delete.file", "read")
ANSWERS = {
    "initialize": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1"},
                   "capabilities": {"tools": {}, "resources": {}}},
    "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]},
    "resources/list": {"resources": [{"name": "r", "uri": "a://r"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "tools/call": {"content": []},
    "resources/read": {"contents": [{"uri": "a://r", "text": "text"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]}
        print(json.dumps(answer), flush=True)
"""


async def names_of(tmp_path: Path, disallowed: str) -> set[str]:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    agent = parse(f"---\ndisallowedTools: {disallowed}\n---\n", tmp_path / "a.md", "user")
    entry = {"command": sys.executable, "args": [str(file)], "protocol": "legacy"}
    async with Host({"home_drive": entry}, permission_mode="bypassPermissions") as host:
        await host.ready()
        async with open_agent_tools(host, Folders(tmp_path), agent) as tools:
            await tools.wait_until_connected()
            every = [tool.name for tool in host.tools()]
            called = [(await tools.servers.call(name)).error for name in every]
            offered: set[str] = {tool.name for tool in tools.toolbox.tools()}
            assert {name for name, error in zip(every, called) if error is None} == offered & {*every}
            read = await tools.toolbox.call("read_mcp_resource", {"server": "home_drive", "uri": "a://r"})
            return offered if isinstance(read.error, UnknownTool) else {*offered, "read_mcp_resource"}


@pytest.mark.parametrize(
    "disallowed", ["mcp__home_drive__delete_file", "mcp__Home_Drive__DELETE_FILE", "mcp__home_drive__delete*"]
)
async def test_t611_a_disallowed_tool_is_matched_by_every_name(tmp_path: Path, disallowed: str):
    found = await names_of(tmp_path, disallowed)
    assert {name for name in found if name.startswith("mcp__")} == {"mcp__home_drive__read"}
    assert {"Bash", "read_mcp_resource"} <= found


@pytest.mark.parametrize("disallowed", ["mcp__home_drive", "mcp__Home.Drive", "list_mcp_resources"])
async def test_t611_resources_of_a_disallowed_server_are_not_read(tmp_path: Path, disallowed: str):
    assert "read_mcp_resource" not in await names_of(tmp_path, f"[{disallowed}, bash]")


async def test_t611_built_in_tools_are_disallowed_in_any_letter_case(tmp_path: Path):
    assert "Bash" not in await names_of(tmp_path, "bash")

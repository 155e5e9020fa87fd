"""T314: an allow rule for a person's server does not apply to an agent's own server of a similar name."""

import sys
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError
from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-8")
SERVER = """
from dragoman.testing import InMemoryServer

server = InMemoryServer("drive")
server.add_tool("write", lambda arguments, context: "written")
server.run_stdio()
"""


@pytest.mark.parametrize("rule", ["mcp__home_drive__*", "mcp__home_drive"])
async def test_t314_a_rule_does_not_apply_to_an_agents_own_server_with_the_same_tool_names(
    home: Path, rule: str
):
    (home / "server.py").write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(home / "server.py")]}
    projects.user(home, {"mcpServers": {"home.drive": entry}, "permissions": {"allow": [rule]}})
    called: list[str] = []
    async with Host(Sources.here(), permission_mode="dontAsk") as host:
        await host.ready()
        assert (await host.call("mcp__home_drive__write")).text == "written"
        try:
            async with host.for_agent([{"home_drive": entry}], start_in="own") as servers:
                await servers.ready()
                called += [(await servers.call(tool.name)).text for tool in servers.tools()]
        except ConfigError as error:
            called.append(str(error))
    assert called == ["the agent's own server 'home_drive' has the name of one of the host's"]

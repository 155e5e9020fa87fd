"""T338: an error about a misspelled tool name does not suggest tools that a rule denies."""

import sys

import pytest

from dragoman import Host

pytestmark = pytest.mark.requirement("PRM-1")
DEMO = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}


@pytest.mark.parametrize("rule", ["mcp__demo__add", "mcp__demo__a*", "mcp__*(readOnly)"])
async def test_t338_a_denied_tool_is_not_suggested(rule: str):
    async with Host({"demo": DEMO}, rules={"deny": [rule]}, permission_mode="bypassPermissions") as host:
        await host.ready()
        for way in (host.call, host.toolbox().call):
            outcome = await way("mcp__demo__ad")
            assert outcome.error is not None
            assert outcome.error.code == "unknown-tool"
            assert "mcp__demo__add" not in outcome.text


async def test_t338_other_tools_are_suggested():
    async with Host({"demo": DEMO}, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert "Did you mean mcp__demo__add" in (await host.call("mcp__demo__ad")).text

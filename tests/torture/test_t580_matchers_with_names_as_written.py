"""T580: a matcher that contains the literal name of a server or tool matches it, also if the name has
characters of regular expressions."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from dragoman.hooks import matchers
from dragoman.hooks.declared import hook
from tests.servers import SERVER_PROGRAMS

pytestmark = pytest.mark.requirement("PRM-5")


def entry(tool: str) -> dict[str, Any]:
    pages = json.dumps([{"tools": [{"name": tool, "inputSchema": {"type": "object"}}]}])
    return {
        "command": sys.executable,
        "args": ["-S", "-E", str(SERVER_PROGRAMS / "lists_given_pages.py"), pages],
    }


@pytest.mark.parametrize(
    ("server", "tool", "matcher"),
    [
        ("@org/pkg", "delete", "mcp__@org/pkg__*"),
        ("my files", "delete", "mcp__my files__*"),
        ("my files", "delete", "mcp__other one__* | mcp__my files__del*"),
        ("e:f", "delete", "mcp__e:f__*"),
        ("c++", "delete", "mcp__c++__delete"),
        ("c++", "delete", "mcp__c++"),
        ("files (work)", "delete", "mcp__files (work)__*"),
        ("s", "rm[1]", "mcp__s__rm[1]"),
        ("s", "rm?", "mcp__s__rm?"),
    ],
)
async def test_t580_a_hook_with_the_literal_name_refuses_the_call(
    home: Path, server: str, tool: str, matcher: str
):
    def refuse(given: Any) -> dict[str, str]:
        return {"decision": "block", "reason": "no"}

    hooks = [hook(refuse, "PreToolUse", matcher=matcher)]
    async with Host({server: entry(tool)}, hooks=hooks, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        (found,) = host.tools()
        outcome = await host.call(found.name)
    assert isinstance(outcome.error, PermissionRefused)


@pytest.mark.parametrize("matcher", ["mcp__(a|b)__.*", "mcp__[^g].*", "mcp__a__(x|y)?"])
def test_t580_a_regular_expression_matches_no_other_tool(matcher: str):
    assert not matchers.parse(matcher).may_mean(["mcp__g__z", "bash", "mcp__g"])

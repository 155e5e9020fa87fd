"""T685: a hook whose matcher cannot match any name as written matches the tools that it probably names."""

from pathlib import Path

import pytest

from dragoman import Host, hook
from dragoman.hooks.matchers import parse
from dragoman.testing import InMemoryServer
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")

MATCHERS = [
    "mcp__box__read, mcp__box__delete",
    "mcp__box__read,mcp__box__delete",
    "mcp__box__read; mcp__box__delete",
    "mcp__box__read mcp__box__delete",
    "mcp__box__read or mcp__box__delete",
    "Write, MCP__BOX__DELETE",
    "mcp__box__delete(path=*)",
    "mcp__box__*(path=/etc/*, name=a)",
    "[mcp__box__delete]",
    "'mcp__box__delete'",
    '"mcp__box__read", "mcp__box__delete"',
    "/mcp__box__delete/",
    "mcp__box__read$, ^mcp__box__delete$",
]
EXPRESSIONS = [
    "mcp__box__.*(read|list)",
    "mcp__box__(?:read|list)",
    "mcp__box__[rl,.*]+",
    "mcp__box__r{1,3}ead",
    "^mcp__box__read$",
    "mcp__box__read\\b, mcp__box__list",
    "mcp__my box__delete",
]


def box() -> InMemoryServer:
    server = InMemoryServer("box")
    server.add_tool("delete", lambda arguments, _: "deleted")
    return server


@pytest.mark.parametrize("matcher", MATCHERS)
async def test_t685_a_hook_refuses_the_probably_named_tools(home: Path, matcher: str):
    refusing = hook(lambda given: {"decision": "block", "reason": "no"}, "PreToolUse", matcher=matcher)
    async with Host({"box": box()}, hooks=[refusing], permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.call("mcp__box__delete")
    assert outcome.error is not None
    assert outcome.text.startswith("mcp__box__delete was not allowed: refused by the hook")


async def test_t685_a_managed_hook_refuses_the_probably_named_tools(home: Path):
    entry = {"type": "command", "command": "echo no >&2; exit 2"}
    groups = [{"matcher": "Write, mcp__box__delete", "hooks": [entry]}]
    projects.managed(home, {"hooks": {"PreToolUse": groups}})
    async with Host({"box": box()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.call("mcp__box__delete")
    assert outcome.error is not None
    assert (
        outcome.text == "mcp__box__delete was not allowed: refused by the hook echo (the administrator's): no"
    )


@pytest.mark.parametrize("matcher", EXPRESSIONS)
def test_t685_a_valid_expression_matches_no_other_tool(matcher: str):
    assert not parse(matcher).may_mean(["mcp__box__delete"])


@pytest.mark.parametrize("matcher", MATCHERS)
def test_t685_a_hook_with_such_a_matcher_cannot_allow(matcher: str):
    assert not parse(matcher)("mcp__box__delete")

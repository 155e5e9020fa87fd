"""T614: a hook that blocks on errors, and whose answer misspells a change (letter case, underscores),
blocks: the result that it should replace, or the arguments that it should change, are not passed on
unchanged."""

from typing import Any

import pytest

from dragoman import Host, hook
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-5")

SECRET = "row of alice: 4711"
PLACES = ("hookspecificoutput", "hook_specific_output", " hookSpecificOutput")
RESULTS = [
    *({place: {"updatedMCPToolOutput": "[removed]"}} for place in PLACES),
    {"hookSpecificOutput": {"updatedMcpToolOutput": "[removed]"}},
    {"hookSpecificOutput": {"updated_mcp_tool_output": "[removed]"}},
    {"updatedMcpToolOutput": "[removed]"},
]
ARGUMENTS = [
    *({place: {"updatedInput": {"table": "public"}}} for place in PLACES),
    {"hookSpecificOutput": {"updated_input": {"table": "public"}}},
    {"hookSpecificOutput": {"UpdatedInput": {"table": "public"}}},
]


def rows(seen: list[Any]) -> InMemoryServer:
    def row(arguments: dict[str, Any], context: object) -> str:
        seen.append(arguments)
        return SECRET

    server = InMemoryServer("s")
    server.add_tool("row", row)
    return server


@pytest.mark.parametrize("answer", RESULTS, ids=str)
async def test_t614_a_result_is_withheld_if_the_hook_misspells_its_change(answer: dict[str, Any]):
    hooks = [hook(lambda event: answer, "PostToolUse", blocks_on_error=True)]
    async with Host({"s": rows([])}, permission_mode="bypassPermissions", hooks=hooks) as host:
        await host.ready()
        assert SECRET not in repr(await host.call("mcp__s__row"))


@pytest.mark.parametrize("answer", ARGUMENTS, ids=str)
async def test_t614_arguments_are_not_sent_if_the_hook_misspells_their_change(answer: dict[str, Any]):
    seen: list[Any] = []
    hooks = [hook(lambda event: answer, "PreToolUse", blocks_on_error=True)]
    async with Host({"s": rows(seen)}, permission_mode="bypassPermissions", hooks=hooks) as host:
        await host.ready()
        assert (await host.call("mcp__s__row", {"table": "secret"})).is_error
    assert seen == []

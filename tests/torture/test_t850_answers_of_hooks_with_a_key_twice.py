"""T850: the answer of a hook has a key twice, and one of the two values is a refusal. JSON does not say which
value counts. The last one did, so that a refusal before it was lost without a report."""

import shlex

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from dragoman.hooks.declared import CommandHook, Hook
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-5")
REFUSALS = [
    '{"decision": "block", "decision": "approve"}',
    '{"decision": "block", "decision": null}',
    '{"continue": false, "continue": true}',
    '{"hookSpecificOutput": {"permissionDecision": "deny"}, "hookSpecificOutput": {}}',
    '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "allow"}}',
]
CHANGE_AND_ALLOW = (
    '{"hookSpecificOutput": {"updatedInput": {"n": 1}}, '
    '"hookSpecificOutput": {"permissionDecision": "allow"}}'
)


async def outcome_with(answer: str, *, mode: str, blocks: bool = False) -> object:
    server = InMemoryServer("box")
    server.add_tool("echo", lambda arguments, context: "hi")
    what = CommandHook(f"printf %s {shlex.quote(answer)}")
    hook = Hook(event="PreToolUse", what=what, name="h", blocks_on_error=blocks)
    async with Host({"box": server}, permission_mode=mode, hooks=[hook]) as host:  # pyright: ignore[reportArgumentType]
        await host.ready(timeout=20)
        outcome = await host.call("mcp__box__echo")
    return type(outcome.error) if outcome.error else outcome.text


@pytest.mark.parametrize("answer", REFUSALS)
async def test_t850_a_refusal_counts_although_another_value_follows(answer: str):
    assert await outcome_with(answer, mode="bypassPermissions") is PermissionRefused


async def test_t850_an_allow_does_not_count_where_a_change_of_the_arguments_is_lost():
    assert await outcome_with(CHANGE_AND_ALLOW, mode="dontAsk") is PermissionRefused


async def test_t850_such_an_answer_is_an_error_of_the_hook():
    assert await outcome_with(CHANGE_AND_ALLOW, mode="bypassPermissions", blocks=True) is PermissionRefused


async def test_t850_keys_of_different_objects_may_be_equal():
    answer = '{"reason": "r", "hookSpecificOutput": {"permissionDecision": "allow", "x": {"reason": "r"}}}'
    assert await outcome_with(answer, mode="dontAsk") == "hi"

"""T401: hooks of the person cannot override a managed hook that asks, denies or changes arguments."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.testing import InMemoryServer, ScriptedUser
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")
TOOL = "mcp__box__echo"


def saying(**answer: Any) -> dict[str, Any]:
    """A hook that always returns this answer."""
    return {"type": "command", "command": f"echo {shlex.quote(json.dumps({'hookSpecificOutput': answer}))}"}


def of(event: str, *hooks: Mapping[str, Any]) -> dict[str, Any]:
    return {event: [{"hooks": list(hooks)}]}


async def called(home: Path, managed: Mapping[str, Any], own: Mapping[str, Any], user: ScriptedUser) -> str:
    """The outcome of a call that the person's rules allow."""
    projects.managed(home, {"hooks": managed})
    projects.user(home, {"hooks": own, "permissions": {"allow": ["mcp__box"]}})
    box = InMemoryServer("box")
    box.add_tool("echo", lambda arguments, context: str(arguments["text"]))
    async with Host.configured(servers={"box": box}, interaction=user) as host:
        await host.ready()
        return (await host.call(TOOL, {"text": "plain"})).text


async def test_t401_a_personal_hook_does_not_answer_the_question_of_a_managed_hook(home: Path):
    user = ScriptedUser()
    asks = of("PreToolUse", saying(permissionDecision="ask"))
    allows = of("PermissionRequest", saying(decision={"behavior": "allow"}))
    assert await called(home, asks, allows, user) == f"{TOOL} was not allowed: denied by the person"
    assert [question.tool for question in user.asked] == [TOOL]


async def test_t401_a_personal_hook_answers_the_question_of_another_personal_hook(home: Path):
    asks = of("PreToolUse", saying(permissionDecision="ask"))
    allows = of("PermissionRequest", saying(decision={"behavior": "allow"}))
    assert await called(home, {}, {**asks, **allows}, ScriptedUser()) == "plain"


async def test_t401_a_managed_hooks_change_is_applied_last_if_the_person_declares_the_same_command(
    home: Path,
):
    cleans = saying(updatedInput={"text": "clean"})
    own = of("PreToolUse", cleans, saying(updatedInput={"text": "secret"}))
    assert await called(home, of("PreToolUse", cleans), own, ScriptedUser()) == "clean"


async def test_t401_a_managed_hooks_timeout_applies_if_the_person_declares_the_same_command(
    home: Path,
):
    slow = {"type": "command", "command": "sleep 0.3; echo no >&2; exit 2"}
    managed = of("PreToolUse", {**slow, "onError": "ignore"})
    own = of("PreToolUse", {**slow, "timeout": 0.05})
    assert "refused by the hook" in await called(home, managed, own, ScriptedUser())


REFUSES_SECRET = {"type": "command", "command": "if grep -q secret; then echo no secrets >&2; exit 2; fi"}


async def test_t401_a_managed_hook_receives_the_arguments_changed_by_a_personal_hook(home: Path):
    own = of("PreToolUse", saying(updatedInput={"text": "secret"}))
    shown = await called(home, of("PreToolUse", REFUSES_SECRET), own, ScriptedUser())
    assert shown.endswith("no secrets")
    harmless = of("PreToolUse", saying(updatedInput={"text": "other"}))
    assert await called(home, of("PreToolUse", REFUSES_SECRET), harmless, ScriptedUser()) == "other"

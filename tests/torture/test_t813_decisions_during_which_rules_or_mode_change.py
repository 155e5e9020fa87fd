"""T813: if a rule or the permission mode begins to require a person while a classifier or a hook decides, a
person is asked: their allow decision was applied although neither could decide any more."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import Host, hook
from dragoman.permissions.classifier import Classification
from dragoman.testing import InMemoryServer, ScriptedUser
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")


class Meanwhile:
    """A classifier, and the hook of an approver, which allow everything and run a callback meanwhile."""

    host: Host

    def __init__(self, act: Callable[[Host], object]) -> None:
        self._act = act

    async def judge(self, call: object, conversation: object) -> Classification:
        self._act(self.host)
        return Classification("allow", "it seems fine")

    async def approve(self, given: object) -> dict[str, object]:
        self._act(self.host)
        await self.host.reload()
        return {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}


def box() -> InMemoryServer:
    server = InMemoryServer("box")
    server.add_tool("act", lambda arguments, _: "done")
    return server


async def outcome(meanwhile: Meanwhile, user: ScriptedUser) -> bool:
    """Whether the call was made."""
    async with Host(
        {"box": box()}, classifier=meanwhile, interaction=user, permission_mode="auto"
    ) as meanwhile.host:
        await meanwhile.host.ready()
        return not (await meanwhile.host.call("mcp__box__act")).is_error


CHANGES: dict[str, Callable[[Host], object]] = {
    "the mode": lambda host: host.set_permission_mode("default"),
    "a rule": lambda host: host.add_rule("ask", "mcp__box__act"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_t813_a_person_is_asked_instead_of_the_classifier(change: Callable[[Host], object]):
    user = ScriptedUser(False)
    assert not await outcome(Meanwhile(change), user)
    assert [question.tool for question in user.asked] == ["mcp__box__act"]


async def test_t813_without_a_change_the_classifier_decides():
    user = ScriptedUser(False)
    assert await outcome(Meanwhile(lambda host: None), user)
    assert user.asked == []


async def test_t813_an_allow_rule_added_meanwhile_allows():
    user = ScriptedUser(False)
    assert await outcome(Meanwhile(lambda host: host.add_rule("allow", "mcp__box__act")), user)
    assert user.asked == []


@pytest.mark.parametrize("rule", ["mcp__box__act", "mcp__other"])
async def test_t813_a_person_is_asked_instead_of_a_hook_where_a_managed_rule_requires_it(
    home: Path, rule: str
):
    user = ScriptedUser(False)
    meanwhile = Meanwhile(lambda host: projects.managed(home, {"permissions": {"ask": [rule]}}))
    hooks = [hook(meanwhile.approve, "PermissionRequest")]
    async with Host.configured(servers={"box": box()}, hooks=hooks, interaction=user) as meanwhile.host:
        await meanwhile.host.ready()
        is_made = not (await meanwhile.host.call("mcp__box__act")).is_error
    assert (is_made, len(user.asked)) == ((False, 1) if rule == "mcp__box__act" else (True, 0))

"""T400: a rule that asks about a server also asks about its resources; neither a classifier nor, for
managed rules, a hook may answer."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman import Classification, Host, hook
from dragoman.permissions.rules import Call
from dragoman.testing import ScriptedUser
from tests.servers.library import LEGACY, Library
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")
READ = {"server": "lib", "uri": "book://divan"}


class AllowsEverything:
    def __init__(self) -> None:
        self.judged: list[str] = []

    async def judge(self, call: Call, conversation: Sequence[object] = ()) -> Classification:
        self.judged.append(call.tool)
        return Classification("allow", "it is harmless")


@pytest.mark.parametrize("rule", ["mcp__lib", "mcp__lib__*", "mcp__*"])
async def test_t400_a_classifier_does_not_answer_for_the_person(rule: str):
    classifier, user = AllowsEverything(), ScriptedUser()
    async with Host(
        {"lib": Library(revisions=LEGACY)},
        rules={"ask": [rule]},
        permission_mode="auto",
        classifier=classifier,
        interaction=user,
    ) as host:
        await host.ready()
        await host.toolbox().call("read_mcp_resource", READ)
    assert classifier.judged == []
    assert [question.reason for question in user.asked] == [f"ask rule {rule} of dynamic (code)"]


@pytest.mark.parametrize("own", [[], ["read_mcp_resource"]])
async def test_t400_a_hook_does_not_answer_the_question_of_a_managed_rule(home: Path, own: list[str]):
    projects.managed(home, {"permissions": {"ask": ["mcp__lib"]}})
    projects.user(home, {"permissions": {"ask": own}})
    answer = {"hookSpecificOutput": {"decision": {"behavior": "allow"}}}
    allows = hook(lambda given: answer, "PermissionRequest")
    user = ScriptedUser()
    async with Host.configured(
        servers={"lib": Library(revisions=LEGACY)}, hooks=[allows], interaction=user
    ) as host:
        await host.ready()
        await host.toolbox().call("read_mcp_resource", READ)
    (question,) = user.asked
    assert question.reason.startswith("ask rule mcp__lib of enterprise")

"""T613: the audit log contains no argument value of a call, also where a classifier, a hook or a person
repeats one in the reason of a decision."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, hook
from dragoman.calls import audit
from dragoman.interaction import PermissionAnswer, PermissionQuestion
from dragoman.permissions.classifier import Classification
from dragoman.permissions.rules import Call
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-6")

SECRET = "hunter2-0123456789"
ARGUMENTS = {"to": "bob", "login": {"password": SECRET, "list": [f"key {SECRET}"]}}
REASON = f"it sends {SECRET} to bob"


class RepeatingClassifier:
    async def judge(self, call: Call, conversation: Sequence[object]) -> Classification:
        return Classification("deny", REASON)


class RepeatingPerson:
    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(False, REASON)


def repeats(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": REASON}


@pytest.mark.parametrize(
    "options",
    [
        {"permission_mode": "auto", "classifier": RepeatingClassifier()},
        {"interaction": RepeatingPerson()},
        {"hooks": [hook(repeats, "PreToolUse")]},
    ],
    ids=["classifier", "person", "hook"],
)
async def test_t613_reasons_contain_no_argument_value(home: Path, options: dict[str, Any]):
    server = InMemoryServer("s")
    server.add_tool("send", lambda arguments, context: "sent")
    async with Host({"s": server}, audit=True, **options) as host:
        await host.ready()
        outcome = await host.call("mcp__s__send", ARGUMENTS)
        assert REASON in outcome.text
        log = host.audit_log()
        assert log is not None
        folder = log.path.parent
    entries = list(audit.read(folder))
    assert [entry["decision"] for entry in entries] == ["deny"]
    assert "it sends ••• to bob" in entries[0]["reason"]
    assert SECRET not in json.dumps(entries)

"""T373: a permanent permission ends when the rule that it has written is removed, also in a running
host."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, PermissionAnswer
from dragoman.testing import InMemoryServer, ScriptedUser
from tests.e2e.forked import run

pytestmark = pytest.mark.requirement("PRM-3")

ANSWERS: dict[str, dict[str, Any]] = {
    "user": {"always": "user"},
    "local": {"always": "local"},
    "server": {"always": "user", "whole_server": True},
    "session too": {"always": "user", "for_session": True},
}


def shop() -> InMemoryServer:
    made = InMemoryServer("shop")
    made.add_tool("put", lambda arguments, context: "done")
    return made


async def is_made(host: Host) -> bool:
    return not (await host.call("mcp__shop__put")).is_error


@pytest.mark.parametrize("given", ANSWERS.values(), ids=ANSWERS)
async def test_t373_permission_is_requested_again_after_its_rule_is_removed(
    home: Path, given: dict[str, Any]
):
    person = ScriptedUser(PermissionAnswer(True, **given), False)
    async with Host.configured(servers={"shop": shop()}, interaction=person) as host:
        await host.ready()
        assert [await is_made(host), await is_made(host)] == [True, True]
        assert len(person.asked) == 1

        asked = person.asked[0]
        rule = asked.server_rule if given.get("whole_server") else asked.rule
        removed = await asyncio.to_thread(run, "permissions", "remove", rule)
        assert removed.returncode == 0, removed.stderr
        await host.reload()

        assert not await is_made(host)
    assert len(person.asked) == 2


async def test_t373_a_permission_whose_rule_cannot_be_written_applies_to_the_session(home: Path):
    person = ScriptedUser(PermissionAnswer(True, always="user"), False)
    async with Host.configured(servers={"shop": shop()}, interaction=person) as host:
        await host.ready()
        (home / ".dragoman" / "settings.json").mkdir(parents=True)
        assert [await is_made(host), await is_made(host)] == [True, True]
    assert len(person.asked) == 1

"""T337: a deny rule that is added while a permitted call or request waits prevents it from being sent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import PermissionRefused
from tests.servers.web import Ask, answers
from tests.torture import projects
from tests.torture.test_t93_entries_replaced_during_a_call import NOTE, PAGE, two_servers

pytestmark = pytest.mark.requirement("PRM-1")
RULES = ["mcp__x", "mcp__x__ledger(key=secret*)", "*"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("by", ["the administrator", "the program"])
async def test_t337_a_rule_added_while_a_person_opens_a_page_denies_the_call(home: Path, rule: str, by: str):
    async with two_servers(home) as (host, person, first, _):

        async def deny() -> None:
            if by == "the program":
                return host.add_rule("deny", rule)
            projects.managed(home, {"permissions": {"deny": [rule]}})
            await host.reload()

        person.meanwhile = deny
        first.on["tools/call"] = answers.error(-32042, "visit first", data={"elicitations": [PAGE]})
        outcome = await host.call("mcp__x__ledger", {"key": "secret plan"})
    assert len(first.asked("tools/call")) == 1
    assert isinstance(outcome.error, PermissionRefused)
    assert f"deny rule {rule}" in outcome.text
    assert len(person.asked) == 1


async def test_t337_a_rule_about_something_else_causes_no_second_question(home: Path):
    async with two_servers(home) as (host, person, first, _):

        async def deny() -> None:
            first.on.pop("tools/call")
            host.add_rule("deny", "mcp__x__other")

        person.meanwhile = deny
        first.on["tools/call"] = answers.error(-32042, "visit first", data={"elicitations": [PAGE]})
        outcome = await host.call("mcp__x__ledger", {"key": "k"})
    assert outcome.text == "1"
    assert len(person.asked) == 1


@pytest.mark.parametrize("rule", ["mcp__x", "read_mcp_resource(uri=note:*)"])
@pytest.mark.parametrize("way", ["a program", "a model"])
async def test_t337_a_rule_added_while_a_resource_request_is_retried_denies_it(
    home: Path, rule: str, way: str
):
    denied = asyncio.Event()

    async def lost(ask: Ask) -> Any:
        """Loses the connection of the first request; before the second one, the rule is added."""
        if not denied.is_set():
            denied.set()
            host.add_rule("deny", rule)
            return await answers.hang_up()(ask)
        return None

    async with two_servers(home, permission_mode="bypassPermissions") as (host, _, first, _):
        first.on["resources/read"] = lost
        if way == "a program":
            with pytest.raises(PermissionRefused):
                await host.resources.read("x", NOTE)
        else:
            outcome = await host.toolbox().call("read_mcp_resource", {"server": "x", "uri": NOTE})
            assert isinstance(outcome.error, PermissionRefused)
    assert len(first.asked("resources/read")) == 1

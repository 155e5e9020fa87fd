"""T682: an answer of a program's `Interaction` that is neither True nor False does not count as
permission."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, PermissionAnswer
from dragoman.errors import PermissionRefused, SignInFailed
from dragoman.testing import InMemoryServer, ScriptedUser
from tests.servers.web.auth_world import SECRET, AuthWorld, Browser
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("PRM-1")

TEXTS: list[Any] = ["no", "deny", "false", [False], {"allowed": False}, 1, None]


def box(received: list[Any]) -> InMemoryServer:
    server = InMemoryServer("box")
    server.add_tool("write", lambda arguments, _: received.append(arguments))
    return server


@pytest.mark.parametrize("allowed", TEXTS, ids=repr)
async def test_t682_an_answer_of_a_wrong_type_allows_no_call(home: Path, allowed: Any):
    received: list[Any] = []
    person = ScriptedUser(PermissionAnswer(allowed))
    async with Host({"box": box(received)}, interaction=person) as host:
        await host.ready()
        outcome = await host.call("mcp__box__write", {})
    assert received == []
    assert isinstance(outcome.error, PermissionRefused)
    assert outcome.text == (
        "mcp__box__write was not allowed: denied by the person: asking failed: "
        "`allowed` of the PermissionAnswer is neither True nor False"
    )


@pytest.mark.parametrize("field", ["for_session", "whole_server"])
async def test_t682_an_answer_of_a_wrong_type_allows_no_further_call(home: Path, field: str):
    received: list[Any] = []
    more: dict[str, Any] = {field: "no"}
    person = ScriptedUser(PermissionAnswer(True, **more))
    async with Host({"box": box(received)}, interaction=person) as host:
        await host.ready()
        await host.call("mcp__box__write", {})
        await host.call("mcp__box__write", {})
    assert received == []
    assert len(person.asked) == 2


async def test_t682_an_answer_of_a_wrong_type_confirms_no_issuer():
    odd: Any = "no"
    async with AuthWorld() as world:
        person = Browser(confirms=odd)
        async with host_of(world, clientId="me", clientSecret=SECRET) as host:
            await host.ready(timeout=20)
            with pytest.raises(SignInFailed, match="the client secret was not sent"):
                await host.sign_in("x", person)
        assert len(person.questions) == 1
        assert SECRET not in world.canaries_in(world.auth)

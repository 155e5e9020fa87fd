"""Who may call what: a person is asked, and a call that was refused never reaches its server."""

import pytest

from dragoman import CallOutcome, Host, PermissionAnswer
from dragoman.errors import PermissionRefused
from dragoman.events import CallStarted, PermissionAsked
from dragoman.testing import ScriptedUser
from tests.integration.watched import WatchedServer

ADD = "mcp__shop__add"


async def call_add(host: Host, **arguments: int) -> CallOutcome:
    return await host.call(ADD, arguments or {"a": 1, "b": 2})


async def test_a_person_is_asked_each_time_and_the_answer_counts() -> None:
    user = ScriptedUser(True, PermissionAnswer(False, "use the abacus"), True)
    server = WatchedServer()
    async with Host({"shop": server}, interaction=user) as host:
        await host.ready()
        listener = host.events()
        assert (await call_add(host)).text == "3"

        refused = await call_add(host, a=3, b=4)
        assert isinstance(refused.error, PermissionRefused)
        assert refused.is_error
        assert "use the abacus" in refused.text, "the word goes to the model"
        assert server.calls_received() == 1

        assert (await call_add(host)).text == "3"
    assert [question.arguments["a"] for question in user.asked] == [1, 3, 1]
    assert {(question.server, question.tool) for question in user.asked} == {("shop", ADD)}
    events = [event async for event in listener]
    assert [event.allowed for event in events if isinstance(event, PermissionAsked)] == [True, False, True]
    assert len([event for event in events if isinstance(event, CallStarted)]) == 2


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "no person can be asked"),
        ({"permission_mode": "dontAsk", "interaction": ScriptedUser(True)}, "dontAsk"),
    ],
    ids=["nobody-to-ask", "dontAsk"],
)
async def test_without_a_question_the_answer_is_no(options: dict, reason: str) -> None:
    server = WatchedServer()
    async with Host({"shop": server}, **options) as host:
        await host.ready()
        outcome = await call_add(host)
    assert isinstance(outcome.error, PermissionRefused)
    assert reason in outcome.text
    assert server.calls_received() == 0
    if "interaction" in options:
        assert options["interaction"].asked == []


async def test_nobody_is_asked_about_a_call_that_cannot_be_made() -> None:
    user = ScriptedUser(True)
    async with Host({"shop": WatchedServer()}, interaction=user) as host:
        await host.ready()
        assert (await host.call("mcp__shop__nothing", {})).is_error
        assert (await host.call(ADD, {"a": "one"})).is_error
    assert user.asked == []

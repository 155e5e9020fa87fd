"""Who may call what: a person is asked, and a call that was refused never reaches its server."""

import asyncio
from pathlib import Path

import pytest

from dragoman import CallOutcome, Host, PermissionAnswer, PermissionQuestion
from dragoman.errors import ConfigError, PermissionRefused
from dragoman.events import CallStarted, PermissionAsked, PermissionModeChanged
from dragoman.testing import ScriptedUser
from tests.integration.watched import WatchedServer
from tests.integration.workshop import our_server

ADD = "mcp__shop__add"


async def call_add(host: Host, **arguments: int) -> CallOutcome:
    return await host.call(ADD, arguments or {"a": 1, "b": 2})


async def test_a_person_is_asked_each_time_and_the_answer_applies() -> None:
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
async def test_without_an_interaction_the_call_is_refused(options: dict, reason: str) -> None:
    server = WatchedServer()
    async with Host({"shop": server}, **options) as host:
        await host.ready()
        outcome = await call_add(host)
    assert isinstance(outcome.error, PermissionRefused)
    assert reason in outcome.text
    assert server.calls_received() == 0
    if "interaction" in options:
        assert options["interaction"].asked == []


async def test_no_question_is_asked_about_a_call_that_cannot_be_made() -> None:
    user = ScriptedUser(True)
    async with Host({"shop": WatchedServer()}, interaction=user) as host:
        await host.ready()
        assert (await host.call("mcp__shop__nothing", {})).is_error
        assert (await host.call(ADD, {"a": "one"})).is_error
    assert user.asked == []


@pytest.mark.requirement("PRM-2")
async def test_the_mode_of_a_running_host_can_be_changed() -> None:
    user, server = ScriptedUser(True), WatchedServer()
    async with Host({"shop": server}, interaction=user) as host:
        await host.ready()
        listener = host.events()
        made = [not (await call_add(host)).is_error]
        host.set_permission_mode("dontAsk")
        made.append(not (await call_add(host)).is_error)
        host.set_permission_mode("bypassPermissions")
        assert host.permission_mode == "bypassPermissions"
        made.append(not (await call_add(host)).is_error)
        host.set_permission_mode("bypassPermissions")
    assert made == [True, False, True]
    assert len(user.asked) == 1
    changes = [event async for event in listener if isinstance(event, PermissionModeChanged)]
    assert changes == [
        PermissionModeChanged(mode="dontAsk", before="default"),
        PermissionModeChanged(mode="bypassPermissions", before="dontAsk"),
    ]


@pytest.mark.requirement("PRM-2")
async def test_calls_that_wait_for_a_question_are_decided_by_the_new_mode() -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedUser):
        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            entered.set()
            await go_on.wait()
            return await super().allow(question)

    user = Slow(True)
    async with Host({"shop": WatchedServer()}, interaction=user) as host:
        await host.ready()
        calls = [asyncio.ensure_future(call_add(host, a=number, b=0)) for number in range(3)]
        await entered.wait()
        host.set_permission_mode("bypassPermissions")
        go_on.set()
        assert [(await call).text for call in calls] == ["0", "1", "2"]
    assert len(user.asked) == 1


@pytest.mark.requirement("PRM-2")
async def test_a_mode_that_the_administrator_forbids_is_refused(home: Path) -> None:
    managed = home / "managed/managed-mcp.json"
    managed.parent.mkdir(parents=True, exist_ok=True)
    managed.write_text('{"permissions": {"disableBypassPermissionsMode": "disable"}}')
    async with Host({"shop": WatchedServer()}) as host:
        with pytest.raises(ConfigError, match="forbids bypassPermissions"):
            host.set_permission_mode("bypassPermissions")
        assert host.permission_mode == "default"
        with pytest.raises(ConfigError, match="unknown permission_mode"):
            host.set_permission_mode("yolo")  # pyright: ignore[reportArgumentType]


async def test_each_call_of_a_turn_has_its_own_progress() -> None:
    async with Host({"shop": our_server()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        seen: dict[int, list[float]] = {0: [], 2: []}
        count = ("mcp__shop__count", {"to": 2})
        callbacks = [
            lambda progress: seen[0].append(progress.progress),
            None,
            lambda progress: seen[2].append(progress.progress),
        ]
        for caller in (host, host.toolbox()):
            seen = {0: [], 2: []}
            outcomes = await caller.call_all([count, (ADD, {"a": 1, "b": 2}), count], on_progress=callbacks)
            assert [outcome.text for outcome in outcomes] == ["done", "3", "done"]
            assert seen == {0: [1, 2], 2: [1, 2]}
        with pytest.raises(ValueError, match="1 callbacks for 2 calls"):
            await host.call_all([count, count], on_progress=[None])

"""T65: Cancelling one call ends that call, notifies the server once, and affects no other call."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import PermissionAnswer
from dragoman.calls import recovery
from dragoman.calls.audit import read
from dragoman.errors import CallTimeout
from dragoman.hooks.declared import hook
from dragoman.testing import ScriptedUser
from tests.servers import stdio_server
from tests.servers.web import answers, streamable
from tests.torture.bystander_host import BYSTANDER, at_once


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_t65_one_of_two_calls_is_cancelled_and_the_other_finishes(bystander_host, era, how):
    async with bystander_host(stdio_server("holds_replies.py", protocol=era)) as a:
        kept = asyncio.create_task(a.call("hold"))
        await a.serves_still()  # the server has the first call by now
        given_up = asyncio.create_task(a.call("hold", seconds=0.3 if how == "timeout" else 20))
        await a.serves_still()
        if how == "cancel":
            given_up.cancel()
        async with at_once():
            with pytest.raises(asyncio.CancelledError if how == "cancel" else CallTimeout):
                await given_up
        async with at_once():
            assert await a.call("cancelled") == "1", "exactly the second call, exactly once"
        assert not kept.done()
        async with at_once():
            assert await a.call("release") == "2"
            assert await kept == "released"
        assert a.view.ignored == {"reply to no pending request": 1}, "the late reply is dropped"
        await a.serves_still()


async def test_t65_a_call_that_was_answered_sends_no_cancellation_later(bystander_host, era):
    async with bystander_host(stdio_server("holds_replies.py", protocol=era)) as a:
        for _ in range(5):
            await a.serves_still()
        call = asyncio.create_task(a.call("hold"))
        await a.serves_still()
        await a.call("release")
        call.cancel()  # the reply is here already
        await asyncio.wait([call])
        async with at_once():
            assert await a.call("cancelled") == ""


async def test_t65_a_hundred_calls_cancelled_together_do_not_affect_the_others(bystander_host, era):
    async with bystander_host(stdio_server("holds_replies.py", protocol=era)) as a:
        calls = [asyncio.create_task(a.call("hold")) for _ in range(200)]
        await a.serves_still()
        for call in calls[::2]:
            call.cancel()
        await asyncio.wait(calls[::2])
        async with at_once():
            cancelled = (await a.call("cancelled")).split()
            assert sorted(map(int, cancelled)) == list(range(0, 200, 2))
            await a.call("release")
            assert await asyncio.gather(*calls[1::2]) == ["released"] * 100


async def test_t65_a_call_cancelled_before_it_was_sent_sends_nothing_to_the_server(bystander_host, era):
    async with bystander_host(stdio_server("holds_replies.py", protocol=era)) as a:
        call = asyncio.create_task(a.call("hold"))
        call.cancel()
        await asyncio.wait([call])
        assert await a.call("cancelled") == ""
        assert await a.call("release") == "0"


# --- before it is sent ---

ALLOW_OTHERS = {"allow": [f"mcp__{BYSTANDER}", "mcp__hostile__cancelled", "mcp__hostile__release"]}


class IgnoresTheFirstQuestion:
    """Never answers the first question; answers yes to the others."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reached = asyncio.Event()

    async def allow(self, question: Any) -> PermissionAnswer:
        self.asked.append(question.tool)
        if len(self.asked) == 1:
            self.reached.set()
            await asyncio.Event().wait()
        return PermissionAnswer(True)


async def test_t65_a_call_cancelled_while_its_question_is_open_lets_the_next_question_be_asked(
    bystander_host, era, home: Path
):
    user = IgnoresTheFirstQuestion()
    options: dict[str, Any] = {"permission_mode": "default", "rules": ALLOW_OTHERS, "audit": True}
    async with bystander_host(
        stdio_server("holds_replies.py", protocol=era), interaction=user, **options
    ) as a:
        first = asyncio.create_task(a.call("echo", message="first"))
        await user.reached.wait()
        second = asyncio.create_task(a.call("echo", message="second"))
        third = asyncio.create_task(a.call("echo", message="third"))
        await asyncio.sleep(0)
        third.cancel()  # it waits for the earlier question
        first.cancel()
        async with at_once():
            assert await second == "second"
            await asyncio.wait([first, third])
        assert first.cancelled()
        assert third.cancelled()
        assert await a.call("cancelled") == "", "the server never heard of them"
    assert len(user.asked) == 2
    ends = [
        entry["outcome"] for entry in read(home / ".dragoman" / "logs") if "hostile__echo" in entry["tool"]
    ]
    assert sorted(ends) == ["cancelled", "cancelled", "ok"]


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest", "PostToolUse"])
@pytest.mark.requirement("PRM-5")
async def test_t65_a_call_cancelled_while_a_hook_runs_ends_at_once_and_the_hook_too(
    bystander_host, era, event
):
    reached, ended = asyncio.Event(), asyncio.Event()

    async def wait(given: Any) -> None:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    options: dict[str, Any] = {
        "permission_mode": "default",
        "rules": ALLOW_OTHERS,
        "interaction": ScriptedUser(True),
        "hooks": [hook(wait, event, matcher="mcp__hostile__echo")],
    }
    async with bystander_host(stdio_server("holds_replies.py", protocol=era), **options) as a:
        call = asyncio.create_task(a.call("echo", message="x"))
        await asyncio.wait_for(reached.wait(), 10)
        call.cancel()
        async with at_once():
            await asyncio.wait([call])
            await ended.wait()
        assert call.cancelled()
        assert await a.call("cancelled") == ""


@pytest.mark.parametrize("headers", [{"Retry-After-Ms": "400"}, {}], ids=["a while", "not said"])
async def test_t65_a_call_cancelled_while_it_waits_for_a_busy_server_is_not_sent_later(
    bystander_host, era, headers, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recovery, "FIRST_WAIT_SECONDS", 0.4)
    busy = answers.status(429, "", headers=headers)
    async with (
        streamable(revisions=(era,), on={"tools/call": busy}) as server,
        bystander_host({"url": server.url, "protocol": era}) as a,
    ):
        call = asyncio.create_task(a.call("echo", text="x", seconds=60))
        await server.wait_for("tools/call")
        await asyncio.sleep(0.05)  # it waits by now
        call.cancel()
        async with at_once():
            await asyncio.wait([call])
        assert call.cancelled()
        await asyncio.sleep(0.8)
        assert len(server.asked("tools/call")) == 1

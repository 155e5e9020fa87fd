"""Ordinary calls that take long: they go on inside the host, and their results are fetched later."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.calls import background
from dragoman.errors import CallTimeout, ConnectionLost, TaskNotFound
from dragoman.events import CallStarted
from dragoman.hooks.declared import hook
from dragoman.wire.peer import Progress
from tests.integration.waiting import until
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("CAL-8")

HOLD = "mcp__s__hold"
LIMIT = 20.0


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def host_of(revision: str, **options: Any) -> AsyncIterator[Host]:
    entry = stdio_server("holds_replies.py", protocol=revision)
    async with Host({"s": entry}, permission_mode="bypassPermissions", **options) as host:
        await host.ready()
        yield host


async def moved(host: Any, **options: Any) -> str:
    """The id of a call that goes on."""
    outcome = await host.call(HOLD, {"a": 1}, background_after_seconds=0, timeout_seconds=LIMIT, **options)
    assert not outcome.is_error
    assert outcome.text == (
        f"The call continues as {outcome.task}.\n"
        f"Its result is not known yet: fetch it with `tasks.result('{outcome.task}')` of the host."
    )
    return outcome.task


async def release(host: Host, count: int = 1) -> None:
    """The server answers the calls; they may still be on their way to it."""
    released = 0

    async def all_released() -> bool:
        nonlocal released
        released += int((await host.call("mcp__s__release")).text)
        return released == count

    await until(all_released)


async def statuses(host: Host) -> list[tuple[str, str, str]]:
    return [(info.id, info.tool, info.status) for info in await host.tasks.list()]


async def test_a_long_call_continues_in_the_background_and_is_fetched_later(revision: str):
    async with host_of(revision) as host:
        task = await moved(host)
        assert await statuses(host) == [(task, HOLD, "working")]
        again = await host.tasks.result(task, background_after_seconds=0)
        assert (again.task, again.is_error) == (task, False)
        await release(host)
        await until(lambda: _is(host, task, "completed"))
        assert (await host.tasks.result(task)).text == "released"
        assert await host.tasks.list() == []
        assert isinstance((await host.tasks.result(task)).error, TaskNotFound)


async def _is(host: Host, task: str, status: str) -> bool:
    return (await host.tasks.get(task)).status == status


async def test_a_call_that_ends_in_time_is_an_ordinary_call(revision: str):
    async with host_of(revision) as host:
        outcome = await host.call("mcp__s__echo", {"message": "hi"}, background_after_seconds=LIMIT)
        assert (outcome.text, outcome.task) == ("hi", None)


async def test_with_moves_tasks_only_an_ordinary_call_is_waited_for(revision: str):
    async with host_of(revision) as host:
        calling = asyncio.create_task(
            host.call(HOLD, background_after_seconds=0, moves_tasks_only=True, timeout_seconds=LIMIT)
        )
        await release(host)
        assert (await calling).text == "released"


async def test_a_background_call_is_cancelled_at_its_server_by_its_id(revision: str):
    async with host_of(revision) as host:
        task = await moved(host)
        events = host.events()
        fetching = asyncio.create_task(host.tasks.result(task))
        async with asyncio.timeout(LIMIT):
            await anext(event async for event in events if isinstance(event, CallStarted))
        assert (await host.tasks.cancel(task)).status == "cancelled"
        assert str((await fetching).error) == f"there is no task {task} of s: the call was cancelled"
        assert await host.tasks.list() == []
        assert (await host.call("mcp__s__cancelled")).text == "0"


async def test_cancelling_the_fetch_cancels_the_background_call(revision: str):
    async with host_of(revision) as host:
        task = await moved(host)
        with pytest.raises(CallTimeout):
            await host.tasks.result(task, timeout_seconds=0.01)
        second, events = await moved(host), host.events()
        fetching = asyncio.create_task(host.tasks.result(second))
        async with asyncio.timeout(LIMIT):
            await anext(event async for event in events if isinstance(event, CallStarted))
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)
        assert await host.tasks.list() == []
        assert (await host.call("mcp__s__cancelled")).text == "0 1"


async def test_the_time_limit_continues_in_the_background(revision: str):
    async with host_of(revision) as host:
        outcome = await host.call(HOLD, background_after_seconds=0, timeout_seconds=0.05)
        assert outcome.task is not None
        await until(lambda: _is(host, outcome.task or "", "failed"))
        with pytest.raises(CallTimeout):
            await host.tasks.result(outcome.task)


async def test_a_background_call_ends_with_its_host_and_with_its_server(revision: str):
    async with host_of(revision) as host:
        task = await moved(host)
        fetching = asyncio.create_task(host.tasks.result(task))
        await asyncio.sleep(0)
        await host.disable("s")
        with pytest.raises(ConnectionLost):
            await fetching
        await host.enable("s")
        await host.ready()
        await moved(host)
    async with host_of(revision) as host:
        assert await host.tasks.list() == []


async def test_over_the_limit_the_oldest_result_is_dropped(revision: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "CALL_LIMIT", 1)
    async with host_of(revision) as host:
        first = await moved(host)
        waiting = asyncio.create_task(host.call(HOLD, background_after_seconds=0, timeout_seconds=LIMIT))
        await release(host, 2)
        assert ((await waiting).text, (await waiting).task) == ("released", None)
        await until(lambda: _is(host, first, "completed"))
        second = await moved(host)
        assert await statuses(host) == [(second, HOLD, "working")]


async def test_hooks_are_given_the_result_with_the_arguments(revision: str):
    seen: list[Any] = []

    def after(given: Any) -> None:
        seen.append((given["tool_name"], given["tool_input"]))

    async with host_of(revision, hooks=[hook(after, "PostToolUse", matcher=HOLD)]) as host:
        task = await moved(host)
        assert seen == []
        await release(host)
        await host.tasks.result(task)
        assert seen == [(HOLD, {"a": 1})]


async def test_the_audit_log_has_an_entry_for_the_move_and_one_for_the_fetch(revision: str, home: Path):
    async with host_of(revision, audit=True) as host:
        task = await moved(host)
        await release(host)
        await host.tasks.result(task)
    lines = (home / ".dragoman" / "logs" / "audit.jsonl").read_text().splitlines()
    outcomes = [entry["outcome"] for entry in map(json.loads, lines) if entry["tool"] == HOLD]
    assert outcomes == ["background", "ok"]


async def test_conversations_and_agents_can_move_calls_to_the_background(revision: str):
    async with host_of(revision) as host:
        from_toolbox = await moved(host.toolbox())
        async with host.for_agent(["s"]) as agent:
            from_agent = await moved(agent)
        await release(host, 2)
        for task in (from_toolbox, from_agent):
            assert (await host.tasks.result(task)).text == "released"


async def test_an_agent_fetches_the_results_of_its_servers_only(revision: str):
    entry = stdio_server("holds_replies.py", protocol=revision)
    async with host_of(revision) as host:
        of_others = await moved(host)
        async with host.for_agent([{"own": entry}]) as agent:
            await agent.ready()
            outcome = await agent.call("mcp__own__hold", background_after_seconds=0, timeout_seconds=LIMIT)
            assert outcome.task is not None
            await until(lambda: _released(agent))
            assert (await agent.task_result(outcome.task)).text == "released"
            for unknown in (outcome.task, of_others):
                assert isinstance((await agent.task_result(unknown)).error, TaskNotFound)


async def _released(agent: Any) -> bool:
    return (await agent.call("mcp__own__release")).text == "1"


async def test_progress_is_reported_to_the_fetching_caller():
    seen: list[tuple[str, float]] = []
    call = background.BackgroundCall({}, lambda progress: seen.append(("caller", progress.progress)))
    end = asyncio.Event()

    async def work() -> Any:
        call.progressed(Progress(1.0, None, None))
        await asyncio.sleep(0)
        await end.wait()
        call.progressed(Progress(3.0, None, None))
        return "result"

    assert await call.start(work(), 0.01, lambda: True) is None
    call.progressed(Progress(2.0, None, None))
    asyncio.get_running_loop().call_soon(end.set)
    found = await call.result(
        None,  # pyright: ignore[reportArgumentType]
        None,
        None,
        lambda progress: seen.append(("fetching", progress.progress)),
    )
    assert found == "result"
    assert seen == [("caller", 1.0), ("fetching", 3.0)]

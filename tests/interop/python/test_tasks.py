"""FastMCP with the tasks extension: calls that become tasks, with input, cancelling and expiry."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import TaskNotFound
from dragoman.hooks.declared import hook
from tests.integration.waiting import until
from tests.interop.remote import RECIPES, Remote

Part = Callable[..., dict[str, Any]]
pytestmark = [pytest.mark.requirement("CAL-8"), pytest.mark.needs("fastmcp")]

LIMIT = 40.0


def ada(given: Any) -> Any:
    content = {"name": "Ada"}
    return {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": content}}


@asynccontextmanager
async def host_of(server: Remote) -> AsyncIterator[Host]:
    answers = hook(ada, "Elicitation")
    async with Host({"f": server.entry}, permission_mode="bypassPermissions", hooks=[answers]) as host:
        view = (await host.ready(timeout=LIMIT))["f"]
        assert view.protocol_version == "2026-07-28"
        yield host


async def test_a_task_with_progress_one_with_input_and_one_that_fails(part: Part):
    seen: list[str | None] = []
    async with Remote(RECIPES["fastmcp-tasks"], part) as server, host_of(server) as host:
        outcome = await host.call(
            "mcp__f__work",
            {"seconds": 0.3},
            timeout_seconds=LIMIT,
            on_progress=lambda progress: seen.append(progress.message),
        )
        assert (outcome.text, outcome.structured) == ("worked 0.3 s", {"result": "worked 0.3 s"})
        assert seen == ["at work"]
        assert (await host.call("mcp__f__greet", timeout_seconds=LIMIT)).text == "hello Ada"
        failed = await host.call("mcp__f__fail", timeout_seconds=LIMIT)
        assert failed.is_error
        assert "it did not work" in failed.text


async def test_cancelling_a_call_cancels_the_work_at_the_server(part: Part):
    async with Remote(RECIPES["fastmcp-tasks"], part) as server, host_of(server) as host:
        calling = asyncio.create_task(host.call("mcp__f__work", {"seconds": 60}))
        await until(lambda: _has_begun(host))  # one that is cancelled before is not counted
        await until(lambda: _is_listed(host))
        calling.cancel()
        await asyncio.wait([calling])
        await until(lambda: _is_cancelled(host))


async def _is_listed(host: Host) -> bool:
    return bool(await host.tasks.list())


async def _has_begun(host: Host) -> bool:
    return (await host.call("mcp__f__count_working")).text == "1"


async def _is_cancelled(host: Host) -> bool:
    return (await host.call("mcp__f__count_cancelled")).text == "1"


async def test_a_later_host_fetches_the_result_of_a_continued_task(part: Part):
    async with Remote(RECIPES["fastmcp-tasks"], part) as server:
        async with host_of(server) as host:
            outcome = await host.call("mcp__f__work", {"seconds": 0.5}, background_after_seconds=0)
        assert outcome.task is not None
        async with host_of(server) as host:
            done = await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
            assert done.text == "worked 0.5 s"


async def test_an_expired_task_is_a_named_error(part: Part):
    async with Remote(RECIPES["fastmcp-expiring"], part) as server, host_of(server) as host:
        outcome = await host.call("mcp__f__work", {"seconds": 0.1}, background_after_seconds=0)
        assert outcome.task is not None
        (info,) = await host.tasks.list()
        assert info.expires is not None
        assert info.expires - info.created == 2.0
        await until(lambda: _is_expired(host))
        found = await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
        assert isinstance(found.error, TaskNotFound)
        assert await host.tasks.list() == []


async def _is_expired(host: Host) -> bool:
    await asyncio.sleep(0.2)
    return (await host.tasks.list())[0].status == "expired"


async def test_a_server_that_was_restarted_does_not_know_its_tasks(part: Part):
    async with Remote(RECIPES["fastmcp-tasks"], part) as server:
        async with host_of(server) as host:
            outcome = await host.call("mcp__f__work", {"seconds": 60}, background_after_seconds=0)
        assert outcome.task is not None
        await server.kill()
        await server.start()
        async with host_of(server) as host:
            found = await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
            assert isinstance(found.error, TaskNotFound)

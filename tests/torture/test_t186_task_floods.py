"""T186: endless task notifications, many simultaneous tasks, and a server that ends during a task."""

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.calls.task_store import TaskStore
from dragoman.errors import CallError, CallTimeout, ConnectionLost, DragomanError
from tests.servers import stdio_server
from tests.torture.bystander_host import HOSTILE, at_once

pytestmark = pytest.mark.requirement("CAL-8")


async def test_endless_status_notifications_cause_no_additional_polls(bystander_host):
    async with bystander_host(stdio_server("wrong_tasks.py", "legacy")) as a:
        slow = {"pollInterval": 60000}
        with pytest.raises((CallTimeout, ConnectionLost)):
            await a.call("run", created=slow, states=[slow], notify=50_000, seconds=2)
        found = json.loads(await a.call("counts"))
        assert found["tasks/get"] <= 21


@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_a_hundred_simultaneous_tasks_all_end(bystander_host, home: Path, kind: str):
    async with bystander_host(stdio_server("runs_tasks.py", kind, str(home / "tasks"))) as a:
        async with at_once(40):
            calls = (a.call("work", text=str(number), steps=2, seconds=60) for number in range(100))
            assert await asyncio.gather(*calls) == [str(number) for number in range(100)]
        assert TaskStore(lambda: 0.0).all() == []


@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_a_server_that_ends_during_a_task_and_stays_away_fails_the_call(bystander_host, kind: str):
    async with bystander_host(stdio_server("wrong_tasks.py", kind)) as a:
        async with at_once(10):
            with pytest.raises(DragomanError) as caught:
                await a.call("run", created={"pollInterval": 0, "pollIntervalMs": 0}, states=[{}, "die"])
        assert isinstance(caught.value, CallError)
        assert caught.value.server == HOSTILE
        assert [task.server for task in TaskStore(lambda: 0.0).all()] == [HOSTILE], "it can be fetched later"

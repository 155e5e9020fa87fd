"""T357: more calls are to continue in the background at the same time than are kept."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman import Host
from dragoman.calls.background import CALLS_OF_SERVER
from dragoman.calls.outcome import CallOutcome
from dragoman.testing import InMemoryServer

pytestmark = [pytest.mark.requirement("CAL-8"), pytest.mark.usefixtures("home")]
MORE = 8


class Holding:
    """A server that answers when it is released."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.calls = 0
        self.server = InMemoryServer("holding")
        self.server.add_tool("hold", self._hold)

    async def _hold(self, arguments: Mapping[str, Any], context: object) -> str:
        self.calls += 1
        await self.goes_on.wait()
        return "done"


def moved(host: Host, name: str) -> asyncio.Task[CallOutcome]:
    return asyncio.create_task(host.call(name, {}, background_after_seconds=0.05))


async def test_t357_calls_beyond_the_background_limit_are_waited_for():
    holding = Holding()
    async with (
        asyncio.timeout(30),
        Host({"s": holding.server}, permission_mode="bypassPermissions") as host,
    ):
        await host.ready()
        calls = [moved(host, "mcp__s__hold") for _ in range(CALLS_OF_SERVER + MORE)]
        while sum(call.done() for call in calls) < CALLS_OF_SERVER or holding.calls < len(calls):
            await asyncio.sleep(0.01)
        holding.goes_on.set()
        outcomes = await asyncio.gather(*calls)
        assert [outcome.text for outcome in outcomes if outcome.task is None] == ["done"] * MORE
        tasks = [outcome.task for outcome in outcomes if outcome.task is not None]
        found = [(await host.tasks.result(task)).text for task in tasks]
        assert found == ["done"] * CALLS_OF_SERVER
        assert holding.calls == len(calls)


async def test_t357_a_server_that_never_answers_leaves_room_for_calls_of_other_servers():
    stuck, good = Holding(), Holding()
    servers = {"stuck": stuck.server, "good": good.server}
    async with asyncio.timeout(30), Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready()
        calls = [moved(host, "mcp__stuck__hold") for _ in range(CALLS_OF_SERVER)]
        await asyncio.gather(*calls)
        outcome = await moved(host, "mcp__good__hold")
        assert outcome.task is not None
        good.goes_on.set()
        assert (await host.tasks.result(outcome.task)).text == "done"

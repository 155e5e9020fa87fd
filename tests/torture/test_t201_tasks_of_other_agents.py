"""T201: an agent cannot fetch the result of a tool that it does not have."""

import asyncio

import pytest

from dragoman import Host
from dragoman.errors import TaskNotFound
from dragoman.testing import InMemoryServer
from dragoman.testing.server import ToolContext

pytestmark = pytest.mark.requirement("CFG-13")


@pytest.mark.parametrize("has_tool", [True, False])
async def test_t201_a_background_call_is_available_only_to_agents_with_its_tool(has_tool: bool):
    go_on = asyncio.Event()

    async def slow(arguments: dict[str, object], context: ToolContext) -> str:
        await go_on.wait()
        return "the result"

    server = InMemoryServer("box")
    server.add_tool("slow", slow)
    async with Host({"box": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        left = await host.call("mcp__box__slow", background_after_seconds=0.01)
        assert left.task is not None
        go_on.set()
        async with host.for_agent(["box"], has_tool=lambda name: has_tool) as agent:
            outcome = await agent.task_result(left.task)
    if has_tool:
        assert outcome.text == "the result"
    else:
        assert isinstance(outcome.error, TaskNotFound)

"""T823: so many events arrive at once that the gateway loses the oldest, as when a server reconnects that
has more than 10 000 subscribed resources. A list change among them is not lost."""

import asyncio

import pytest

from dragoman.events import BACKLOG, ResourceUpdated, ToolsChanged
from dragoman.testing import InMemoryServer
from tests.gateway import Client, gateway_of
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("GWY-2")


async def test_t823_clients_are_notified_of_lists_that_may_have_changed():
    desk = InMemoryServer("desk")
    desk.add_tool("add", lambda arguments, context: "done")
    async with gateway_of({"desk": desk}) as running, Client(running.url) as client:
        await client.initialize()
        seen: list[str] = []

        async def listen() -> None:
            async with client.http.get(client.url, headers=client.headers) as stream:
                seen.append("open")
                async for line in stream.content:
                    seen.extend(kind for kind in ("tools", "resources", "prompts") if kind in line.decode())

        listening = asyncio.create_task(listen())
        try:
            await until(lambda: seen)
            running.host._bus.publish(ToolsChanged(server="desk", tool_count=1))
            for number in range(BACKLOG):
                running.host._bus.publish(ResourceUpdated(server="desk", uri=f"file:///{number}"))
            await until(lambda: "tools" in seen)
        finally:
            listening.cancel()
            await asyncio.wait([listening])

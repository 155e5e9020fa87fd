"""T119: progress messages for a callback are cleaned in the same way as in events."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import Host
from dragoman.cleaning import one_line
from dragoman.events import CallProgressed
from dragoman.testing import InMemoryServer
from tests.torture.test_t42_hidden_text import TRICKS

pytestmark = pytest.mark.requirement("CAT-2")


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS.keys())
async def test_t119_a_progress_callback_receives_the_same_text_as_the_event(trick: str):
    server = InMemoryServer("s")

    def work(_arguments: dict[str, Any], context: Any) -> str:
        context.progress(1, 2, f"a{trick}b")
        return "done"

    server.add_tool("t", work)
    told: list[str | None] = []
    async with Host({"s": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        events = host.events()
        await host.call("mcp__s__t", on_progress=lambda progress: told.append(progress.message))
        said = await first_progress(events)
    assert told == [said] == [one_line(f"a{trick}b")]


async def first_progress(events: AsyncIterator[Any]) -> str | None:
    return await anext(event.message async for event in events if isinstance(event, CallProgressed))

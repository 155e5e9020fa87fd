"""The reference server from npm, over the network: Streamable HTTP and the older HTTP+SSE."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.remote import RECIPES, Remote, restart_under_load
from tests.interop.visit import visit

Part = Callable[..., dict[str, Any]]
RESTARTS = int(os.environ.get("DRAGOMAN_RESTARTS", "3"))

pytestmark = pytest.mark.needs("server-everything")


@pytest.mark.requirement("TRN-2", "TRN-3", "TRN-10")
@pytest.mark.parametrize("name", ["everything-http", "everything-sse"])
async def test_a_remote_server_is_connected_listed_and_called(part: Part, name: str) -> None:
    async with Remote(RECIPES[name], part) as server, visit(server.entry, "2025-11-25") as visited:
        assert {"echo", "get-sum", "get-tiny-image"} <= visited.tool_names()
        assert "42" in (await visited.call("get-sum", a=40, b=2)).text
        seen: list[Any] = []
        operation = "mcp__visited__trigger-long-running-operation"
        await visited.host.call(operation, {"duration": 0.2, "steps": 2}, on_progress=seen.append)
        assert [each.progress for each in seen] == [1, 2]


@pytest.mark.slow
@pytest.mark.requirement("LIF-5", "LIF-7")
@pytest.mark.timeout(60 + 20 * RESTARTS)
@pytest.mark.parametrize("name", ["everything-http", "everything-sse"])
async def test_a_remote_server_restarted_under_load_is_reconnected_and_no_call_hangs(
    part: Part, name: str
) -> None:
    async with Remote(RECIPES[name], part) as server:
        await restart_under_load(server, times=RESTARTS)

"""Servers built on the official SDK and on FastMCP, over HTTP, in both eras."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.remote import RECIPES, Remote, restart_under_load
from tests.interop.visit import visit

Part = Callable[..., dict[str, Any]]
RESTARTS = int(os.environ.get("DRAGOMAN_RESTARTS", "3"))


@pytest.mark.requirement("TRN-2", "TRN-10")
@pytest.mark.needs("sdk-everything-server")
async def test_the_sdk_server_is_called_in_every_revision_from_2025_03_26_on(part: Part) -> None:
    async with Remote(RECIPES["sdk-http"], part) as server:
        async with visit(server.entry, "2026-07-28") as visited:
            assert {"test_simple_text", "test_image_content"} <= visited.tool_names()
            assert "simple text" in (await visited.call("test_simple_text")).text
            failing = await visited.outcome("test_error_handling")
            assert failing.is_error
        for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
            async with visit({**server.entry, "protocol": revision}, revision) as visited:
                assert "simple text" in (await visited.call("test_simple_text")).text


@pytest.mark.requirement("TRN-2")
@pytest.mark.needs("fastmcp")
async def test_a_fastmcp_server_is_called_and_reports_progress(part: Part) -> None:
    async with Remote(RECIPES["fastmcp-http"], part) as server, visit(server.entry, "2026-07-28") as visited:
        assert visited.tool_names() == {"echo", "count"}
        assert visited.view.instructions == "Made to be called."
        assert (await visited.call("echo", message="hello")).text == "hello"
        seen: list[Any] = []
        await visited.host.call("mcp__visited__count", {"to": 3}, on_progress=seen.append)
        assert [each.progress for each in seen] == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
@pytest.mark.timeout(60 + 20 * RESTARTS)
@pytest.mark.needs("sdk-everything-server")
@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_the_sdk_server_restarted_under_load_is_reconnected_and_no_call_hangs(
    part: Part, protocol: str
) -> None:
    async with Remote(RECIPES["sdk-http"], part) as server:
        await restart_under_load(server, times=RESTARTS, protocol=protocol)


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
@pytest.mark.timeout(60 + 20 * RESTARTS)
@pytest.mark.needs("fastmcp")
async def test_a_fastmcp_server_restarted_under_load_is_reconnected_and_no_call_hangs(part: Part) -> None:
    async with Remote(RECIPES["fastmcp-http"], part) as server:
        await restart_under_load(server, times=RESTARTS)

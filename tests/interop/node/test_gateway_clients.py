"""Real clients in TypeScript through the gateway: the official SDK over HTTP, MCP Inspector over stdio."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.command import DRAGOMAN
from tests.gateway import ADA, gateway_of
from tests.servers.office import Office

Part = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.requirement("GWY-1", "GWY-2")
TOOLS = [f"office__{name}" for name in ("ask", "count", "hire", "hold", "ledger", "touch")]


async def output_of(entry: dict[str, Any]) -> Any:
    process = await asyncio.create_subprocess_exec(
        entry["command"],
        *entry["args"],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return json.loads(said)


@pytest.mark.needs("typescript-client")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_typescript_sdk_lists_calls_reads_and_answers(part: Part, revision: str) -> None:
    async with gateway_of({"office": Office((revision,))}) as running:
        found = await output_of(part("typescript-client", running.url, ADA))
    assert found == {
        "tools": TOOLS,
        "counted": "3",
        "progress": [1, 2, 3],
        "asked": ["Ada", "Bob"],
        "read": "one",
    }


@pytest.mark.needs("inspector")
async def test_the_inspector_lists_and_calls_over_stdio(part: Part) -> None:
    words = ["serve", "--stdio", "--mcp-config", "demo", "--permission-mode", "bypassPermissions"]
    served = (str(DRAGOMAN), *words)
    listed = await output_of(part("inspector", *served, "--method", "tools/list"))
    names = [tool["name"] for tool in listed["tools"]]
    assert names == ["demo__add", "demo__count", "demo__fail", "demo__picture", "demo__table"]
    add = ("--method", "tools/call", "--tool-name", "demo__add", "--tool-arg", "a=2", "b=3")
    called = await output_of(part("inspector", *served, *add))
    assert called["structuredContent"] == {"sum": 5}

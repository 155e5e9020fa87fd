"""T192: a task result is fetched for the tool of its own server, also if another tool has that name
meanwhile."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from dragoman.hooks.declared import hook

pytestmark = pytest.mark.requirement("CAL-8")

SERVER = Path(__file__).parents[1] / "servers" / "runs_tasks.py"


def entry(home: Path, folder: str, **more: Any) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-S", "-E", str(SERVER), "modern", str(home / folder)],
        **more,
    }


async def left_running(home: Path) -> str:
    """The id of a task of `s.1`, which is the only server with the name `mcp__s_1__work`."""
    async with Host({"s.1": entry(home, "one")}, permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.call("mcp__s_1__work", {"text": "of s.1"}, background_after_seconds=0)
    assert outcome.task is not None
    return outcome.task


def both(home: Path, **options: Any) -> Host:
    servers = {"s.1": entry(home, "one"), "s_1": entry(home, "two")}
    return Host(servers, permission_mode="bypassPermissions", **options)


async def test_t192_a_denied_tool_returns_no_result_under_the_name_of_another_tool(home: Path):
    task = await left_running(home)
    async with both(home, rules={"deny": ["mcp__s.1"]}) as host:
        await host.ready()
        outcome = await host.tasks.result(task, timeout_seconds=20)
        assert isinstance(outcome.error, PermissionRefused)


async def test_t192_the_result_is_fetched_from_its_own_server(home: Path):
    task = await left_running(home)
    seen: list[str] = []

    def look(given: Any) -> None:
        seen.append(given["tool_name"])

    async with both(home, hooks=[hook(look, "PreToolUse")]) as host:
        await host.ready()
        outcome = await host.tasks.result(task, timeout_seconds=20)
        assert (outcome.text, outcome.server) == ("of s.1", "s.1")
    assert len(seen) == 1
    assert seen[0].startswith("mcp__s_1__work_")

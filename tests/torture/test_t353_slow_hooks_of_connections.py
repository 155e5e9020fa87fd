"""T353: hooks about connection events are slow, and very many of them are to run."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, hook
from dragoman.events import ServerFailed, ToolsChanged
from dragoman.hooks.runner import COMMANDS_AT_ONCE

pytestmark = pytest.mark.requirement("PRM-5")
DEMO = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
WAITS = "until [ -e over ]; do sleep 0.05; done"


async def test_t353_slow_hooks_about_failed_servers_delay_no_call(home: Path):
    settings = home / ".dragoman" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    missing = {f"bad{number}": {"command": f"/missing/{number}"} for number in range(COMMANDS_AT_ONCE + 4)}
    hooks = {
        "ServerFailed": [{"hooks": [{"type": "command", "command": WAITS}]}],
        "PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}],
    }
    settings.write_text(json.dumps({"mcpServers": {"demo": DEMO, **missing}, "hooks": hooks}))
    async with asyncio.timeout(50), Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(20)
        try:
            async with asyncio.timeout(20):
                outcome = await host.call("mcp__demo__add", {"a": 1, "b": 2})
        finally:
            Path("over").touch()
        assert outcome.text == "3"


async def test_t353_a_slow_hook_is_run_for_the_latest_state_of_a_server_only(home: Path):
    told: list[object] = []
    changed: set[str] = set()
    begun, over = asyncio.Event(), asyncio.Event()

    async def slow(given: Any) -> None:
        changed.update(given.get("changed", ()))
        told.append(given.get("reason"))
        begun.set()
        await over.wait()

    hooks = [hook(slow, "ServerFailed"), hook(slow, "ToolsChanged")]
    async with asyncio.timeout(20), Host({}, hooks=hooks) as host:
        publish = host._bus.publish  # pyright: ignore[reportPrivateUsage]
        for number in range(200):
            publish(ServerFailed(server="x", reason=f"reason {number}", hint=None))
            publish(ToolsChanged(server="x", tool_count=1, changed=(f"tool {number}",)))
            await asyncio.sleep(0)
        await begun.wait()
        over.set()
        while len(told) < 4:
            await asyncio.sleep(0)
    assert len(told) == 4
    assert "reason 199" in told
    assert changed == {f"tool {number}" for number in range(200)}

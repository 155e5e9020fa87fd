"""T359: a server does not answer the end of subscriptions, while new settings deny servers."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host

pytestmark = pytest.mark.requirement("CFG-11")
SUBSCRIPTIONS = 12
SERVER = """
import json, sys

CAPABILITIES = {"resources": {"subscribe": True}, "tools": {}}
INITIALIZED = {
    "protocolVersion": "2025-06-18", "capabilities": CAPABILITIES, "serverInfo": {"name": "s", "version": "1"}
}
RESULTS = {"initialize": INITIALIZED, "tools/list": {"tools": []}, "resources/list": {"resources": []}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and message["method"] != "resources/unsubscribe":
        if message["method"] == "server/discover":
            reply = {"error": {"code": -32601, "message": "unknown"}}
        else:
            reply = {"result": RESULTS.get(message["method"], {})}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"""


def configure(home: Path, **more: Any) -> None:
    (home / ".dragoman").mkdir(exist_ok=True)
    servers = {
        "silent": {"command": sys.executable, "args": [str(home / "server.py")]},
        "demo": {"command": sys.executable, "args": ["-m", "dragoman.demo"]},
    }
    (home / ".dragoman" / "settings.json").write_text(json.dumps({"mcpServers": servers, **more}))


async def test_t359_a_denied_server_is_ended_at_once_although_another_does_not_answer_unsubscribe(home: Path):
    (home / "server.py").write_text(SERVER)
    configure(home)
    async with (
        asyncio.timeout(50),
        Host.configured(permission_mode="bypassPermissions") as host,
        AsyncExitStack() as stack,
    ):
        await host.ready(20)
        watched = [
            await stack.enter_async_context(host.resources.subscribed("silent", f"x:{number}"))
            for number in range(SUBSCRIPTIONS)
        ]
        configure(
            home,
            deniedMcpServers=[{"serverName": "demo"}],
            permissions={"deny": ["read_mcp_resource(server=silent)"]},
        )
        async with asyncio.timeout(
            30
        ):  # waiting for the server would take a minute: 5 seconds for each subscription
            await host.reload()
        assert host.servers["demo"].status not in ("connected", "connecting")
        for updates in watched:
            with pytest.raises(StopAsyncIteration):
                await anext(updates)

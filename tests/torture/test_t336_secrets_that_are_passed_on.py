"""T336: messages that a gateway forwards undecoded contain no secret that is split over several texts."""

import sys
from typing import Any

import pytest

from dragoman import Host

pytestmark = pytest.mark.requirement("AUT-11")
SECRET = "canary-0123456789-abcdef"
SERVER = """
import json, sys

secret = "canary-0123456789-abcdef"
texts = [{"type": "text", "text": f"a {secret[:12]}"}, {"type": "text", "text": f"{secret[12:]} b"}]
results = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "experimental": {"x": {"note": secret}}},
        "serverInfo": {"name": "split", "version": "1"},
    },
    "tools/list": {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("split", "plain")]},
}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = results.get(asked["method"], {})
        if asked["method"] == "tools/call":
            result = {"content": texts if asked["params"]["name"] == "split" else texts[:1]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
ENTRY: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-c", SERVER],
    "protocol": "legacy",
    "env": {"API_KEY": SECRET},
}


async def test_t336_a_secret_split_over_two_blocks_is_not_forwarded():
    async with Host({"box": ENTRY}, permission_mode="bypassPermissions") as host:
        await host.ready()
        split = await host.call("mcp__box__split", forward=True)
        plain = await host.call("mcp__box__plain", forward=True)
    assert split.forwarded is None
    assert [block.as_text() for block in split.content] == ["a [secret]", " b"]
    assert plain.forwarded is not None, "what cannot hold it is not decoded"


async def test_t336_a_secret_in_the_servers_declarations_is_not_forwarded():
    async with Host({"box": ENTRY}) as host:
        await host.ready()
        assert host.servers["box"].capabilities["experimental"] == {"x": {"note": "[secret]"}}

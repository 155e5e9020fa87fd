"""T610: an error of a server that a hook replaces or withholds is also replaced for gateway clients, for
programs, and in raised errors: neither its message nor its data remains. Of a replaced result, no
validation error remains."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman import hook
from dragoman.errors import RemoteError
from tests.gateway import Client, gateway_of

pytestmark = pytest.mark.requirement("PRM-5")

SECRET = "4711"
SERVER = """
import json, sys

LISTS = {
    "initialize": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "s", "version": "1"},
                   "capabilities": {"tools": {}, "resources": {}, "prompts": {}}},
    "tools/list": {"tools": [
        {"name": "fail", "inputSchema": {"type": "object"}},
        {"name": "row", "inputSchema": {"type": "object"},
         "outputSchema": {"type": "object", "properties": {"row": {"type": "integer"}}}},
    ]},
    "resources/list": {"resources": [{"name": "r", "uri": "a://r"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": [{"name": "p"}]},
}
ERROR = {"code": -32050, "message": "row of alice: 4711", "data": {"row": "4711"}}
for line in sys.stdin:
    message = json.loads(line)
    result = LISTS.get(message["method"])
    if message.get("params", {}).get("name") == "row":
        result = {"content": [{"type": "text", "text": "4711"}], "structuredContent": {"row": "4711"}}
    answer = {"error": ERROR} if result is None else {"result": result}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def replaces(event: Mapping[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"updatedMCPToolOutput": "[removed]"}}


def fails(event: Mapping[str, Any]) -> dict[str, Any]:
    raise ValueError


@pytest.mark.parametrize("function", [replaces, fails])
async def test_t610_no_part_of_an_error_that_a_hook_replaces_remains(tmp_path: Path, function: Any):
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(file)], "protocol": "legacy"}
    hooks = [
        hook(function, "PostToolUse", matcher="mcp__s__row", blocks_on_error=True),
        hook(function, "PostToolUseFailure", blocks_on_error=True),
    ]
    requests = {
        "tools/call": {"name": "s__fail", "arguments": {}},
        "resources/read": {"uri": "a://r"},
        "prompts/get": {"name": "s__p"},
    }
    async with gateway_of({"s": entry}, hooks=hooks) as running, Client(running.url) as client:
        for method, params in requests.items():
            answer = (await client.modern(method, params)).last
            assert answer["error"]["code"] == -32050, method
            assert SECRET not in str(answer), method
        outcome = await running.host.call("mcp__s__fail")
        assert isinstance(outcome.error, RemoteError)
        assert SECRET not in f"{outcome.error} {vars(outcome.error)} {outcome.text}"
        assert SECRET not in repr(await running.host.call("mcp__s__row"))
        with pytest.raises(RemoteError) as raised:
            await running.host.resources.read("s", "a://r")
        assert SECRET not in f"{raised.value} {vars(raised.value)}"

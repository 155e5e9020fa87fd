"""T293: a server that never answers a list of resources or prompts does not delay others for long."""

import asyncio
import sys
from pathlib import Path

import pytest

from dragoman.calls import requests
from tests.gateway import Client, gateway_of

pytestmark = [pytest.mark.requirement("GWY-3"), pytest.mark.timeout(30)]
SERVER = """
import json, sys
hangs = sys.argv[1] == "hangs"
RESULTS = {
    "tools/list": {"tools": []},
    "resources/list": {"resources": [{"uri": "note:1", "name": "note"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "page:{n}", "name": "page"}]},
    "resources/read": {"contents": [{"uri": "note:1", "text": "read"}]},
    "prompts/list": {"prompts": [{"name": "greet"}]},
    "prompts/get": {"messages": []},
}
for line in sys.stdin:
    message = json.loads(line)
    result = RESULTS.get(message.get("method"), {})
    if message.get("method") == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"],
                  "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif hangs and message.get("method") != "tools/list":
        continue
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_t293_reads_prompts_and_lists_of_other_servers_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(requests, "LIST_SECONDS", 0.5)
    (tmp_path / "server.py").write_text(SERVER)
    servers = {
        name: {"command": sys.executable, "args": [str(tmp_path / "server.py"), name], "protocol": "legacy"}
        for name in ("hangs", "works")
    }
    async with gateway_of(servers) as running, Client(running.url) as client, asyncio.timeout(20):
        listed = (await client.modern("resources/list")).last["result"]["resources"]
        assert [each["uri"] for each in listed] == ["note:1"]
        read = (await client.modern("resources/read", {"uri": "note:1"})).last["result"]
        assert read["contents"] == [{"uri": "note:1", "text": "read"}]
        assert "result" in (await client.modern("resources/read", {"uri": "page:1"})).last
        assert (await client.modern("prompts/list")).last["result"]["prompts"] == [{"name": "works__greet"}]
        assert "result" in (await client.modern("prompts/get", {"name": "works__greet"})).last
        problems = (await running.host.resources.list()).problems
        why = "its resources were not received within 0.5 s; name the server to wait longer"
        assert problems == (f"hangs: {why}",)

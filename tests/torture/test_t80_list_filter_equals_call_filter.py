"""T80: A denied item is not listed, and cannot be used by another spelling or method.

The answer is the same as for an item that does not exist."""

from base64 import b64encode

import pytest

from tests.gateway import MODERN, Client, Json, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1")
DENY = {"deny": ["mcp__office__hold", "mcp__secret"]}
NAMES = [
    "office__hold",
    "office__HOLD",
    "Office__hold",
    "mcp__office__hold",
    "hold",
    "office__hold ",
    " office__hold",
    "office__ho\u200bld",
    "office/hold",
    "office__hold\x00",
]


@pytest.mark.parametrize("name", NAMES)
async def test_t80_a_denied_tool_is_unknown_in_every_spelling(name: str):
    office = Office()
    async with gateway_of({"office": office}, rules=DENY) as running, Client(running.url) as client:
        listed = await client.modern("tools/list")
        assert "office__hold" not in str(listed.last)
        escaped = f"=?base64?{b64encode(name.encode()).decode()}?="
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        call: Json = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "_meta": meta},
        }
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": escaped}
        modern = await client.post(call, **headers)
        assert modern.last["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
        await client.initialize()
        legacy = await client.legacy("tools/call", {"name": name})
        assert legacy.last["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
    assert office.ledger == []


async def test_t80_a_denied_tool_is_unknown_in_a_batch():
    office = Office()
    async with gateway_of({"office": office}, rules=DENY) as running, Client(running.url) as client:
        opening = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}
        opened = await client.legacy("initialize", opening)
        client.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
        await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "office__ledger"}},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "office__hold"}},
        ]
        replies = {each["id"]: each for each in (await client.post(batch)).messages}
        assert "result" in replies[1]
        assert replies[2]["error"]["message"] == "Unknown tool: office__hold"
    assert office.ledger == []


async def test_t80_denied_resources_are_not_found_by_any_method():
    secret = Office()
    secret.files = {"file:///secret": "canary"}
    servers = {"office": Office(), "secret": secret}
    async with gateway_of(servers, rules=DENY) as running, Client(running.url) as client:
        assert "secret" not in str((await client.modern("resources/list")).last)
        for uri in ("file:///secret", "mcp-server:secret:file:///secret", "mcp-server:SECRET:file:///secret"):
            read = await client.modern("resources/read", {"uri": uri})
            assert "canary" not in str(read.messages)
            assert "error" in read.last
        await client.initialize()
        subscribed = await client.legacy("resources/subscribe", {"uri": "mcp-server:secret:file:///secret"})
        assert "error" in subscribed.last
    assert secret.subscribed == []

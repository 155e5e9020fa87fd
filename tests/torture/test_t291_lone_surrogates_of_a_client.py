"""T291: a lone surrogate in a request to the gateway is replaced over HTTP, as over other transports."""

import pytest

from dragoman.testing import InMemoryServer
from tests.gateway import MODERN, Client, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")
CALL = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "box__echo", %s}}'
HALF = r'"arguments": {"text": "a\ud83d"}'
META = (
    f'"_meta": {{"io.modelcontextprotocol/protocolVersion": "{MODERN}", '
    '"io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}, '
    '"io.modelcontextprotocol/clientCapabilities": {}}'
)
HEADERS = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "box__echo"}


async def test_t291_a_lone_surrogate_is_replaced_in_both_eras_and_in_a_batch():
    box = InMemoryServer("box")
    box.add_tool("echo", lambda arguments, context: arguments["text"])
    async with gateway_of({"box": box}) as running:
        async with Client(running.url) as modern:
            reply = await modern.post((CALL % f"{HALF}, {META}").encode(), **HEADERS)
            assert (reply.status, reply.last["id"]) == (200, 7)
            assert reply.last["result"]["content"][0]["text"] == "a\ufffd"
        async with Client(running.url) as legacy:
            await legacy.initialize()
            reply = await legacy.post((CALL % HALF).encode())
            assert reply.last["result"]["content"][0]["text"] == "a\ufffd"
        async with Client(running.url) as older:
            await older.initialize(revision="2025-03-26")
            batch = '[{"jsonrpc": "2.0", "id": 6, "method": "ping"}, %s]' % (CALL % HALF)
            reply = await older.post(batch.encode())
            texts = {
                each["id"]: each["result"].get("content", [{}])[0].get("text") for each in reply.messages
            }
            assert texts == {6: None, 7: "a\ufffd"}

"""T83: Only the message of a client's request reaches a server, without its headers, and no client can
start a server."""

import pytest

from tests.gateway import ADA, Client, gateway_of
from tests.servers.web import streamable

pytestmark = pytest.mark.requirement("GWY-3")
HEADERS = {
    "Cookie": "session=canary",
    "X-Forwarded-For": "192.0.2.1",
    "X-Forwarded-Host": "canary.example",
    "Forwarded": "for=192.0.2.1",
    "X-Api-Key": "canary",
    "Proxy-Authorization": "Basic canary",
    "Via": "1.1 canary",
    "TE": "trailers",
}


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_t83_no_header_of_a_client_reaches_the_server(era: str):
    call = {"name": "web__echo", "arguments": {"text": "hi"}}
    async with streamable() as upstream:
        served = gateway_of({"web": {"type": "http", "url": upstream.url}})
        async with served as running, Client(running.url, **HEADERS) as client:
            if era == "legacy":
                await client.initialize()
                await client.legacy("tools/call", call)
            else:
                await client.modern("tools/call", call)
        assert upstream.asked("tools/call")
        for ask in upstream.asks:
            sent = {name.lower(): value for name, value in ask.headers.items()}
            assert ADA not in str(sent)
            assert "canary" not in str(sent)
            assert not {"authorization", "cookie", "forwarded", "x-forwarded-for", "via"} & sent.keys()


async def test_t83_no_request_can_add_a_server():
    entry = {"command": "touch", "args": ["/tmp/never"], "url": "http://192.0.2.1/mcp"}
    async with (
        streamable() as upstream,
        gateway_of({"web": {"type": "http", "url": upstream.url}}) as running,
        Client(running.url) as client,
    ):
        for method in ("tools/list", "resources/list", "prompts/list"):
            reply = await client.modern(method, {"mcpServers": {"evil": entry}, "server": entry})
            assert "result" in reply.last
        called = await client.modern(
            "tools/call", {"name": "evil__run", "mcpServers": {"evil": entry}, "arguments": {}}
        )
        assert called.last["error"]["message"] == "Unknown tool: evil__run"
        assert list(running.host.servers) == ["web"]

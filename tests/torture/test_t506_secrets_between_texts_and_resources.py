"""T506: a secret that begins in one text of a result and ends in an embedded resource, or in two resources,
is redacted, although a model sees the resource below a heading."""

from typing import Any

import pytest
from aiohttp import web

from dragoman import Host
from tests.gateway import Client, gateway_of
from tests.servers.web import Ask, Streamable, streamable
from tests.torture.conftest import MODERN
from tests.torture.test_t98_secrets_repeated_by_servers import text

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

FIRST, SECOND = "s3cr3t-0f-", "th1s-entry"


def resource(said: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "note://a", "text": said}}


CONTENTS = {
    "text, resource": [text(f"x {FIRST}"), resource(f"{SECOND} y")],
    "resource, text": [resource(f"x {FIRST}"), text(f"{SECOND} y")],
    "two resources": [resource(f"x {FIRST}"), resource(f"{SECOND} y")],
    "with a hidden character": [text(f"x {FIRST[:3]}\u200b{FIRST[3:]}"), resource(f"{SECOND} y")],
}


def serving(server: Streamable, content: list[dict[str, Any]]) -> dict[str, Any]:
    """The entry of a server that returns this content."""

    async def answer(ask: Ask) -> web.StreamResponse:
        result = {"resultType": "complete", "content": content}
        return web.json_response({"jsonrpc": "2.0", "id": ask.id, "result": result})

    server.on["tools/call"] = answer
    headers = {"Authorization": f"Bearer {FIRST}{SECOND}"}
    return {"type": "http", "url": server.url, "headers": headers}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
async def test_t506_a_split_secret_is_redacted_for_a_model(content: list[dict[str, Any]]):
    async with streamable(revisions=(MODERN,)) as server:
        entry = serving(server, content)
        async with Host({"x": entry}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            found = (await host.call("mcp__x__echo", {"text": "x"})).text
    assert FIRST not in found
    assert SECOND not in found
    assert "x [secret]" in found


@pytest.mark.parametrize("name", ["text, resource", "resource, text", "two resources"])
async def test_t506_a_split_secret_is_redacted_for_a_program_and_a_gateway_client(name: str):
    async with streamable(revisions=(MODERN,)) as server:
        entry = serving(server, CONTENTS[name])
        async with gateway_of({"x": entry}) as running, Client(running.url) as client:
            raw = await running.host.call("mcp__x__echo", {"text": "x"}, raw=True)
            reply = await client.modern("tools/call", {"name": "x__echo", "arguments": {"text": "x"}})
    assert [block.as_text() for block in raw.content] == ["x [secret]", " y"]
    assert FIRST not in str(reply.last)
    assert SECOND not in str(reply.last)

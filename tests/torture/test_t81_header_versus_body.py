"""T81: Headers that contradict the body are refused before anything is looked up."""

from base64 import b64encode
from typing import Any

import pytest

from tests.gateway import MODERN, Client, Json, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1")
META: Json = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
GOOD = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "office__ledger")]


def without(name: str) -> list[tuple[str, str]]:
    return [each for each in GOOD if each[0] != name]


def with_(name: str, value: str) -> list[tuple[str, str]]:
    return [*without(name), (name, value)]


def base64(value: str) -> str:
    return f"=?base64?{b64encode(value.encode()).decode()}?="


REFUSED: dict[str, list[tuple[str, str]]] = {
    "another name": with_("Mcp-Name", "office__hold"),
    "another case": with_("Mcp-Name", "Office__ledger"),
    "another name in base64": with_("Mcp-Name", base64("office__hold")),
    "broken base64": with_("Mcp-Name", "=?base64?***?="),
    "no name": without("Mcp-Name"),
    "two names": [*GOOD, ("Mcp-Name", "office__ledger")],
    "another method": with_("Mcp-Method", "tools/list"),
    "no method": without("Mcp-Method"),
    "two methods": [*GOOD, ("Mcp-Method", "tools/call")],
    "another version": with_("MCP-Protocol-Version", "2025-11-25"),
    "no version": without("MCP-Protocol-Version"),
    "two versions": [*GOOD, ("MCP-Protocol-Version", "2025-11-25")],
}
ACCEPTED = {"plain": GOOD, "base64": with_("Mcp-Name", base64("office__ledger"))}


async def answered(headers: list[tuple[str, str]], params: Json) -> tuple[int, Any, list[str]]:
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        given = [*client.headers.items(), *headers]
        async with client.http.post(client.url, headers=given, json=message) as response:
            return response.status, await response.json(), office.ledger


@pytest.mark.parametrize("headers", REFUSED.values(), ids=REFUSED.keys())
async def test_t81_headers_that_contradict_the_body_are_refused(headers: list[tuple[str, str]]):
    status, reply, ledger = await answered(headers, {"name": "office__ledger", "_meta": META})
    assert (status, reply["error"]["code"], ledger) == (400, -32020, [])


@pytest.mark.parametrize("headers", ACCEPTED.values(), ids=ACCEPTED.keys())
async def test_t81_headers_that_repeat_the_body_are_accepted(headers: list[tuple[str, str]]):
    status, reply, _ = await answered(headers, {"name": "office__ledger", "_meta": META})
    assert (status, "result" in reply) == (200, True)


async def test_t81_an_old_version_with_headers_of_the_new_version_needs_a_session():
    headers = with_("MCP-Protocol-Version", "2025-11-25")
    status, reply, _ = await answered(headers, {"name": "office__ledger"})
    assert (status, reply) == (400, {"error": "the header Mcp-Session-Id is missing"})

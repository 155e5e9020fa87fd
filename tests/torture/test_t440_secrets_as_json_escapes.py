"""T440: a server whose JSON library writes characters of a secret as escapes (`&` as `\\u0026`)."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from dragoman import Host
from tests.gateway import Client, gateway_of
from tests.servers.web import Ask, streamable
from tests.torture.conftest import MODERN

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

SECRET = "k7+Qz/4&w'9<Rr>vB=="
SAID, COVERED = f"it is {SECRET}, so", "it is [secret], so"


def writer(characters: str, form: str) -> Callable[[Any], str]:
    """A JSON library that writes these characters as `\\u` escapes."""

    def write(value: Any) -> str:
        escape = re.compile(f"[{characters}]")
        text = json.dumps(value)
        return re.sub(r'"[^"]*"', lambda found: escape.sub(lambda each: form % ord(each[0]), found[0]), text)

    return write


WRITERS = {
    "Go": writer("&<>", "\\u%04x"),
    "Gson": writer("&<>='", "\\u%04x"),
    ".NET": writer("&<>+'`", "\\u%04X"),
    "JavaScript for HTML": writer("<>/", "\\u%04X"),
    "PHP": lambda value: json.dumps(value).replace("/", "\\/"),
    "PHP for HTML": lambda value: writer("&<>'", "\\u%04X")(value).replace("/", "\\/"),
}
by_writer = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
OF_MESSAGES = {**WRITERS, "all signs and digits": writer("&<>+'=/0-9", "\\u%04x")}


@asynccontextmanager
async def served(write: Callable[[Any], str], text: str) -> AsyncIterator[dict[str, Any]]:
    """The entry of a server that writes with this library; its tool returns `text`."""
    properties = {"a": {"type": "string", "description": SAID}}
    tool = {
        "name": "told",
        "description": SAID,
        "inputSchema": {"type": "object", "properties": properties},
    }
    results = {
        "tools/list": {"resultType": "complete", "tools": [tool]},
        "tools/call": {"resultType": "complete", "content": [{"type": "text", "text": text}]},
    }

    async def answer(ask: Ask) -> web.StreamResponse:
        reply = {"jsonrpc": "2.0", "id": ask.id, "result": results[ask.rpc]}
        return web.Response(text=write(reply), content_type="application/json")

    async with streamable(revisions=(MODERN,)) as server:
        server.on.update(dict.fromkeys(results, answer))
        yield {"type": "http", "url": server.url, "headers": {"Authorization": f"Bearer {SECRET}"}}


@by_writer
async def test_t440_a_secret_in_json_inside_a_text_is_redacted_for_models(write: Callable[[Any], str]):
    async with (
        served(json.dumps, write({"a": SAID})) as entry,
        Host({"x": entry}, permission_mode="bypassPermissions") as host,
    ):
        await host.ready(timeout=20)
        for raw in (False, True):
            outcome = await host.call("mcp__x__told", raw=raw)
            assert outcome.text == '{"a": "it is [secret], so"}'


@pytest.mark.parametrize("write", OF_MESSAGES.values(), ids=OF_MESSAGES.keys())
async def test_t440_a_secret_in_escapes_of_the_message_is_redacted_for_gateway_clients(
    write: Callable[[Any], str],
):
    async with (
        served(write, SAID) as entry,
        gateway_of({"x": entry}) as running,
        Client(running.url) as client,
    ):
        listed = await client.modern("tools/list")
        (shown,) = listed.last["result"]["tools"]
        assert shown["description"] == COVERED
        assert shown["inputSchema"]["properties"] == {"a": {"type": "string", "description": COVERED}}
        reply = await client.modern("tools/call", {"name": "x__told", "arguments": {}})
        assert reply.last["result"]["content"] == [{"type": "text", "text": COVERED}]


@by_writer
async def test_t440_a_secret_in_json_inside_a_text_is_redacted_for_gateway_clients(
    write: Callable[[Any], str],
):
    text = write({"a": SAID})
    async with (
        served(write, text) as entry,
        gateway_of({"x": entry}) as running,
        Client(running.url) as client,
    ):
        reply = await client.modern("tools/call", {"name": "x__told", "arguments": {}})
        assert reply.last["result"]["content"] == [{"type": "text", "text": f'{{"a": "{COVERED}"}}'}]

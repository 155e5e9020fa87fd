"""T481: a secret in JSON inside a text, with escaped characters, is redacted in structured content,
`_meta`, blocks of unknown types and saved files, as it is in a short text."""

import json
from typing import Any

import pytest
from aiohttp import web

from dragoman import Host
from dragoman.content.redact import Redactor
from tests.servers.web import Ask, streamable
from tests.torture.conftest import MODERN

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

SECRET = "s3cr3t-0f-th1s-entry"
ESCAPED = SECRET.replace("-", "\\u002D")
ESCAPED_TEXT = json.dumps({"a": "it is X, so"}).replace("X", ESCAPED)
REDACTED_TEXT = '{"a": "it is [secret], so"}'

RESULTS: dict[str, dict[str, Any]] = {
    "structured content": {"content": [], "structuredContent": {"body": ESCAPED_TEXT}},
    "a name": {"content": [], "structuredContent": {ESCAPED_TEXT: 1}},
    "_meta": {"content": [], "_meta": {"x": ESCAPED_TEXT}},
    "an unknown block": {"content": [{"type": "odd", "x": ESCAPED_TEXT}]},
    "a large text": {"content": [{"type": "text", "text": ESCAPED_TEXT + " x" * 200_000 + ESCAPED_TEXT}]},
    "large structured content": {
        "content": [],
        "structuredContent": {"a": ESCAPED_TEXT, "b": "x " * 300_000, "c": ESCAPED_TEXT},
    },
}


@pytest.mark.parametrize("name", RESULTS)
async def test_t481_no_part_of_a_result_contains_the_secret(name: str):
    results = {
        "tools/list": {"tools": [{"name": "told", "inputSchema": {"type": "object"}}]},
        "tools/call": RESULTS[name],
    }

    async def answer(ask: Ask) -> web.StreamResponse:
        result = {"resultType": "complete", **results[ask.rpc]}
        return web.json_response({"jsonrpc": "2.0", "id": ask.id, "result": result})

    async with streamable(revisions=(MODERN,)) as server:
        server.on.update(dict.fromkeys(results, answer))
        entry = {"type": "http", "url": server.url, "headers": {"Authorization": f"Bearer {SECRET}"}}
        async with Host({"x": entry}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            outcomes = [await host.call("mcp__x__told", raw=raw) for raw in (False, True)]
            files = [file.path.read_text() for each in outcomes for file in each.saved]
            said = [(repr(each), each.text, each.structured, each.meta) for each in outcomes]
    assert "s3cr3t" not in f"{said} {files}"
    assert "[secret]" in f"{said} {files}"


@pytest.mark.parametrize("size", [1, 7, 50, 333])
def test_t481_the_secret_is_redacted_in_chunks_split_at_any_position(size: int):
    text = (f"{'y' * 90} {ESCAPED_TEXT} " * 20).encode()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    covered = b"".join(Redactor([SECRET]).pieces(pieces)).decode()
    assert covered == f"{'y' * 90} {REDACTED_TEXT} " * 20


def test_t481_escapes_without_a_secret_are_unchanged():
    redactor, text = Redactor([SECRET]), '{"a": "x\\u002dy\\/z"}'
    assert b"".join(redactor.pieces([text.encode()])).decode() == text
    assert redactor.value({"a": text}) == {"a": text}

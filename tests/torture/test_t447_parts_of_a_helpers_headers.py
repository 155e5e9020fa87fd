"""T447: a server repeats a part of a header from its headersHelper: a cookie, or a parameter."""

import json
import shlex
from pathlib import Path

import pytest
from aiohttp import web

from dragoman import Host
from tests.servers.web import Ask, streamable
from tests.torture.conftest import MODERN

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

SECRET = "s3cr3t-0f-the-helper"
HEADERS = {
    "a cookie": {"Cookie": f"theme=dark; session={SECRET}; Path=/"},
    "the first of several cookies": {"Cookie": f"session={SECRET};theme=dark"},
    "a parameter": {"Authorization": f'Token user="me",token="{SECRET}"'},
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS.keys())
async def test_t447_each_part_is_redacted(headers: dict[str, str], tmp_path: Path):
    async def repeat(ask: Ask) -> web.StreamResponse:
        assert [ask.headers.get(name) for name in headers] == list(headers.values())
        content = [{"type": "text", "text": f"it is {SECRET}, so"}]
        result = {"resultType": "complete", "content": content}
        return web.json_response({"jsonrpc": "2.0", "id": ask.id, "result": result})

    async with streamable(revisions=(MODERN,)) as server:
        server.on["tools/call"] = repeat
        (tmp_path / "headers.json").write_text(json.dumps(headers))
        helper = f"cat {shlex.quote(str(tmp_path / 'headers.json'))}"
        entry = {"type": "http", "url": server.url, "headersHelper": helper}
        async with Host({"x": entry}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            assert (await host.call("mcp__x__echo", {"text": "x"})).text == "it is [secret], so"

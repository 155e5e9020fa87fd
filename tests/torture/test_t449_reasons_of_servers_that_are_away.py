"""T449: a server refuses the connection, and repeats what it was sent in the status line or a redirect."""

from typing import Any

import pytest
from aiohttp import web

from dragoman import DragomanError, Host
from tests.servers.web import Ask, streamable

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

SECRET = "s3cr3t-0f-th1s-entry"


async def refused(ask: Ask) -> web.StreamResponse:
    return web.Response(status=403, reason=f"No right for {SECRET}")


async def redirected(ask: Ask) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": f"/login/{SECRET}"})


async def texts_of(work: Any) -> str:
    """All text that a program receives about a request."""
    try:
        found = await work
    except DragomanError as error:
        return f"{error!r} {error} {error.hint} {vars(error)}"
    error = getattr(found, "error", None)
    return f"{found!r} {getattr(found, 'problems', '')} {vars(error) if error is not None else ''}"


@pytest.mark.parametrize("answer", [refused, redirected])
async def test_t449_no_error_or_log_contains_the_secret(answer: Any):
    async with streamable() as server:
        server.on["*"] = answer
        entry = {"type": "http", "url": server.url, "headers": {"Authorization": f"Bearer {SECRET}"}}
        async with Host({"x": entry}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status in ("failed", "needs-auth")
            box = host.toolbox()
            shown = {
                "call": await texts_of(host.call("mcp__x__echo", {"text": "x"})),
                "resources": await texts_of(host.resources.list("x")),
                "templates": await texts_of(host.resources.templates("x")),
                "all resources": await texts_of(host.resources.list()),
                "read": await texts_of(host.resources.read("x", "note://a")),
                "prompts": await texts_of(host.prompts.list("x")),
                "all prompts": await texts_of(host.prompts.list()),
                "completion": await texts_of(host.resources.complete("x", "note://{a}", "a")),
                "a model's list": await texts_of(box.call("list_mcp_resources", {"server": "x"})),
                "a model's list of all": await texts_of(box.call("list_mcp_resources")),
                "a model's read": await texts_of(
                    box.call("read_mcp_resource", {"server": "x", "uri": "note://a"})
                ),
            }
    assert [name for name, text in shown.items() if SECRET in text] == []
    assert [name for name, text in shown.items() if "[secret]" in text] != []

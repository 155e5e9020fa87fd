"""T828: a proxy or login page in front of the endpoint of a hook that blocks on errors answers with HTML
and status 200. The hook has not decided: the call is refused."""

import pytest
from aiohttp import web

from dragoman import Host
from dragoman.errors import PermissionRefused
from dragoman.hooks.declared import Hook, HttpHook
from dragoman.testing import InMemoryServer
from tests.servers.web import Ask
from tests.servers.web.site import Site

pytestmark = pytest.mark.requirement("PRM-5")
PAGES = {
    "HTML": "\n<!DOCTYPE html>\n<html>Please sign in</html>",
    "a byte order mark before it": "\ufeff<html>Please sign in</html>",
    "XML": '<?xml version="1.0"?><error/>',
}
NO_DECISION = {"nothing": "", "a word": "ok"}


async def outcome_with(answer: str) -> object:
    async def answering(_: Ask) -> web.StreamResponse:
        return web.Response(text=answer, content_type="text/html")

    server = InMemoryServer("box")
    server.add_tool("echo", lambda arguments, context: "hi")
    async with Site(answering) as site:
        what = HttpHook(f"{site.origin}/", ())
        hook = Hook(event="PreToolUse", what=what, name="web", blocks_on_error=True)
        async with Host({"box": server}, permission_mode="bypassPermissions", hooks=[hook]) as host:
            await host.ready(timeout=20)
            outcome = await host.call("mcp__box__echo")
    return outcome.error or outcome.text


@pytest.mark.parametrize("how", PAGES)
async def test_t828_an_html_page_is_not_an_answer_of_a_hook(how: str):
    assert isinstance(await outcome_with(PAGES[how]), PermissionRefused)


@pytest.mark.parametrize("how", NO_DECISION)
async def test_t828_an_answer_without_a_decision_has_no_effect(how: str):
    assert await outcome_with(NO_DECISION[how]) == "hi"

"""The whole story: a conversation with a model, a server that requires a sign-in, then a page (-32042), then
answers. Real client libraries, a real authorization server, a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from aiohttp import web

from dragoman import Host, PermissionAnswer, UrlElicitation
from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions, open_session
from tests.e2e.fake_provider import FakeProvider
from tests.interop.oauth.parts import AuthorizationServer, Protected
from tests.interop.oauth.test_browser import Chromium
from tests.interop.visit import Visit, visit
from tests.servers.web import Ask, answers

Part = Callable[..., dict[str, Any]]


class Linked(Protected):
    """A protected server that answers a call only after the person was at its page `/link`."""

    was_visited = False

    async def _check(self, ask: Ask) -> web.StreamResponse | None:
        if ask.path == "/link":
            self.was_visited = True
            return web.Response(text="<h1>Your account is linked</h1>", content_type="text/html")
        found = await super()._check(ask)
        if found is not None or ask.rpc != "tools/call" or self.was_visited:
            return found
        page = {"mode": "url", "elicitationId": "e-1", "url": f"{self.origin}/link", "message": "Link it"}
        return await answers.error(-32042, "visit the page first", data={"elicitations": [page]})(ask)


class Person:
    """An `Interaction`: allows calls, and opens pages in Chromium."""

    def __init__(self, browser: Visit) -> None:
        self._browser = browser
        self.allowed: list[str] = []
        self.pages: list[str] = []

    async def allow(self, question: Any) -> PermissionAnswer:
        self.allowed.append(question.tool)
        return PermissionAnswer(True)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        self.pages.append(question.url)
        await self._browser.call("browser_navigate", url=question.url)
        return "accept"


@pytest.mark.slow
@pytest.mark.requirement("AGT-1")
@pytest.mark.needs("oidc-provider", "playwright")
@pytest.mark.parametrize("spec", ["anthropic:claude-sonnet-5", "openai:gpt-5.5"])
async def test_from_a_prompt_through_a_sign_in_and_a_page_to_the_answer(
    spec: str, part: Part, authorization: AuthorizationServer, tmp_path: Path
) -> None:
    entry = {**part("playwright", "--caps", "devtools"), "cwd": str(tmp_path)}
    script: Any = (
        [("mcp__s__authenticate", {})],
        ["Please open the page that is shown."],
        [("mcp__s__echo", {"text": "hello"})],
        ["It said hello."],
    )
    with FakeProvider(*script) as provider:
        base = provider.url if spec.startswith("anthropic") else f"{provider.url}/v1"
        options = AgentOptions(model=ModelChoice(spec, base), folder=tmp_path)
        async with Linked(authorization) as server, visit(entry, "2025-11-25") as browser:
            person = Person(browser)
            async with (
                Host({"s": server.entry}, interaction=person, session_hooks=False) as host,
                open_session(host, options) as session,
            ):
                assert host.servers["s"].status == "needs-auth"
                assert "mcp__s__authenticate" in [tool.name for tool in session.toolbox.tools()]
                first = await session.conversation.run("Say hello.")
                assert first.text == "Please open the page that is shown."

                (told,) = provider.tool_results(1)
                (url,) = re.findall(r"http://127\.0\.0\.1:\d+/auth\S+", told)
                await Chromium(browser).walk(url.rstrip(".)"))
                views = await host.ready(timeout=30)
                assert views["s"].status == "connected"

                second = await session.conversation.run("I have signed in.")
    assert second.text == "It said hello."
    assert provider.tool_results(3)[-1] == "hello"
    assert "mcp__s__authenticate" not in provider.tools(3)
    assert person.allowed == ["mcp__s__echo"], "asked once, although the call was made twice"
    assert [page.rpartition("/")[2] for page in person.pages] == ["link"]
    assert len(server.tokens) == 1
    assert all(token not in str(provider.requests) for token in server.tokens)

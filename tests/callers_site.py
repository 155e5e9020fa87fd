"""An authorization server and an MCP server in a thread, for callers with their own accounts.

A cookie of the browser names the account of its person; the MCP server answers with the account whose token
it was sent. Refresh tokens can be used once: a second use ends the whole account, as real servers do.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import re
import threading
import urllib.parse
from http import HTTPStatus
from typing import Any, Self

import aiohttp
from yarl import URL

from tests.e2e.sign_in_site import METADATA, SignInSite, _Handler
from tests.gateway import Client, Json


class CallersSite(SignInSite):
    """`with CallersSite() as site`."""

    def __init__(self, expires_in: float = 3600) -> None:
        super().__init__()
        self.handler = _AccountHandler
        self.expires_in = expires_in
        self.owners: dict[str, str] = {}
        """By valid access token: its account."""
        self.refreshes: list[str] = []
        """The accounts of successful refreshes."""
        self.reused: list[str] = []
        """The accounts of which a refresh token was used twice."""
        self.sent: list[str] = []
        """The tokens of messages to the MCP server, in their order."""
        self.sessions: set[tuple[str, str]] = set()
        """The accounts of these, and the session that the host says they belong to."""
        self.may_answer = threading.Event()
        """Cleared: calls of tools are not answered."""
        self.may_answer.set()
        self.issuer_of_answers: str | None = None
        """Stated in place of its own, as `iss`."""
        self._account_of_code: dict[str, str] = {}
        self._account_of_refresh: dict[str, str] = {}
        self._used: dict[str, str] = {}
        self.calls = 0
        self.read_hints: dict[str, Any] = {}
        """More members of what is read of a resource."""

    def authorize_as(self, query: dict[str, str], account: str) -> str:
        url = super().authorize(query)
        given = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        self._account_of_code[given["code"]] = account
        if self.issuer_of_answers is not None:
            given["iss"] = self.issuer_of_answers
        return f"{query['redirect_uri']}?{urllib.parse.urlencode(given)}"

    def token(self, form: dict[str, str], login: str | None) -> dict[str, Any]:
        if form["grant_type"] == "refresh_token":
            given = form["refresh_token"]
            account = self._account_of_refresh.pop(given, None)
            if account is None:
                if given in self._used:
                    self.reused.append(self._used[given])
                return {"error": "invalid_grant"}
            self._used[given] = account
            self.refreshes.append(account)
        else:
            account = self._account_of_code.get(form["code"], "")
        reply = super().token(form, login)
        if "error" not in reply:
            self.owners[reply["access_token"]] = account
            self._account_of_refresh[reply["refresh_token"]] = account
            reply["expires_in"] = self.expires_in if form["grant_type"] == "authorization_code" else 3600
        return reply

    def expire(self) -> None:
        """Makes all access tokens invalid."""
        self.tokens.clear()


class _AccountHandler(_Handler):
    site: CallersSite  # type: ignore[assignment]
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path != "/authorize":
            return super().do_GET()
        account = self.headers.get("Cookie", "account=unknown").partition("account=")[2].partition(";")[0]
        given = dict(urllib.parse.parse_qsl(query))
        self._say(None, HTTPStatus.FOUND, {"Location": self.site.authorize_as(given, account)})

    def _say(self, *args: Any, **options: Any) -> None:
        with contextlib.suppress(ConnectionError):  # the client is gone
            super()._say(*args, **options)

    def _answer(self, message: dict[str, Any]) -> None:
        token = self.headers.get("Authorization", "")[7:]
        self.site.sent.append(token)
        account = self.site.owners.get(token, "")
        self.site.sessions.add((account, self.headers.get("X-Mcp-Client-Session-Id", "")))
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "site", "version": "1"},
                "instructions": f"for {account}",
            },
            "tools/list": {
                "tools": [
                    {"name": "look", "inputSchema": {"type": "object"}},
                    {
                        "name": "whoami",
                        "inputSchema": {
                            "type": "object",
                            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
                        },
                    },
                ]
            },
            "tools/call": {"content": [{"type": "text", "text": account}]},
            "resources/list": {"resources": [{"uri": "account://me", "name": "me"}]},
            "resources/read": {"contents": [{"uri": "account://me", "text": account}], "ttlMs": 60000}
            | self.site.read_hints,
            "prompts/list": {"prompts": [{"name": "greet"}]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": account}}]},
        }
        if "id" not in message:
            return self._say(None, HTTPStatus.ACCEPTED)
        if message["method"] == "tools/call":
            self.site.calls += 1
            self.site.may_answer.wait(30)
        self._say({"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})})


class Page:
    """One answer to a browser."""

    def __init__(self, status: int, text: str, headers: Any) -> None:
        self.status, self.text, self.headers = status, text, headers

    @property
    def title(self) -> str:
        found = re.search(r"<h1>(.*?)</h1>", self.text)
        return html.unescape(found[1]) if found else ""

    @property
    def token(self) -> str:
        found = re.search(r'name="token" value="([^"]*)"', self.text)
        assert found is not None, self.text
        return found[1]


class Browser:
    """A person's browser: keeps cookies, and follows no redirect by itself."""

    def __init__(self, site: CallersSite, account: str) -> None:
        self._site = site
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True), cookies=None, auto_decompress=True
        )
        self._http.cookie_jar.update_cookies({"account": account}, URL(f"{site.origin}/authorize"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def open(self, url: str, **headers: str) -> Page:
        return await self._ask("GET", url, None, headers)

    async def press(self, url: str, token: str, **headers: str) -> Page:
        return await self._ask("POST", url, {"token": token}, headers)

    async def _ask(self, method: str, url: str, form: Any, headers: dict[str, str]) -> Page:
        async with self._http.request(
            method, URL(url, encoded=True), data=form, headers=headers, allow_redirects=False
        ) as answer:
            return Page(answer.status, await answer.text(), answer.headers)

    async def to_return(self, link: str) -> str:
        """From the link of a sign-in to the address at which the browser returns to the gateway."""
        page = await self.open(link)
        assert page.status == 200, page.text
        pressed = await self.press(link, page.token)
        assert pressed.status == 303, pressed.text
        at_site = await self.open(pressed.headers["Location"])
        assert at_site.status == 302, at_site.text
        return at_site.headers["Location"]

    async def sign_in(self, link: str) -> Page:
        """Through all pages of a sign-in; the last one."""
        return await self.open(await self.to_return(link))


def link_in(message: Json) -> str:
    """The page that a call of `authenticate` names."""
    found = re.search(r"http://127\.0\.0\.1:\d+/sign-in/\S+", message["result"]["content"][0]["text"])
    assert found is not None, message
    return found[0]


async def begin(client: Client, tool: str = "tracker__authenticate") -> str:
    """Begins a sign-in; its link."""
    return link_in((await client.modern("tools/call", {"name": tool, "arguments": {}})).last)


async def names(client: Client) -> list[str]:
    reply = await client.modern("tools/list")
    return [tool["name"] for tool in reply.last["result"]["tools"]]


async def call(client: Client, tool: str = "tracker__whoami") -> str:
    """The text of the result, or the message of the error."""
    last = (await client.modern("tools/call", {"name": tool, "arguments": {}})).last
    return last["error"]["message"] if "error" in last else last["result"]["content"][0]["text"]


async def signed_in(client: Client, site: CallersSite, account: str) -> None:
    """Signs a caller in, and waits until its tools are there."""
    async with Browser(site, account) as browser:
        page = await browser.sign_in(await begin(client))
        assert page.title == "You are signed in"
    async with asyncio.timeout(10):
        while "tracker__whoami" not in await names(client):
            await asyncio.sleep(0.02)


__all__ = ["METADATA", "Browser", "CallersSite", "Page", "begin", "call", "link_in", "names", "signed_in"]

"""A real authorization server, an MCP server that validates tokens with it, and a person with a browser."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import signal
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import urljoin

import aiohttp
from aiohttp import web
from yarl import URL

from tests.servers.web import Ask, Streamable

Part = Callable[..., dict[str, Any]]
METADATA = "/.well-known/oauth-protected-resource"
SCOPES = ("read", "write")
"""What the protected server asks for; `admin` is for the tool `admin_echo` only."""
IDENTIFICATION = {"Authorization": aiohttp.encode_basic_auth("protected-server", "its%20own%20secret")}


class AuthorizationServer:
    """`async with AuthorizationServer(part) as server`: oidc-provider, ready."""

    def __init__(self, part: Part, **options: Any) -> None:
        self._entry = part("oidc-provider")
        self._options = options
        self.issuer = ""

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            self._entry["command"],
            *self._entry["args"],
            env={
                "PATH": os.environ["PATH"],
                "HOME": os.environ["HOME"],
                "OPTIONS": json.dumps(self._options),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(30):
            line = await self._process.stdout.readline()
        self.issuer = json.loads(line)["issuer"]
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def counts(self) -> dict[str, Any]:
        """What happened so far."""
        async with self._session.get(f"{self.issuer}/counts") as answer:
            return json.loads(await answer.text())

    async def grants(self) -> dict[str, int]:
        """By grant type: how many token requests succeeded."""
        return (await self.counts())["grants"]

    async def expire(self) -> None:
        """Makes all access tokens invalid."""
        async with self._session.post(f"{self.issuer}/expire"):
            return

    async def introspect(self, token: str) -> dict[str, Any]:
        return await self.post("/token/introspection", {"token": token}, IDENTIFICATION)

    async def post(
        self, path: str, form: dict[str, str], headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        async with self._session.post(self.issuer + path, data=form, headers=headers) as answer:
            return await answer.json()


class Protected(Streamable):
    """An MCP server whose tokens the authorization server checks. `tokens`: those that it accepted."""

    def __init__(
        self, authorization: AuthorizationServer, *, scopes: tuple[str, ...] = SCOPES, **options: Any
    ) -> None:
        super().__init__(replies="json", get_stream=False, on={"*": self._check}, **options)
        self._authorization = authorization
        self._scopes = scopes
        self.call_scopes: tuple[str, ...] = ()
        """Scopes that a call needs besides."""
        self.tokens: list[str] = []
        self.refused = 0

    @property
    def entry(self) -> dict[str, Any]:
        return {"type": "http", "url": self.url, "protocol": "2025-11-25"}

    async def _check(self, ask: Ask) -> web.StreamResponse | None:
        if ask.path == f"{METADATA}{self.path}":
            return web.json_response(
                {
                    "resource": self.url,
                    "authorization_servers": [self._authorization.issuer],
                    "scopes_supported": list(self._scopes),
                }
            )
        if ask.path != self.path:
            return web.Response(status=404)
        kind, _, token = ask.headers.get("Authorization", "").partition(" ")
        found = await self._authorization.introspect(token) if token and kind == "Bearer" else {}
        if not found.get("active") or found.get("aud") != self.url:
            self.refused += 1
            return self._challenge(401, self._scopes)
        granted = found.get("scope", "").split()
        needed = (*self._scopes, *self.call_scopes) if ask.rpc == "tools/call" else self._scopes
        if not set(needed) <= set(granted):
            return self._challenge(403, needed, 'error="insufficient_scope", ')
        if token not in self.tokens:
            self.tokens.append(token)
        return None

    def _challenge(self, status: int, scopes: tuple[str, ...], error: str = "") -> web.Response:
        metadata = f"{self.origin}{METADATA}{self.path}"
        words = f'Bearer {error}resource_metadata="{metadata}", scope="{" ".join(scopes)}"'
        return web.Response(status=status, headers={"WWW-Authenticate": words})


class Browser:
    """Walks pages by HTTP: follows redirects, fills in forms, keeps cookies."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        self.forms = 0
        """How many forms the person has sent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def walk(self, url: str, **fields: str) -> str:
        """From a page to the last one, by way of every form; its text."""
        method, data = "GET", None
        for _ in range(20):
            async with self._session.request(
                method, URL(url, encoded=True), data=data, allow_redirects=False
            ) as page:
                text = await page.text()
                if page.status in (301, 302, 303, 307, 308):
                    method, data, url = "GET", None, urljoin(url, page.headers["Location"])
                    continue
                assert page.status == 200, f"{page.status} at {url}: {text}"
            form = re.search(r"<form.*?</form>", text, re.DOTALL)
            if form is None:
                return text
            self.forms += 1
            action = re.search(r'action="([^"]*)"', form[0])
            assert action is not None
            method, data, url = "POST", _filled(form[0], fields), urljoin(url, html.unescape(action[1]))
        raise AssertionError(f"the pages never end; at {url}")


def _filled(form: str, fields: dict[str, str]) -> dict[str, str]:
    given = {"login": "anna", "password": "any", **fields}
    data: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", form, re.DOTALL):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name is not None:
            data[name[1]] = html.unescape(value[1]) if value else given[name[1]]
    return data


class Person:
    """A `SignInScreen`: a person who walks the pages, and confirms nothing."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.visits: list[str] = []
        """URLs that the person was sent to."""
        self.notices: list[str] = []
        self.pages: list[asyncio.Task[str]] = []
        """The last page of each visit. A browser goes on when the sign-in has its answer."""

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        self.visits.append(url)
        self.pages.append(asyncio.create_task(self._browser.walk(url)))
        await asyncio.shield(self.pages[-1])

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        self.visits.append(url)
        self.pages.append(asyncio.create_task(self._browser.walk(url, user_code=code)))
        await self.pages[-1]

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        return False

    def notice(self, text: str) -> None:
        self.notices.append(text)

"""A protected MCP server, its authorization server, and a third server at another origin.

They are correct; a test changes their documents, or adds answers by path with `on`. Every issued secret is a
canary, so that a test can search for it anywhere.

    async with AuthWorld() as world:
        world.server_document["token_endpoint"] = world.other.origin + "/token"
        ...
        assert world.canaries_in(world.other) == []
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import aiohttp
from aiohttp import web

from tests.servers.web.site import Answer, Ask, Site
from tests.servers.web.streamable import Streamable

Json = dict[str, Any]
Returning = Callable[[dict[str, str]], dict[str, str] | list[tuple[str, str]]]

SECRET = "cAnary-client-secret"
PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
_CANARY = re.compile(r"cAnary-[a-z-]+[0-9]*")


class AuthWorld:
    def __init__(self, *, path: str = "/mcp", revisions: tuple[str, ...] = ("2025-11-25",)) -> None:
        self.mcp = Streamable(path=path, revisions=revisions, on={"*": self._protect})
        self.auth = Site(self._authorize)
        self.other = Site(self._elsewhere)
        self.on: dict[str, Answer] = {}
        """By path: answers in front of all three; None from one leaves the request to the server behind."""
        self.challenge: str | None = None
        """`WWW-Authenticate` of a 401; None: one that names the metadata."""
        self.resource_document: Any = {}
        """None: there is none."""
        self.server_document: Any = {}
        self.elsewhere: Any = None
        """What the third party answers; None: that it knows nothing."""
        self.expires_in: Any = 3600
        self.client_id = "client-1"
        self.accepted: set[str] = set()
        """Access tokens that the MCP server takes."""
        self.refresh_tokens: set[str] = set()
        self.used_refresh_tokens: set[str] = set()
        self.reuses = 0
        """How often a refresh token was used a second time."""
        self.token_requests: list[dict[str, str]] = []
        self.registrations: list[Json] = []
        self.revoked: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self._numbers = itertools.count(1)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for each in (self.mcp, self.auth, self.other):
            await self._stack.enter_async_context(each)
        self.resource_document = {
            "resource": self.mcp.url,
            "authorization_servers": [self.auth.origin],
            "scopes_supported": ["read"],
        }
        at = self.auth.origin
        self.server_document = {
            "issuer": at,
            "authorization_endpoint": f"{at}/authorize",
            "token_endpoint": f"{at}/token",
            "registration_endpoint": f"{at}/register",
            "revocation_endpoint": f"{at}/revoke",
            "device_authorization_endpoint": f"{at}/device",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    # What tests ask.

    def entry(self, **oauth: Any) -> Json:
        found: Json = {"type": "http", "url": self.mcp.url}
        return {**found, "oauth": oauth} if oauth else found

    @property
    def refreshes(self) -> int:
        return sum(form.get("grant_type") == "refresh_token" for form in self.token_requests)

    def canaries_in(self, site: Site) -> list[str]:
        """The canaries that a server was sent, in whatever part of a request."""
        found: set[str] = set()
        for ask in site.asks:
            headers = "\n".join(f"{name}: {value}" for name, value in ask.headers.items())
            text = f"{ask.path}\n{headers}\n{ask.body.decode('latin-1')}"
            basic = re.findall(r"Basic ([A-Za-z0-9+/=]+)", headers)
            text += "".join(base64.b64decode(each).decode("latin-1") for each in basic)
            found |= set(_CANARY.findall(text)) | set(_CANARY.findall(unquote(text)))
        return sorted(found)

    def asked_at(self, site: Site, path: str) -> list[Ask]:
        return [ask for ask in site.asks if ask.path.partition("?")[0] == path]

    def expire_tokens(self) -> None:
        """The MCP server takes none of the tokens that were given out so far."""
        self.accepted.clear()

    def issue(self, scope: str = "read", **more: Any) -> Json:
        """A token answer."""
        number = next(self._numbers)
        access, refresh = f"cAnary-access-{number}", f"cAnary-refresh-{number}"
        self.accepted.add(access)
        self.refresh_tokens.add(refresh)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
            "refresh_token": refresh,
            "scope": scope,
            **more,
        }

    # The MCP server.

    async def _protect(self, ask: Ask) -> web.StreamResponse | None:
        if (answered := await self._in_front(ask)) is not None:
            return answered
        path = ask.path.partition("?")[0]
        if path.startswith(PROTECTED_RESOURCE):
            return document(self.resource_document)
        if path != self.mcp.path:
            return web.Response(status=404)
        if ask.headers.get("Authorization", "").partition(" ")[2] in self.accepted:
            return None
        return web.Response(status=401, headers={"WWW-Authenticate": self._challenge()})

    def _challenge(self) -> str:
        if self.challenge is not None:
            return self.challenge
        return f'Bearer resource_metadata="{self.mcp.origin}{PROTECTED_RESOURCE}{self.mcp.path}"'

    async def _in_front(self, ask: Ask) -> web.StreamResponse | None:
        answer = self.on.get(ask.path.partition("?")[0])
        return None if answer is None else await answer(ask)

    async def _elsewhere(self, ask: Ask) -> web.StreamResponse | None:
        return await self._in_front(ask) or (None if self.elsewhere is None else document(self.elsewhere))

    # The authorization server.

    async def _authorize(self, ask: Ask) -> web.StreamResponse | None:
        if (answered := await self._in_front(ask)) is not None:
            return answered
        form = dict(parse_qsl(ask.body.decode(), keep_blank_values=True))
        match ask.path.partition("?")[0]:
            case "/.well-known/oauth-authorization-server":
                return document(self.server_document)
            case "/register":
                self.registrations.append(ask.message)
                reply = {**ask.message, "client_id": self.client_id}
                return web.json_response(reply, status=201)
            case "/authorize":
                return self._code(dict(parse_qsl(urlsplit(ask.path).query)))
            case "/token":
                return self._token(form)
            case "/revoke":
                self.revoked.append(form["token"])
                return web.Response()
            case _:
                return None

    def _code(self, asked: dict[str, str]) -> web.Response:
        code = f"cAnary-code-{next(self._numbers)}"
        self.codes[code] = asked
        answer = urlencode({"code": code, "state": asked["state"], "iss": self.auth.origin})
        return web.Response(status=302, headers={"Location": f"{asked['redirect_uri']}?{answer}"})

    def _token(self, form: dict[str, str]) -> web.Response:
        self.token_requests.append(form)
        match form.get("grant_type"):
            case "authorization_code":
                asked = self.codes.pop(form.get("code", ""), None)
                digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
                proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                if asked is None or asked["code_challenge"] != proof:
                    return refusal("invalid_grant")
                return web.json_response(self.issue(asked.get("scope", "read")))
            case "refresh_token":
                token = form["refresh_token"]
                self.reuses += token in self.used_refresh_tokens
                if token not in self.refresh_tokens:
                    return refusal("invalid_grant")
                self.refresh_tokens.discard(token)
                self.used_refresh_tokens.add(token)
                return web.json_response(self.issue())
            case "client_credentials":
                return web.json_response(self.issue(form.get("scope", "read")))
            case _:
                return refusal("unsupported_grant_type")


def document(value: Any) -> web.Response:
    return web.Response(status=404) if value is None else web.json_response(value)


def refusal(error: str, status: int = 400, **more: Any) -> web.Response:
    return web.json_response({"error": error, **more}, status=status)


def answering(value: Any, status: int = 200) -> Answer:
    async def answer(_: Ask) -> web.StreamResponse:
        return web.Response(status=status, body=json.dumps(value).encode(), content_type="application/json")

    return answer


class Browser:
    """A `SignInScreen` with a person who signs in at once. `returns` changes the browser's answer."""

    def __init__(self, returns: Returning | None = None, *, confirms: bool = False) -> None:
        self.pages: list[str] = []
        self.codes: list[tuple[str, str, str | None]] = []
        self.notices: list[str] = []
        self.questions: list[tuple[str, str]] = []
        self._visits: list[asyncio.Task[tuple[int, str]]] = []
        self._returns = returns
        self._confirms = confirms

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        self.pages.append(url)
        target = await ended_at(url)
        base, _, query = target.partition("?")
        given = dict(parse_qsl(query))
        changed = given if self._returns is None else self._returns(given)
        # A task: the screen is left as soon as the answer has arrived, and the page comes later.
        self._visits.append(asyncio.create_task(visit(f"{base}?{urlencode(changed)}")))

    async def results(self) -> list[tuple[int, str]]:
        """The answers of the callback listener: status and text."""
        return list(await asyncio.gather(*self._visits))

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        self.codes.append((url, code, complete_url))

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        self.questions.append((server, issuer))
        return self._confirms

    def notice(self, text: str) -> None:
        self.notices.append(text)


class Onlooker(Browser):
    """Shows the page and does nothing else; `act` may."""

    def __init__(self, act: Callable[[str], Awaitable[object]] | None = None) -> None:
        super().__init__()
        self.shown = asyncio.Event()
        self._act = act

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        self.pages.append(url)
        self.deliver = deliver
        self.shown.set()
        if self._act is not None:
            await self._act(url)


async def ended_at(url: str) -> str:
    """Where the authorization server sends the browser."""
    async with aiohttp.ClientSession() as session, session.get(url, allow_redirects=False) as response:
        assert response.status == 302, await response.text()
        return response.headers["Location"]


async def visit(url: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.request(method, url, headers=headers) as response:
        return response.status, await response.text()

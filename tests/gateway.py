"""A gateway for tests on a port chosen by the kernel, and clients of both eras that send plain HTTP."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from dragoman import Host
from dragoman.config.scopes import Sources
from dragoman.gateway.access import Identify, fixed_tokens, with_token
from dragoman.gateway.app import HttpOptions, serve_http
from dragoman.gateway.callers import CallerHosts, accounts_in
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.questions import ClientQuestions
from dragoman.gateway.settings import CallerEntry, View
from dragoman.gateway.sign_in_pages import SignInPages
from dragoman.gateway.store.base import GatewayStore

Json = dict[str, Any]
MODERN, LEGACY = "2026-07-28", "2025-11-25"
ADA, BOB = "token-of-ada-0123456789", "token-of-bob-0123456789"
CALLERS = {"ada": CallerEntry(token=ADA), "bob": CallerEntry(token=BOB)}
ACCEPT = "application/json, text/event-stream"


@dataclass
class Running:
    gateway: Gateway
    host: Host
    port: int
    ids: Any = field(default_factory=lambda: itertools.count(1))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@asynccontextmanager
async def gateway_of(
    servers: Mapping[str, object] | Sources,
    *,
    callers: Mapping[str, CallerEntry] = CALLERS,
    identify: Identify | None = None,
    views: Mapping[str, View] | None = None,
    plain_names: bool = False,
    store: GatewayStore | None = None,
    own: Collection[str] = (),
    documents: Mapping[str, Mapping[str, object]] | None = None,
    **options: Any,
) -> AsyncIterator[Running]:
    """A gateway in front of these servers. `own`: those to which each caller signs in with an account of
    its own. `options`: of the host."""
    questions = ClientQuestions()
    options.setdefault("permission_mode", "bypassPermissions")
    options.setdefault("accounts", accounts_in(store))
    async with Host(servers, interaction=questions, sampler=questions, set_aside=own, **options) as host:
        await host.ready(timeout=30)
        gateway = Gateway(
            host,
            questions,
            plain_names=plain_names,
            views=views,
            store=store,
            callers=CallerHosts(host, SignInPages()) if own else None,
        )
        reporting = asyncio.create_task(gateway.run())
        http = HttpOptions(identify=identify or with_token(fixed_tokens(callers)), documents=documents or {})
        try:
            async with serve_http(gateway, http) as port:
                yield Running(gateway, host, port)
        finally:
            reporting.cancel()
            await asyncio.wait([reporting])
            await gateway.store.close()


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    messages: list[Json]
    """Those of a stream, or the one of a JSON response."""

    @property
    def last(self) -> Json:
        return self.messages[-1]


class Client:
    """Posts messages, and returns everything that comes back."""

    def __init__(self, url: str, token: str | None = ADA, **headers: str) -> None:
        self.url = url
        self.headers = {"Accept": ACCEPT, "Content-Type": "application/json", **headers}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"
        self._ids = itertools.count(1)
        self.http = aiohttp.ClientSession()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.close()

    async def post(self, message: Any, method: str = "POST", **headers: str) -> Reply:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        async with self.http.request(
            method, self.url, data=data, headers={**self.headers, **headers}
        ) as response:
            body = await response.read()
            return Reply(response.status, response.headers, messages_in(response.content_type, body))

    async def modern(
        self,
        method: str,
        params: Json | None = None,
        *,
        capabilities: Json | None = None,
        meta: Json | None = None,
        request_id: int | str | None = None,
    ) -> Reply:
        """A request of the modern era, with the headers that it needs."""
        params = params or {}
        named = params.get("name", params.get("uri"))
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in ("tools/call", "prompts/get", "resources/read"):
            headers["Mcp-Name"] = str(named)
        own = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities or {},
            **(meta or {}),
        }
        message = {
            "jsonrpc": "2.0",
            "id": next(self._ids) if request_id is None else request_id,
            "method": method,
            "params": {**params, "_meta": own},
        }
        return await self.post(message, **headers)

    async def initialize(self, capabilities: Json | None = None, revision: str = LEGACY) -> Reply:
        """Opens a session; later messages belong to it."""
        params = {
            "protocolVersion": revision,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        reply = await self.legacy("initialize", params)
        self.headers["Mcp-Session-Id"] = reply.headers["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = revision
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return reply

    async def legacy(self, method: str, params: Json | None = None, request_id: int | None = None) -> Reply:
        number = next(self._ids) if request_id is None else request_id
        return await self.post({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


def messages_in(content_type: str, body: bytes) -> list[Json]:
    if content_type == "text/event-stream":
        lines = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line]
    try:
        found = json.loads(body)
    except ValueError:
        return []
    return found if isinstance(found, list) else [found]

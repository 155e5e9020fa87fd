"""A web server in this process that records its requests.

It listens, reads and records requests, and closes all connections. An `Answer` decides what is answered.

    async with site(answers.html()) as here:
        ...  # send requests to here.url
        assert here.asks[0].headers["Accept"] == "application/json"
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
from aiohttp import web
from multidict import CIMultiDictProxy

Json = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """One request, as it came."""

    method: str
    path: str
    """With its query."""
    headers: CIMultiDictProxy[str]
    body: bytes
    message: Any
    """The body as JSON; None if it is none."""
    http: web.BaseRequest = field(repr=False)

    @property
    def rpc(self) -> str | None:
        """The protocol's method, if the body is a message that has one."""
        return self.message.get("method") if isinstance(self.message, dict) else None

    @property
    def id(self) -> Any:
        return self.message.get("id") if isinstance(self.message, dict) else None

    @property
    def params(self) -> Json:
        return (self.message.get("params") or {}) if isinstance(self.message, dict) else {}

    @property
    def meta(self) -> Json:
        return self.params.get("_meta") or {}

    def is_a(self, what: str) -> bool:
        """Whether the protocol's method, or else HTTP's, is this one."""
        return what in (self.rpc, self.method)


Answer = Callable[[Ask], Awaitable[web.StreamResponse | None]]
"""How a request is answered; None leaves it to the server that stands behind."""


class Site:
    """Answers everything with `answer`, or in the way a subclass knows."""

    def __init__(
        self, answer: Answer | None = None, *, path: str = "/mcp", tls: ssl.SSLContext | None = None
    ) -> None:
        self.asks: list[Ask] = []
        self.connections = 0
        """How many were made so far."""
        self.path = path
        self._answer = answer
        self._tls = tls
        self._news = asyncio.Event()
        self._transports: set[asyncio.Transport] = set()

    @property
    def origin(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return self.origin + self.path

    def asked(self, what: str) -> list[Ask]:
        """The requests of one kind: a method of the protocol ("tools/call") or of HTTP ("DELETE")."""
        return [ask for ask in self.asks if ask.is_a(what)]

    async def wait_for(self, what: str, count: int = 1, *, seconds: float = 5.0) -> list[Ask]:
        """The requests of one kind, once there are so many."""
        async with asyncio.timeout(seconds):
            while len(found := self.asked(what)) < count:
                self._news.clear()
                await self._news.wait()
        return found

    def cut_connections(self) -> None:
        """Every connection ends now, without a word."""
        for transport in list(self._transports):
            transport.abort()

    async def answer(self, ask: Ask) -> web.StreamResponse:
        """What a subclass overrides."""
        response = await self._answer(ask) if self._answer is not None else None
        return web.Response(status=404) if response is None else response

    async def closing(self) -> None:
        """What a subclass ends before the connections are closed."""

    # The frame.

    async def __aenter__(self) -> Self:
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        listening = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await listening.start()
        self.port: int = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.closing()
        self.cut_connections()
        await self._runner.cleanup()

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        transport = http.transport
        if transport is not None and transport not in self._transports:
            self._transports = {each for each in self._transports if not each.is_closing()} | {transport}
            self.connections += 1
        body = await http.content.read()
        ask = Ask(http.method, http.path_qs, http.headers, body, _json(body), http)
        self.asks.append(ask)
        self._news.set()
        return await self.answer(ask)


@asynccontextmanager
async def site(
    answer: Answer, *, path: str = "/mcp", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    """A site that answers everything in one way."""
    async with Site(answer, path=path, tls=tls) as here:
        yield here


def in_turn(answers: Iterable[Answer]) -> Answer:
    """The first request gets the first answer, and so on; after the last, the server behind answers."""
    left = iter(answers)

    async def answer(ask: Ask) -> web.StreamResponse | None:
        following = next(left, None)
        return None if following is None else await following(ask)

    return answer


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None

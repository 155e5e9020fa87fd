"""A server of HTTP+SSE (revision 2024-11-05): one event stream for each client, and a URL for POST requests.

This module has the `endpoint` event, the two connections, and the faults below; tools.py has the messages.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.servers.web.site import Answer, Ask, Site
from tests.servers.web.streams import Manner, Stream, Viewing
from tests.servers.web.tools import LIST_CHANGED, Conversation, Ledger, make_tool_server

Json = dict[str, Any]


class HttpSse(Site):
    def __init__(
        self,
        *,
        revisions: tuple[str, ...] = ("2024-11-05",),
        endpoint: str | None = "/messages?sid={sid}",
        close_every: float | None = None,
        on: Mapping[str, Answer] | None = None,
        ledger: Ledger | None = None,
        path: str = "/sse",
    ) -> None:
        """`endpoint`: what the first event says, if any; `close_every`: how many seconds a stream lasts."""
        super().__init__(path=path)
        self.ledger = ledger or Ledger()
        self.in_memory = make_tool_server(revisions, self.ledger, lambda: self.push(LIST_CHANGED))
        self.on: dict[str, Answer] = dict(on or {})
        """Answers in front of the server: by the protocol's method, or "GET", "POST", or "*"."""
        self.endpoint = endpoint
        self.close_every = close_every
        self.streams: dict[str, tuple[Stream, Conversation]] = {}
        """The clients that are connected."""
        self._numbers = itertools.count(1)

    def push(self, message: Json) -> None:
        for stream, _ in self.streams.values():
            stream.put(message)

    def end_streams(self) -> None:
        for stream, _ in self.streams.values():
            stream.finish()

    async def answer(self, ask: Ask) -> web.StreamResponse:
        for what in (ask.rpc, ask.method, "*"):
            if what in self.on and (response := await self.on[what](ask)) is not None:
                return response
        if ask.method == "GET" and ask.http.path == self.path:
            return await self._show(ask)
        if ask.method == "POST" and ask.http.path != self.path:
            return self._take(ask)
        return web.Response(status=405 if ask.http.path == self.path else 404)

    async def _show(self, ask: Ask) -> web.StreamResponse:
        sid = f"s{next(self._numbers)}"
        stream = Stream(sid)
        conversation = Conversation(self.in_memory, stream.put)
        self.streams[sid] = (stream, conversation)
        if self.close_every is not None:
            asyncio.get_running_loop().call_later(self.close_every, stream.finish)
        try:
            return await _Introduced(stream, self._introduction(sid)).show(ask, {})
        finally:
            del self.streams[sid]
            await conversation.close()

    def _introduction(self, sid: str) -> bytes:
        if self.endpoint is None:
            return b": nothing to say\n\n"
        return f"event: endpoint\ndata: {self.endpoint.format(sid=sid)}\n\n".encode()

    def _take(self, ask: Ask) -> web.StreamResponse:
        known = self.streams.get(ask.http.query.get("sid", ""))
        if known is None:
            return web.Response(status=404, text="Could not find session")
        if not isinstance(ask.message, dict):
            return web.Response(status=400, text="Could not parse message")
        known[1].say(ask.message)
        return web.Response(status=202, text="Accepted")


class _Introduced(Viewing):
    """A stream that opens with words of its own."""

    def __init__(self, stream: Stream, introduction: bytes) -> None:
        super().__init__(stream, Manner())
        self._introduction = introduction

    def _opening(self) -> bytes:
        return self._introduction


http_sse = HttpSse
"""`async with http_sse(…) as server`."""

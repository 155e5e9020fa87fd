"""Event streams that can be interrupted and resumed.

A `Stream` holds the messages in order, until it is done; a `Viewing` is one response that sends it. A stream
stays after its connections end, which resuming with `Last-Event-ID` needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from tests.servers.web.site import Ask

Json = dict[str, Any]


class Stream:
    def __init__(self, name: str) -> None:
        self.name = name
        self.messages: list[Json] = []
        self.done = False
        self._news = asyncio.Event()

    def put(self, message: Json) -> None:
        self.messages.append(message)
        self.wake()

    def finish(self) -> None:
        self.done = True
        self.wake()

    def wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def news(self) -> asyncio.Event:
        """Is set at the next change; to be had before looking at what is there."""
        return self._news

    async def finished(self) -> None:
        while not self.done:
            await self.news().wait()


@dataclass(frozen=True)
class Manner:
    """How streams are written."""

    with_ids: bool = False
    """Whether events have ids, and so whether streams can be resumed."""
    priming: bool = False
    """Whether a stream opens with an event that has an id and no data."""
    retry_ms: int | None = None
    end_after: int | None = None
    """The first response of a stream ends, in order, after so many messages (0: after the priming event)."""


class Viewing:
    """One response that shows a stream from some message on."""

    def __init__(self, stream: Stream, manner: Manner, *, start: int = 0) -> None:
        self.stream = stream
        self._manner = manner
        self._next = start
        self._stopped = False

    def stop(self) -> None:
        """Ends the response in order, whatever the stream still has to say."""
        self._stopped = True
        self.stream.wake()

    async def show(self, ask: Ask, headers: Mapping[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **headers}
        )
        await response.prepare(ask.http)
        await response.write(self._opening())
        while True:
            news = self.stream.news()
            await self._catch_up(response)
            if self._is_over():
                break
            await news.wait()
        await response.write_eof()
        return response

    async def _catch_up(self, response: web.StreamResponse) -> None:
        while self._next < len(self.stream.messages) and not self._has_shown_enough():
            message = self.stream.messages[self._next]
            self._next += 1
            await response.write(self._event(msgspec.json.encode(message)))

    def _opening(self) -> bytes:
        retry = b"" if self._manner.retry_ms is None else f"retry: {self._manner.retry_ms}\n".encode()
        if self._manner.priming:
            return f"id: {self.stream.name}.{self._next}\n".encode() + retry + b"data:\n\n"
        return retry + b": open\n\n"

    def _event(self, data: bytes) -> bytes:
        identity = f"id: {self.stream.name}.{self._next}\n".encode() if self._manner.with_ids else b""
        return identity + b"event: message\ndata: " + data + b"\n\n"

    def _has_shown_enough(self) -> bool:
        limit = self._manner.end_after
        return self._stopped or (limit is not None and self._next >= limit)

    def _is_over(self) -> bool:
        shown_all = self._next == len(self.stream.messages)
        return self._has_shown_enough() or (self.stream.done and shown_all)

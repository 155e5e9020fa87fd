"""The sessions of legacy clients over HTTP. Each belongs to the caller that opened it."""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable
from typing import Final

from dragoman.gateway.access import KnownCaller, Refused
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.streams import Outbox
from dragoman.wire.server.connection import ClientConnection

IDLE_SECONDS: Final = 3600.0
"""A session without requests for so long ends."""
SESSION_LIMIT: Final = 1000
"""Sessions of one caller; one more ends the one that was not used for the longest time."""
SENT_LIMIT: Final = 100
"""Messages without a request that wait for a stream; more drop the oldest."""
STREAM_LIMIT: Final = 100
"""Streams of one session that can be continued; more drop the oldest."""


class Session:
    """A client of the legacy era."""

    def __init__(self, caller: KnownCaller, view: str) -> None:
        self.id = secrets.token_urlsafe(24)
        self.owner = (caller, view)
        """With the rights of the token: another token of the same caller may have fewer."""
        self.outbox = Outbox(SENT_LIMIT)
        """What is sent without a request."""
        self.connection: ClientConnection | None = None
        self.stream: asyncio.Task[object] | None = None
        """The request that is given what is sent without a request."""
        self.open_requests = 0
        self.last_used = 0.0
        self.ended = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._streams: dict[str, Outbox] = {}
        self._numbers = itertools.count(1)

    @property
    def is_idle(self) -> bool:
        return not self.open_requests and self.stream is None

    def add_stream(self, outbox: Outbox) -> str:
        """The name by which the stream can be continued."""
        name = f"s{next(self._numbers)}"
        self._streams[name] = outbox
        while len(self._streams) > STREAM_LIMIT:
            del self._streams[next(iter(self._streams))]
        return name

    def find_stream(self, name: str) -> Outbox | None:
        return self._streams.get(name)

    def drop_stream(self, name: str) -> None:
        self._streams.pop(name, None)


class Sessions:
    """The sessions of all callers. Each ends when its client ends it, or when it was not used for long."""

    def __init__(self, gateway: Gateway, monotonic: Callable[[], float]) -> None:
        self._gateway = gateway
        self._monotonic = monotonic
        self._sessions: dict[str, Session] = {}
        """Those that were used last are at the end."""

    def __len__(self) -> int:
        return len(self._sessions)

    async def open(self, caller: KnownCaller, view: str) -> Session:
        own = [each for each in self._sessions.values() if each.owner[0].caller == caller.caller]
        if len(own) >= SESSION_LIMIT:
            idle = next((each for each in own if each.is_idle), None)
            if idle is None:
                raise Refused(503, "too many sessions are in use")
            await self.end(idle)
        session = Session(caller, view)
        self._sessions[session.id] = session
        session.last_used = self._monotonic()
        started = asyncio.Event()
        session.task = asyncio.create_task(self._serve(session, caller, started))
        await started.wait()
        return session

    async def _serve(self, session: Session, caller: KnownCaller, started: asyncio.Event) -> None:
        view = session.owner[1]
        async with self._gateway.client(caller, session.outbox.put, view) as session.connection:
            started.set()
            await session.ended.wait()

    def find(self, session_id: str | None, caller: KnownCaller, view: str) -> Session:
        """The caller's session; `Refused` if there is none. Another caller's or view's is not there, nor
        one that was opened with other rights."""
        if session_id is None:
            raise Refused(400, "the header Mcp-Session-Id is missing")
        session = self._sessions.get(session_id)
        if session is None or session.owner != (caller, view):
            raise Refused(404, "there is no such session; begin with initialize")
        self._sessions[session_id] = self._sessions.pop(session_id)
        session.last_used = self._monotonic()
        return session

    async def end(self, session: Session) -> None:
        self._sessions.pop(session.id, None)
        session.outbox.end()
        session.ended.set()
        if session.task is not None:
            await asyncio.wait([session.task])

    async def end_idle(self) -> None:
        """Ends the sessions that have not been used for long."""
        limit = self._monotonic() - IDLE_SECONDS
        for session in list(self._sessions.values()):
            if session.last_used < limit and session.is_idle:
                await self.end(session)

    def end_streams(self) -> None:
        """Ends the streams of what is sent without a request."""
        for session in self._sessions.values():
            session.outbox.end()

    async def close(self) -> None:
        for session in list(self._sessions.values()):
            await self.end(session)

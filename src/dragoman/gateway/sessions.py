"""The sessions of legacy clients over HTTP. Each belongs to the caller that opened it.

What a session is (its caller, what its client declared, log level, subscriptions) is in the store, from which
any replica can serve it, and the same gateway after a new start. Requests that are being answered, and their
streams, stay at their replica. If two replicas change a session at the same time, the later change is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from dragoman.errors import StoreUnavailable
from dragoman.gateway.access import KnownCaller, RequestRefused
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.outbox import WAITING_BYTES, Outbox
from dragoman.gateway.replicas import SessionChanged, ToSession
from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.service import Client

IDLE_SECONDS: Final = 3600.0
"""The idle time after which a session ends."""
CHECK_SECONDS: Final = 60.0
"""How often a session that is in use is looked up in the store, which keeps it there."""
SESSION_LIMIT: Final = 1000
"""Sessions of one caller at one replica; one more ends the one that was not used for the longest time."""
SENT_LIMIT: Final = 100
"""Messages without a request that wait for a stream; more drop the oldest."""
STREAM_LIMIT: Final = 100
"""Streams of one session that can be continued; more drop the oldest."""


class StoredSession(Struct, frozen=True):
    """The data that a replica needs to serve a session."""

    caller: str
    view: str
    client: Client
    subscribed: tuple[str, ...] = ()


class LegacySession:
    """A client of the legacy era."""

    def __init__(self, session_id: str, caller: KnownCaller, view: str) -> None:
        self.id = session_id
        self.caller = caller
        """The caller with the rights of the token that opened the session: another token of the same caller
        may have fewer."""
        self.owner = (caller.caller, view)
        self.outbox = Outbox(keeps_read=False, oldest_dropped_over=SENT_LIMIT)
        """The messages that belong to no request."""
        self.connection: ClientConnection | None = None
        self.stream: asyncio.Task[object] | None = None
        """The request that is given what is sent without a request."""
        self.open_requests = 0
        self.last_used = 0.0
        self.check_at = 0.0
        """The time at which it is looked up in the store again."""
        self.saved = b""
        """The session as it is in the store."""
        self._encoded_state: tuple[object, ...] = ()
        """What can change of it, as it was when it was encoded last."""
        self._encoded = b""
        self.ended = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._streams: dict[str, Outbox] = {}
        self._numbers = itertools.count(1)

    def stored(self) -> bytes:
        """Empty before `initialize` was answered."""
        connection = self.connection
        if connection is None or connection.session is None:
            return b""
        client = connection.session
        state = (client.log_level, client.is_initialized, connection.subscribed)
        if state != self._encoded_state or not self._encoded:
            stored = StoredSession(self.owner[0].id, self.owner[1], client, connection.subscribed)
            self._encoded_state, self._encoded = state, msgspec.json.encode(stored)
        return self._encoded

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

    def put_into(self, outbox: Outbox) -> Callable[[bytes], None]:
        """Takes messages of a stream. Streams whose connections are lost have one limit together: over it,
        the oldest is dropped, and its call ends."""

        def put(message: bytes) -> None:
            outbox.put(message)
            if not self._streams:
                return
            lost = [name for name, each in self._streams.items() if each.reader is None]
            while sum(self._streams[name].held_bytes for name in lost) > WAITING_BYTES and len(lost) > 1:
                self._streams.pop(lost.pop(0)).overflow()

        return put

    def find_stream(self, name: str) -> Outbox | None:
        return self._streams.get(name)

    def drop_stream(self, name: str) -> None:
        self._streams.pop(name, None)


class Sessions:
    """The sessions of all callers. Each ends when its client ends it, or when it was not used for long."""

    def __init__(self, gateway: Gateway, monotonic: Callable[[], float]) -> None:
        self._gateway = gateway
        self._store = gateway.store
        self._monotonic = monotonic
        self._sessions: dict[str, LegacySession] = {}
        """The sessions that were used at this replica; the one that was used last is at the end."""
        self._lookups: dict[str, asyncio.Task[LegacySession]] = {}
        self._refreshing: set[asyncio.Task[None]] = set()
        if gateway.replicas is not None:
            gateway.replicas.on_session = self._changed_elsewhere
            gateway.replicas.on_message.append(self._take)

    def __len__(self) -> int:
        return len(self._sessions)

    async def open(self, caller: KnownCaller, view: str) -> LegacySession:
        own = [each for each in self._sessions.values() if each.owner[0] == caller.caller]
        if len(own) >= SESSION_LIMIT:
            idle = next((each for each in own if each.is_idle), None)
            if idle is None:
                raise RequestRefused(503, "too many sessions are in use")
            await self.end(idle)
        return await self._started(LegacySession(secrets.token_urlsafe(24), caller, view), caller, None)

    async def _started(
        self, session: LegacySession, caller: KnownCaller, client: Client | None
    ) -> LegacySession:
        self._sessions[session.id] = session
        session.last_used = self._monotonic()
        session.check_at = session.last_used + CHECK_SECONDS
        started = asyncio.Event()
        session.task = asyncio.create_task(self._serve(session, caller, client, started))
        await started.wait()
        return session

    async def _serve(
        self, session: LegacySession, caller: KnownCaller, client: Client | None, started: asyncio.Event
    ) -> None:
        view = session.owner[1]
        async with self._gateway.client(caller, session.outbox.put, view, client) as session.connection:
            started.set()
            await session.ended.wait()

    async def find(self, session_id: str | None, caller: KnownCaller, view: str) -> LegacySession:
        """The caller's session in this view. Raises `RequestRefused` if there is none, also for a session of
        another caller or view, and for one that was opened with other rights."""
        if session_id is None:
            raise RequestRefused(400, "the header Mcp-Session-Id is missing")
        session = self._sessions.get(session_id)
        if session is not None and (session.caller, session.owner[1]) != (caller, view):
            raise no_session()
        now = self._monotonic()
        if session is None or session.check_at <= now:
            session = await self._look_up_once(session_id, caller, view)
            if session.caller != caller:  # the lookup was that of a token with other rights
                raise no_session()
        if session_id in self._sessions:
            self._sessions[session_id] = self._sessions.pop(session_id)
        session.last_used = now
        return session

    # The store.

    async def _look_up_once(self, session_id: str, caller: KnownCaller, view: str) -> LegacySession:
        """Requests that come at the same time share one lookup."""
        key = f"{caller.caller.id} {view} {session_id}"
        task = self._lookups.get(key)
        if task is None:
            task = self._lookups[key] = asyncio.create_task(self._look_up(session_id, caller, view))
            task.add_done_callback(partial(self._looked_up, key))
        return await asyncio.shield(task)

    def _looked_up(self, key: str, task: asyncio.Task[LegacySession]) -> None:
        self._lookups.pop(key, None)
        if not task.cancelled():
            task.exception()  # the client may be gone; asyncio would log it otherwise

    async def _look_up(self, session_id: str, caller: KnownCaller, view: str) -> LegacySession:
        """Looks a session up. While the store does not answer, a session that is known here is served with
        its known state."""
        session = self._sessions.get(session_id)
        try:
            found = await self._store.get(_key(session_id), IDLE_SECONDS)
        except StoreUnavailable as error:
            if session is None:
                raise RequestRefused(
                    503, f"sessions cannot be looked up: {error}", {"Retry-After": "1"}
                ) from None
            return session
        if found is None:
            return await self._kept(session)
        stored = _decoded(found)
        if stored is None or (stored.caller, stored.view) != (caller.caller.id, view):
            raise no_session()
        if session is None:
            session = await self._started(LegacySession(session_id, caller, view), caller, stored.client)
        self._adopt(session, stored, found)
        return session

    async def _kept(self, session: LegacySession | None) -> LegacySession:
        """The session that the store does not have. Without replicas nothing but the store has lost it, with
        its file; where another replica may have ended it, it ends here too."""
        if session is None or session.id not in self._sessions:
            raise no_session()
        if self._gateway.replicas is not None:
            await self._forget(session)
            raise no_session()
        session.check_at = self._monotonic() + CHECK_SECONDS
        session.saved = b""
        with contextlib.suppress(StoreUnavailable):
            await self.save(session)
        return session

    def _adopt(self, session: LegacySession, stored: StoredSession, found: bytes) -> None:
        """Takes over what another replica, or the gateway before a new start, knew of the session."""
        session.check_at = self._monotonic() + CHECK_SECONDS
        connection = session.connection
        assert connection is not None
        if connection.session is not None:
            connection.session.log_level = stored.client.log_level
            connection.session.is_initialized |= stored.client.is_initialized
        if found != session.saved:
            session.saved = found
            connection.set_subscribed(stored.subscribed)

    async def save(self, session: LegacySession) -> None:
        """Stores the session if it has another state than the store has. Raises `StoreUnavailable`."""
        stored = session.stored()
        if stored and stored != session.saved and session.id in self._sessions:
            is_new, session.saved = not session.saved, stored
            try:
                await self._store.put(_key(session.id), stored, IDLE_SECONDS)
                if not is_new and self._gateway.replicas is not None:
                    await self._gateway.replicas.send(SessionChanged(session.id))
            except StoreUnavailable:
                session.saved = b""
                raise

    async def pass_on(self, session: LegacySession, message: bytes) -> None:
        """Gives a message of the client to the other replicas: one of them may be waiting for it."""
        if self._gateway.replicas is not None:
            await self._gateway.replicas.send(ToSession(session.id, session.caller.key, message))

    def _changed_elsewhere(self, session_id: str | None) -> None:
        for session in list(self._sessions.values()):
            if session_id in (None, session.id):
                session.check_at = 0.0
                if session.stream is not None:  # no request may come here that would have it looked up
                    self._refresh(session)

    def _refresh(self, session: LegacySession) -> None:
        task = asyncio.create_task(self._refreshed(session))
        self._refreshing.add(task)
        task.add_done_callback(self._refreshing.discard)

    async def _refreshed(self, session: LegacySession) -> None:
        with contextlib.suppress(RequestRefused):
            await self._look_up_once(session.id, session.caller, session.owner[1])

    def _take(self, passed: ToSession) -> None:
        session = self._sessions.get(passed.session)
        if session is not None and session.connection is not None and session.caller.key == passed.caller:
            session.connection.receive(passed.message)

    # The end.

    async def end(self, session: LegacySession) -> None:
        """Ends the session everywhere. If the store does not answer, the session expires there."""
        await self._forget(session)
        with contextlib.suppress(StoreUnavailable):
            await self._store.delete(_key(session.id))
            if self._gateway.replicas is not None and session.saved:
                await self._gateway.replicas.send(SessionChanged(session.id))

    async def _forget(self, session: LegacySession) -> None:
        """Ends the session here."""
        self._sessions.pop(session.id, None)
        session.outbox.end()
        session.ended.set()
        if session.task is not None:
            await asyncio.wait([session.task])

    async def end_idle(self) -> None:
        """Ends idle sessions at this replica; in the store they expire."""
        limit = self._monotonic() - IDLE_SECONDS
        for session in list(self._sessions.values()):
            if session.last_used < limit and session.is_idle:
                await self._forget(session)

    def end_streams(self) -> None:
        """Ends the streams of what is sent without a request."""
        for session in self._sessions.values():
            session.outbox.end()

    async def close(self) -> None:
        """Ends all sessions here; the store keeps them."""
        for session in list(self._sessions.values()):
            await self._forget(session)


def _key(session_id: str) -> str:
    return "session " + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def _decoded(found: bytes) -> StoredSession | None:
    try:
        return msgspec.json.decode(found, type=StoredSession)
    except msgspec.MsgspecError:  # of another version
        return None


def no_session() -> RequestRefused:
    return RequestRefused(404, "there is no such session; begin with initialize")

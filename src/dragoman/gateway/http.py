"""The streamable HTTP transport, from the server's side: `/mcp`.

In the modern era each POST is by itself. In the legacy era `initialize` opens a session, which belongs to the
caller that opened it; a GET carries what is sent without a request. A reply is sent as JSON, or as an event
stream if something precedes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Final

from aiohttp import web
from msgspec import UNSET, Struct

from dragoman.gateway import headers as header_rules
from dragoman.gateway.access import Refused
from dragoman.gateway.gateway import Gateway
from dragoman.interaction import Caller
from dragoman.protocol import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    LEGACY_REVISIONS,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from dragoman.wire.codec import Unreadable, batch_members, decode_as, decode_envelope, encode_error
from dragoman.wire.messages import Envelope
from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.service import RequestError

IDLE_SECONDS: Final = 3600.0
"""A session without requests for so long ends."""
SESSION_LIMIT: Final = 1000
"""Sessions of one caller; one more ends the one that was not used for the longest time."""
QUEUE_LIMIT: Final = 1000
"""Messages that wait for a client to open a stream for them; more drop the oldest."""
KEEP_ALIVE_SECONDS: Final = 15.0

_EVENT_STREAM: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


class Outbox:
    """Messages for a client, until they are written."""

    def __init__(self, limit: int = 0) -> None:
        """`limit`: more messages than these drop the oldest; 0: there is none."""
        self._messages: deque[bytes] = deque(maxlen=limit or None)
        self._wake = asyncio.Event()
        self.is_done = False

    def put(self, message: bytes) -> None:
        self._messages.append(message)
        self._wake.set()

    def end(self) -> None:
        """Nothing more will be put."""
        self.is_done = True
        self._wake.set()

    async def get(self) -> bytes | None:
        """The next message; None at the end."""
        while not self._messages:
            if self.is_done:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._messages.popleft()


class Session:
    """A client of the legacy era over HTTP."""

    def __init__(self, caller: Caller) -> None:
        self.id = secrets.token_urlsafe(24)
        self.caller = caller
        self.outbox = Outbox(QUEUE_LIMIT)
        self.connection: ClientConnection | None = None
        self.has_stream = False
        self.last_used = 0.0
        self.open_requests = 0
        self.ended = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Sessions:
    """The sessions of all callers. Each ends when its client ends it, or when it was not used for long."""

    def __init__(self, gateway: Gateway, monotonic: Callable[[], float]) -> None:
        self._gateway = gateway
        self._monotonic = monotonic
        self._sessions: dict[str, Session] = {}
        """Those that were used last are at the end."""

    def __len__(self) -> int:
        return len(self._sessions)

    async def open(self, caller: Caller) -> Session:
        own = [session for session in self._sessions.values() if session.caller == caller]
        if len(own) >= SESSION_LIMIT:
            idle = next((each for each in own if not each.open_requests), None)
            if idle is None:
                raise Refused(503, "too many sessions are in use")
            await self.end(idle)
        session = Session(caller)
        self._sessions[session.id] = session
        session.last_used = self._monotonic()
        started = asyncio.Event()
        session.task = asyncio.create_task(self._serve(session, started))
        await started.wait()
        return session

    async def _serve(self, session: Session, started: asyncio.Event) -> None:
        async with self._gateway.client(session.caller, session.outbox.put) as session.connection:
            started.set()
            await session.ended.wait()

    def find(self, session_id: str | None, caller: Caller) -> Session:
        """The caller's session; `Refused` if there is none. Another caller's is not there."""
        if session_id is None:
            raise Refused(400, "the header Mcp-Session-Id is missing")
        session = self._sessions.get(session_id)
        if session is None or session.caller != caller:
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
            if session.last_used < limit and not session.open_requests and not session.has_stream:
                await self.end(session)

    async def close(self) -> None:
        for session in list(self._sessions.values()):
            await self.end(session)


class StreamableHttp:
    """Handles `/mcp`. The caller of each request is known by then."""

    def __init__(self, gateway: Gateway, sessions: Sessions) -> None:
        self._gateway = gateway
        self._sessions = sessions

    async def post(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        check_content(request)
        message = await request.read()
        try:
            envelope = _first(message)
        except Unreadable as problem:
            return _error(400, INVALID_REQUEST if problem.is_json else PARSE_ERROR, problem.detail)
        headers = header_rules.Headers(
            *(
                header_rules.values(request.headers, name)
                for name in (header_rules.VERSION, header_rules.METHOD, header_rules.NAME)
            )
        )
        session_id = request.headers.get(header_rules.SESSION)
        is_request = envelope.method is not UNSET and envelope.id is not UNSET
        if is_request and header_rules.is_modern(headers, envelope.params):
            return await self._modern(request, caller, message, envelope, headers)
        _check_version(headers)
        if envelope.method == "initialize" and session_id is None:
            return await self._initialize(request, caller, message)
        session = self._sessions.find(session_id, caller)
        assert session.connection is not None
        session.open_requests += 1
        try:
            return await _answered(request, session.connection, message)
        finally:
            session.open_requests -= 1

    async def _modern(
        self,
        request: web.Request,
        caller: Caller,
        message: bytes,
        envelope: Envelope,
        headers: header_rules.Headers,
    ) -> web.StreamResponse:
        try:
            header_rules.check(headers, str(envelope.method), envelope.params)
        except RequestError as error:
            return _error(400, error.code_in("modern"), error.message, envelope.id)
        async with self._gateway.client(caller, _nowhere) as connection:
            return await _answered(request, connection, message, has_status=True)

    async def _initialize(self, request: web.Request, caller: Caller, message: bytes) -> web.StreamResponse:
        session = await self._sessions.open(caller)
        assert session.connection is not None
        try:
            response = await _answered(
                request, session.connection, message, headers={header_rules.SESSION: session.id}
            )
        finally:
            if session.connection.session is None:  # it was refused
                await self._sessions.end(session)
        return response

    async def get(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        if "text/event-stream" not in request.headers.get("Accept", "*/*").replace(
            "*/*", "text/event-stream"
        ):
            raise Refused(406, "a GET is answered with an event stream")
        session_id = request.headers.get(header_rules.SESSION)
        if session_id is None:
            raise Refused(405, "without a session there is no stream", {"Allow": "POST"})
        session = self._sessions.find(session_id, caller)
        if session.has_stream:
            raise Refused(409, "the session has a stream already")
        session.has_stream = True
        try:
            async with event_stream(request) as write:
                while (message := await session.outbox.get()) is not None:
                    await write(message)
            return write.response
        finally:
            session.has_stream = False

    async def delete(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        await self._sessions.end(self._sessions.find(request.headers.get(header_rules.SESSION), caller))
        return web.Response(status=204)


class _Writer:
    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response

    async def __call__(self, message: bytes) -> None:
        await self.response.write(b"event: message\ndata: " + message + b"\n\n")


@contextlib.asynccontextmanager
async def event_stream(
    request: web.Request, headers: dict[str, str] | None = None
) -> AsyncGenerator[_Writer]:
    """A response that is an event stream; lines that mean nothing keep proxies from closing it."""
    response = web.StreamResponse(headers={**_EVENT_STREAM, **(headers or {})})
    await response.prepare(request)

    async def keep_alive() -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_SECONDS)
            await response.write(b": \n\n")

    task = asyncio.create_task(keep_alive())
    try:
        yield _Writer(response)
    finally:
        task.cancel()
    await response.write_eof()


async def _answered(
    request: web.Request,
    connection: ClientConnection,
    message: bytes,
    *,
    headers: dict[str, str] | None = None,
    has_status: bool = False,
) -> web.StreamResponse:
    """The response to one message. `has_status`: errors have the status that the modern era wants."""
    outbox = Outbox()
    connection.receive(message, outbox.put, outbox.end)
    first = await outbox.get()
    if first is None:
        return web.Response(status=202, headers=headers)
    if _is_reply(first):
        status = _status_of(first) if has_status else 200
        return web.Response(body=first, content_type="application/json", headers=headers, status=status)
    async with event_stream(request, headers) as write:
        await write(first)
        while (following := await outbox.get()) is not None:
            await write(following)
    return write.response


def check_content(request: web.Request) -> None:
    if request.content_type != "application/json":
        raise Refused(415, "the body must be application/json")
    accepts = request.headers.get("Accept", "*/*")
    if not any(kind in accepts for kind in ("application/json", "text/event-stream", "*/*", "application/*")):
        raise Refused(406, "replies are application/json or text/event-stream")


def _first(message: bytes) -> Envelope:
    """The message, or the first one of a batch."""
    members = batch_members(message)
    return decode_envelope(members[0] if members else message)


def _check_version(headers: header_rules.Headers) -> None:
    if any(version not in LEGACY_REVISIONS for version in headers.version):
        raise Refused(400, "the header MCP-Protocol-Version names an unknown revision")


def _is_reply(message: bytes) -> bool:
    return message.startswith(b"[") or decode_envelope(message).method is UNSET


_STATUSES: Final = {
    METHOD_NOT_FOUND: 404,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    HEADER_MISMATCH: 400,
    INVALID_REQUEST: 400,
}


class _Error(Struct):
    code: int = 0


class _Reply(Struct):
    error: _Error | None = None


def _status_of(reply: bytes) -> int:
    error = decode_as(_Reply, reply).error
    return 200 if error is None else _STATUSES.get(error.code, 200)


def _error(status: int, code: int, message: str, request_id: object = None) -> web.Response:
    body = encode_error(request_id, code, message)  # type: ignore[arg-type]
    return web.Response(status=status, body=body, content_type="application/json")


def _nowhere(message: bytes) -> None:
    """What belongs to no request has no channel in the modern era."""

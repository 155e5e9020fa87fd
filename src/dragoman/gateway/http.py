"""The streamable HTTP transport, from the server's side: `/mcp`.

In the modern era each POST is independent. In the legacy era `initialize` opens a session; a GET carries
messages that belong to no request, or continues the stream of a lost response. A reply is sent as JSON, or as
an event stream if something precedes it, or if it takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import Final

from aiohttp import web
from msgspec import UNSET, Raw, Struct

from dragoman.deadlines import Deadlines
from dragoman.errors import StoreUnavailable
from dragoman.gateway import headers as header_rules
from dragoman.gateway.access import KnownCaller, RequestRefused
from dragoman.gateway.callers import CallerServers
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.outbox import Outbox
from dragoman.gateway.questions import replica_in
from dragoman.gateway.sessions import LegacySession, Sessions, no_session
from dragoman.gateway.streams import LISTENS, PIECE_BYTES, event_stream, json_response, position_in
from dragoman.protocol import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    LEGACY_REVISIONS,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from dragoman.surrogates import replace_lone_surrogates
from dragoman.wire.codec import (
    Unreadable,
    batch_members,
    decode_as,
    decode_envelope,
    encode_error,
    is_reply,
)
from dragoman.wire.messages import Envelope, MessageId
from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.service import RequestError

JSON: Final = "application/json"
BODY_LIMIT_BYTES: Final = 16 * 1024 * 1024
STREAM_AFTER_SECONDS: Final = 2.0
"""A reply that takes longer is sent as a stream, which proxies do not close."""
BODY_SECONDS: Final = 30.0
"""How long a client may take to send a message."""
RESUMABLE_SINCE: Final = "2025-11-25"
"""The first revision whose clients expect events without data."""
_STATUSES: Final = {
    METHOD_NOT_FOUND: 404,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    HEADER_MISMATCH: 400,
    INVALID_REQUEST: 400,
}
"""The HTTP status for each error code, in the modern era."""


class Posted(Struct, frozen=True):
    """The body of a POST."""

    message: bytes
    envelope: Envelope
    """The envelope of the message, or of the first message of a batch."""
    is_batch: bool

    @classmethod
    def of(cls, message: bytes) -> Posted:
        """Decodes a body, without lone surrogates; raises `Unreadable` if it is not a message."""
        members = batch_members(message)
        try:
            return cls(message, decode_envelope(members[0] if members else message), bool(members))
        except Unreadable:
            repaired = replace_lone_surrogates(message)
            if repaired is None:
                raise
            return cls.of(repaired)

    @property
    def single(self) -> Envelope | None:
        return None if self.is_batch else self.envelope

    @property
    def id(self) -> MessageId:
        return None if self.envelope.id is UNSET else self.envelope.id


class StreamableHttp:
    """Handles `/mcp`, or `/mcp/VIEW`. The caller of each request is known by then."""

    def __init__(self, gateway: Gateway, sessions: Sessions, view: str = "") -> None:
        """`view`: the name of the view that is served; empty: everything."""
        self._gateway = gateway
        self._sessions = sessions
        self._view = view
        self._waiting = Deadlines[Outbox](asyncio.get_running_loop(), Outbox.set_late)
        """The time until which a response is not started."""

    async def post(self, request: web.BaseRequest, caller: KnownCaller) -> web.StreamResponse:
        check_content(request)
        try:
            posted = Posted.of(await read_message(request))
        except Unreadable as problem:
            return _error(400, INVALID_REQUEST if problem.is_json else PARSE_ERROR, problem.detail)
        headers, envelope = header_rules.Headers.of(request.headers), posted.envelope
        is_request = envelope.method is not UNSET and envelope.id is not UNSET
        if is_request and header_rules.is_modern(headers, envelope.params):
            return await self._modern(request, caller, posted, headers)
        try:
            if not headers.repeat_nothing:
                await check_given(self._gateway, self._view, caller, headers, posted.single)
        except RequestError as error:
            return _error(400, error.code_in("legacy"), error.message)
        if any(version not in LEGACY_REVISIONS for version in headers.version):
            raise RequestRefused(400, "the header MCP-Protocol-Version names an unknown revision")
        session_id = request.headers.get(header_rules.SESSION)
        if envelope.method == "initialize" and session_id is None:
            return await self._initialize(request, caller, posted)
        session = await self._sessions.find(session_id, caller, self._view)
        session.open_requests += 1
        try:
            if not is_request:
                await self._pass_on(session, posted)
            response = await self._answered_in(session, request, posted)
            if session.stored() != session.saved:
                with contextlib.suppress(StoreUnavailable):  # it is stored with the next change
                    await self._sessions.save(session)
            return response
        finally:
            session.open_requests -= 1

    async def _pass_on(self, session: LegacySession, posted: Posted) -> None:
        """Passes a client's answer or cancellation to the replica where the call is, if it is not here."""
        is_reply, connection = posted.envelope.method is UNSET, session.connection
        if is_reply and connection is not None and connection.is_waiting_for(posted.id):
            return
        if is_reply or posted.envelope.method == "notifications/cancelled":
            try:
                await self._sessions.pass_on(session, posted.message)
            except StoreUnavailable as error:
                if is_reply:
                    raise RequestRefused(503, str(error), {"Retry-After": "1"}) from None

    async def _modern(
        self,
        request: web.BaseRequest,
        caller: KnownCaller,
        posted: Posted,
        headers: header_rules.Headers,
    ) -> web.StreamResponse:
        envelope = posted.envelope
        request[LISTENS] = envelope.method == "subscriptions/listen"
        try:
            header_rules.check(headers, str(envelope.method), envelope.params)
            if envelope.method == "tools/call":
                await _check_arguments(self._gateway, self._view, caller, headers, envelope.params)
        except RequestError as error:
            return _error(400, error.code_in("modern"), error.message, posted.id, error.data)
        holder = self._holder(posted.message)
        if holder:
            return await self._forwarded(request, caller, posted, holder)
        async with self._gateway.client(caller, _nowhere, self._view) as connection:
            outbox = Outbox()
            connection.receive(posted.message, outbox.put, outbox.end, posted.single)
            return await self._answered(request, outbox, has_status=True)

    def _holder(self, message: bytes) -> str:
        """The other replica that holds the call of a continued request; empty if there is none."""
        if self._gateway.replicas is None or b'"requestState"' not in message:
            return ""
        try:
            holder = replica_in(decode_as(_Continued, message).params.request_state)
        except Unreadable:
            return ""
        return "" if holder == self._gateway.replicas.name else holder

    async def _forwarded(
        self, request: web.BaseRequest, caller: KnownCaller, posted: Posted, holder: str
    ) -> web.StreamResponse:
        replicas = self._gateway.replicas
        assert replicas is not None
        try:
            outbox = await replicas.forward(holder, caller, self._view, posted.message, posted.id)
        except StoreUnavailable as error:
            raise RequestRefused(503, str(error), {"Retry-After": "1"}) from None
        try:
            return await self._answered(request, outbox, has_status=True)
        finally:
            await replicas.forget(holder, outbox)

    async def _initialize(
        self, request: web.BaseRequest, caller: KnownCaller, posted: Posted
    ) -> web.StreamResponse:
        session = await self._sessions.open(caller, self._view)
        try:
            headers = {header_rules.SESSION: session.id}
            response = await self._answered_in(session, request, posted, headers)
            await self._sessions.save(session)
            return response
        except StoreUnavailable as error:
            await self._sessions.end(session)
            raise RequestRefused(503, f"no session can be opened: {error}", {"Retry-After": "1"}) from None
        finally:
            if session.connection is None or session.connection.session is None:  # it was refused
                await self._sessions.end(session)

    async def get(self, request: web.BaseRequest, caller: KnownCaller) -> web.StreamResponse:
        accepts = request.headers.get("Accept", "*/*")
        if "text/event-stream" not in accepts and "*/*" not in accepts:
            raise RequestRefused(406, "a GET is answered with an event stream")
        session_id = request.headers.get(header_rules.SESSION)
        if session_id is None:
            raise RequestRefused(405, "without a session there is no stream", {"Allow": "POST"})
        session = await self._sessions.find(session_id, caller, self._view)
        lost = position_in(request.headers.get("Last-Event-ID", ""))
        if lost is not None:
            return await self._continued(request, session, *lost)
        own = session.stream = asyncio.current_task()
        try:
            async with event_stream(request) as writer:
                await writer.write_all(session.outbox)
            return writer.response
        finally:
            if session.stream is own:
                session.stream = None

    async def _continued(
        self, request: web.BaseRequest, session: LegacySession, stream: str, number: int
    ) -> web.StreamResponse:
        """The rest of a stream whose connection was lost."""
        outbox = session.find_stream(stream)
        if outbox is None:
            raise RequestRefused(404, "there is no such stream any more")
        if not outbox.rewind(number):
            raise RequestRefused(404, "what follows this event is not kept any more")
        async with event_stream(request, stream) as writer:
            outbox.rewind(number)
            await writer.write_all(outbox)
        session.drop_stream(stream)
        return writer.response

    async def delete(self, request: web.BaseRequest, caller: KnownCaller) -> web.StreamResponse:
        session_id = request.headers.get(header_rules.SESSION)
        await self._sessions.end(await self._sessions.find(session_id, caller, self._view))
        return web.Response(status=204)

    async def _answered_in(
        self,
        session: LegacySession,
        request: web.BaseRequest,
        posted: Posted,
        headers: dict[str, str] | None = None,
    ) -> web.StreamResponse:
        """The response to a message in a session. The request continues if the connection is lost, unless its
        messages are lost, too."""
        connection = session.connection
        assert connection is not None
        outbox = Outbox()
        if isinstance(posted.id, str | int):
            outbox.on_overflow = partial(connection.cancel, posted.id)
        connection.receive(posted.message, session.put_into(outbox), outbox.end, posted.single)
        stream = session.add_stream(outbox) if _is_resumable(connection) else ""
        response = await self._answered(request, outbox, headers=headers, stream=stream)
        session.drop_stream(stream)
        if session.ended.is_set() and not response.prepared and response.status == 202:
            raise no_session()
        return response

    async def _answered(
        self,
        request: web.BaseRequest,
        outbox: Outbox,
        *,
        headers: dict[str, str] | None = None,
        has_status: bool = False,
        stream: str = "",
    ) -> web.StreamResponse:
        """The response. `has_status`: errors have the HTTP status that the modern era requires. `stream`: its
        name, if it can be continued."""
        self._waiting.set(outbox, STREAM_AFTER_SECONDS)
        try:
            first = await outbox.get()
        finally:
            self._waiting.clear(outbox)
        if first is None:
            return web.Response(status=202, headers=headers)
        if first and is_reply(first):
            status = _status_of(first) if has_status else 200
            if len(first) <= PIECE_BYTES:
                return web.Response(body=first, content_type=JSON, headers=headers, status=status)
            return await json_response(request, first, headers, status)
        if first:
            outbox.rewind(outbox.read_count - 1)
        async with event_stream(request, stream, headers) as writer:
            await writer.write_all(outbox)
        return writer.response


def _is_resumable(connection: ClientConnection) -> bool:
    return connection.session is not None and connection.session.revision >= RESUMABLE_SINCE


async def read_message(request: web.BaseRequest) -> bytes:
    """The body; `RequestRefused` if it is too large, takes too long, or cannot be decoded."""
    try:
        if request.content.is_eof():  # already received, as most bodies are
            body = request.content.read_nowait()
            if len(body) >= BODY_LIMIT_BYTES:
                raise web.HTTPRequestEntityTooLarge(max_size=BODY_LIMIT_BYTES, actual_size=len(body))
            return body
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise RequestRefused(408, "the body took too long") from None
    except web.HTTPRequestEntityTooLarge:
        raise RequestRefused(413, "the body is too large") from None
    except web.RequestPayloadError:
        raise RequestRefused(400, "the body does not have the encoding that its headers state") from None


def check_content(request: web.BaseRequest) -> None:
    headers = request.headers
    if headers.get("Content-Type") != JSON and request.content_type != JSON:
        raise RequestRefused(415, "the body must be application/json")
    accepts = headers.get("Accept", "*/*")
    if JSON not in accepts and not any(
        kind in accepts for kind in ("text/event-stream", "*/*", "application/*")
    ):
        raise RequestRefused(406, "replies are application/json or text/event-stream")


async def check_given(
    gateway: Gateway,
    view: str,
    caller: KnownCaller,
    headers: header_rules.Headers,
    envelope: Envelope | None,
) -> None:
    """`RequestError` unless the headers are right of a message of the legacy era. None: it is a batch."""
    if envelope is None:
        header_rules.check_batch(headers)
    elif envelope.method is not UNSET:
        header_rules.check_given(headers, envelope.method, envelope.params)
        if envelope.method == "tools/call" and headers.arguments:
            await _check_arguments(gateway, view, caller, headers, envelope.params)


async def _check_arguments(
    gateway: Gateway, view: str, caller: KnownCaller, headers: header_rules.Headers, params: Raw
) -> None:
    """`RequestError` as of `check_arguments`, also for a tool of the caller's own servers."""
    own: CallerServers | None = None
    async with contextlib.AsyncExitStack() as stack:
        if gateway.callers is not None:
            own = await stack.enter_async_context(gateway.callers.serving(caller))
        tool = await gateway.find_tool(header_rules.name_in(params), view, own)
    header_rules.check_arguments(headers, params, tool)


class _State(Struct, rename="camel"):
    request_state: str = ""


class _Continued(Struct):
    params: _State


class _Error(Struct):
    code: int = 0


class _Reply(Struct):
    error: _Error | None = None


def _status_of(reply: bytes) -> int:
    error = decode_as(_Reply, reply).error
    return 200 if error is None else _STATUSES.get(error.code, 200)


def _error(
    status: int, code: int, message: str, request_id: MessageId = None, data: object = None
) -> web.Response:
    body = encode_error(request_id, code, message, data)
    return web.Response(status=status, body=body, content_type=JSON)


def _nowhere(message: bytes) -> None:
    """Drops a message that belongs to no request: there is no channel for it in the modern era."""

"""One client's connection: takes its messages, calls the handlers, and sends replies and notifications.

Each request gets one reply, except a cancelled one, which gets none. No bytes raise. Reading and writing is
left to the caller; `serve` connects both to a stream of messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

from msgspec import UNSET, Raw, Struct

from dragoman.protocol import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, LOG_LEVELS
from dragoman.wire.attribution import answered_ids
from dragoman.wire.codec import (
    Unreadable,
    batch_members,
    decode_as,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)
from dragoman.wire.messages import ABSENT, Envelope, MessageId
from dragoman.wire.peer import Peer
from dragoman.wire.server import incoming, legacy, modern
from dragoman.wire.server.request import ClientRequest, Send
from dragoman.wire.server.service import (
    Client,
    Handler,
    InputRequired,
    Json,
    ListKind,
    RequestError,
    RequestId,
    Result,
    Service,
)
from dragoman.wire.server.subscriptions import SUBSCRIBE, UNSUBSCRIBE, Subscriptions

NOTIFICATIONS: Final = "notifications/"
RUNNING_LIMIT: Final = 1000
"""Requests of one client that are handled at the same time."""


class MessageStream(Protocol):
    async def receive(self) -> bytes | None:
        """The next message of the client; None after it has disconnected."""
        ...

    def send(self, message: bytes) -> None: ...


async def serve(service: Service, stream: MessageStream) -> None:
    """Serves one client until its stream ends; requests that are still running then are cancelled."""
    connection = ClientConnection(service, stream.send)
    try:
        while (message := await stream.receive()) is not None:
            connection.receive(message)
    finally:
        await connection.close()


class ClientConnection:
    def __init__(
        self, service: Service, send: Send, session: Client | None = None, first_id: int = 1
    ) -> None:
        """`send`: takes messages that belong to no request. `session`: a legacy client whose
        `initialize` was answered on another connection. `first_id`: of the requests to the client."""
        self.session = session
        """The legacy client; None until `initialize`, and for one that only speaks the modern era."""
        self._service = service
        self._send = send
        self._peer = Peer("the client", _IgnoringListener(), limit_bytes=0, first_id=first_id)
        """Requests to the client, and their replies."""
        self._running: dict[RequestId, _Running] = {}
        """The requests that will be answered."""
        self._others: set[asyncio.Task[None]] = set()
        """Notifications, and cancelled requests that have not ended yet."""
        self._subscriptions = Subscriptions(service, self.notify)
        self._own: dict[str, Handler] = {
            "ping": self._ping,
            "server/discover": self._discover,
            "subscriptions/listen": self._subscriptions.listen,
        }
        if "logging/setLevel" in service.handlers:
            self._own["logging/setLevel"] = self._set_level
        if SUBSCRIBE in service.handlers:
            self._own[SUBSCRIBE] = self._subscriptions.subscribe
            self._own[UNSUBSCRIBE] = self._subscriptions.unsubscribe

    # What the client sends.

    def receive(
        self,
        message: bytes,
        send: Send | None = None,
        done: Callable[[], None] | None = None,
        envelope: Envelope | None = None,
    ) -> None:
        """Takes one message. `send`: takes everything that concerns this message, if it has its own channel.
        `done` is called when nothing more will be sent there. `envelope`: of the message, if it is decoded
        already and no batch."""
        send = send or self._send
        can_be_batch = envelope is None and legacy.accepts_batches(self.session)
        members = batch_members(message) if can_be_batch else []
        if members:
            replies = _Replies(send, done, len(members))
            for member in members:
                self._take(incoming.read(member), member, send, replies)
        else:
            found = incoming.read(message) if envelope is None else incoming.checked(envelope, message)
            self._take(found, message, send, _Replies(send, done))

    def _take(self, found: Envelope | bytes, message: bytes, send: Send, replies: _Replies) -> None:
        if isinstance(found, bytes) and answered_ids(message):
            self._peer.receive(message)  # a reply that cannot be read: its waiter fails
            replies.put(None)
        elif isinstance(found, bytes):
            replies.put(found)
        elif found.method is UNSET:
            self._peer.receive_reply(found, message)
            replies.put(None)
        elif found.id is UNSET:
            self._notified(found.method, found.params, send)
            replies.put(None)
        else:
            self._asked(found.id, found.method, found.params, send, replies)  # type: ignore[arg-type]

    def _asked(self, request_id: RequestId, method: str, params: Raw, send: Send, replies: _Replies) -> None:
        if request_id in self._running:
            # Without the id: the client would treat it as the reply to the first request.
            replies.put(encode_error(None, INVALID_REQUEST, f"the request id {request_id!r} is in use"))
            return
        if len(self._running) >= RUNNING_LIMIT:
            replies.put(encode_error(request_id, INTERNAL_ERROR, "too many requests at once"))
            return
        try:
            meta = incoming.read_meta(params)
            if method == "initialize" and meta.protocol_version is None:
                replies.put(encode_result(request_id, self._initialize(params)))
                return
            client = incoming.client_of(self._service, self.session, method, meta)
            handler = incoming.handler_of(self._service, client, method, self._own)
        except RequestError as error:
            replies.put(incoming.error_reply(request_id, error))
            return
        channel = (send, self._ask)
        request = ClientRequest(request_id, method, params, client, channel, meta.progress_token)
        running = self._running[request_id] = _Running(request, replies)
        running.task = asyncio.create_task(self._respond(request_id, running, handler))

    def _notified(self, method: str, params: Raw, send: Send) -> None:
        if method == "notifications/cancelled":
            try:
                self.cancel(decode_as(_Cancelled, params).request_id)
            except Unreadable:
                return
        elif self.session is not None:
            if method == "notifications/initialized":
                self.session.is_initialized = True
            handler = self._service.handlers.get(method)
            if handler is not None and method.startswith(NOTIFICATIONS):
                request = ClientRequest(None, method, params, self.session, (send, self._ask))
                self._note(asyncio.create_task(self._service.run(handler, request)))

    def cancel(self, request_id: RequestId) -> None:
        """Cancels a request of the client, which then gets no reply; has no effect if it is not running."""
        running = self._running.pop(request_id, None)
        if running is not None:
            running.end(None)
            if running.task is not None:
                running.task.cancel()
                self._note(running.task)

    # What is sent without a request.

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification to a legacy client; does nothing before it is initialized, and in the modern
        era."""
        if self.session is not None and self.session.is_initialized:
            self._send(encode_notification(method, params))

    @property
    def subscribed(self) -> tuple[str, ...]:
        """The resources that a legacy client has subscribed to."""
        return self._subscriptions.subscribed

    def set_subscribed(self, uris: Collection[str]) -> None:
        """Subscribes a legacy client to exactly these resources, as it did on another connection. Handlers
        are called in the background: one that does not return delays no request of the client."""
        if self.session is not None:
            request = ClientRequest(None, SUBSCRIBE, ABSENT, self.session, (self._send, self._ask))
            for work in self._subscriptions.set_subscribed(request, uris):
                self._note(asyncio.create_task(work))

    def is_waiting_for(self, request_id: MessageId) -> bool:
        """Whether the client has been sent a request with this id that it has not answered."""
        return self._peer.is_waiting_for(request_id)

    def list_changed(self, kind: ListKind) -> None:
        """Notifies the client of a changed list, if the service declares such notifications and the client
        wants them."""
        self._subscriptions.list_changed(kind)

    def resource_updated(self, uri: str) -> None:
        """Notifies the client of a changed resource, if it has subscribed to it or to what contains it."""
        self._subscriptions.resource_updated(uri)

    def subscription_ended(self, uri: str) -> None:
        """Called when no further changes of a resource are reported that the client has subscribed to."""
        self._subscriptions.ended(uri)

    def end_subscriptions(self) -> None:
        """Ends every `subscriptions/listen` with its result, as before a shutdown."""
        self._subscriptions.end_streams()

    async def finish(self, seconds: float) -> None:
        """Ends every `subscriptions/listen`, and waits until the requests that are running are answered, for
        this time at most."""
        self.end_subscriptions()
        if tasks := [running.task for running in self._running.values() if running.task is not None]:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Called when the client has disconnected: cancels its running requests, and ends its resource
        subscriptions."""
        for request_id in list(self._running):
            self.cancel(request_id)
        for task in self._others:
            task.cancel()
        while self._others:
            await asyncio.wait(self._others)
        await self._subscriptions.close()

    # Handling.

    def _note(self, task: asyncio.Task[None]) -> None:
        """Registers a task, so that `close` waits for it."""
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def _respond(self, request_id: RequestId, running: _Running, handler: Handler) -> None:
        try:
            reply = await self._reply(running.request, handler)
        except asyncio.CancelledError:
            if self._running.get(request_id) is not running:
                raise
            # Not cancelled by the client: something that the handler awaits was cancelled.
            reply = encode_error(request_id, INTERNAL_ERROR, "internal error: cancelled")
        # border: whatever a handler raises fails only its own request
        except (Exception, BaseExceptionGroup) as error:
            self._service.report(running.request.method, error)
            reply = encode_error(request_id, INTERNAL_ERROR, "internal error")
        if self._running.get(request_id) is running:
            del self._running[request_id]
            running.end(reply)

    async def _reply(self, request: ClientRequest, handler: Handler) -> bytes:
        client = request.client
        try:
            try:
                result = await handler(request)
                if client.era == "modern":
                    result = modern.complete(self._service, request.method, result)
            except InputRequired as needed:
                result = modern.input_required(client, request.method, needed)
            return encode_result(request.id, result)
        except RequestError as error:
            return incoming.error_reply(request.id, error, client)

    async def _ask(self, method: str, params: Mapping[str, Any] | None, send: Send) -> Json:
        """Sends a request to the client and waits for the result; cancels the request if this wait is
        cancelled."""
        waiter: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        request_id = self._peer.open_request(waiter)
        send(encode_request(request_id, method, params))
        try:
            return decode_as(dict[str, Any], await waiter)
        finally:
            if self._peer.forget(request_id):
                send(encode_notification("notifications/cancelled", {"requestId": request_id}))

    # Methods that the connection handles itself.

    def _initialize(self, params: Raw) -> Json:
        if self.session is not None:
            raise RequestError(INVALID_REQUEST, "initialize was answered before")
        opening = incoming.decode_params(legacy.InitializeParams, params)
        self.session, result = legacy.initialize(self._service, opening)
        return result

    async def _ping(self, request: ClientRequest) -> Json:
        return {}

    async def _discover(self, request: ClientRequest) -> Json:
        return modern.discover(self._service)

    async def _set_level(self, request: ClientRequest) -> Result:
        level = request.decode(_Level).level
        if level not in LOG_LEVELS:
            raise RequestError(INVALID_PARAMS, f"level is none of {', '.join(LOG_LEVELS)}")
        request.client.log_level = level
        return await self._service.handlers[request.method](request)


class _Replies:
    """Collects the replies to one message: each is sent at once, or those to a batch together when all are
    available."""

    def __init__(self, send: Send, done: Callable[[], None] | None, batch_size: int | None = None) -> None:
        self._send = send
        self._done = done
        self._is_batch = batch_size is not None
        self._gathered: list[bytes] = []
        self._awaited = batch_size or 1

    def put(self, reply: bytes | None) -> None:
        """Called once for each message. None: there is no reply."""
        self._awaited -= 1
        if reply is not None and not self._is_batch:
            self._send(reply)
        elif reply is not None:
            self._gathered.append(reply)
        if self._gathered and not self._awaited:
            self._send(b"[" + b",".join(self._gathered) + b"]")
        if not self._awaited and self._done is not None:
            self._done()


class _Running(Struct, eq=False):
    """A request that is to be answered."""

    request: ClientRequest
    replies: _Replies
    task: asyncio.Task[None] | None = None

    def end(self, reply: bytes | None) -> None:
        """Called when nothing more is sent about the request."""
        self.request.finish()
        self.replies.put(reply)


class _IgnoringListener:
    """The listener of a peer that only receives replies."""

    def asked(self, request_id: MessageId, method: str, params: Raw) -> None: ...
    def notified(self, method: str, params: Raw) -> None: ...
    def faulted(self, kind: str, sample: str) -> None: ...
    def unrequested(self, count: int) -> None: ...


class _Cancelled(Struct, rename="camel"):
    request_id: str | int


class _Level(Struct):
    level: str

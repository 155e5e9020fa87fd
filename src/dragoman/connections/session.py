"""Requests to one connected server, each with a deadline.

Covers deadlines, cancellation, and what happens to requests when the connection ends. `wire/peer.py` matches
replies to requests, the era's driver encodes messages, and the transport sends them. Each request returns or
raises no later than its deadline (plus one second, to find the cause of a lost connection), and cancelling
one does not affect others.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Callable, Generator, Mapping
from time import monotonic
from typing import Any, Final, Literal, NamedTuple, Protocol, cast

from msgspec import Raw, Struct

from dragoman.cleaning import cut, visible
from dragoman.connections.failures import Health, error_of, why_renewed
from dragoman.connections.flooding import FloodGauge
from dragoman.deadlines import Deadlines
from dragoman.errors import (
    CallTimeout,
    ConnectionLost,
    HttpError,
    InvalidArguments,
    MessageTooLarge,
    RemoteError,
)
from dragoman.interaction import RelatedCall
from dragoman.protocol import Era, LogLevel
from dragoman.questions import OpenQuestion, current_question, sampling_depth
from dragoman.transports.base import About, Details, Transport, TransportFailure
from dragoman.wire.codec import Unreadable, decode_as, encode_notification
from dragoman.wire.messages import ABSENT, MessageId
from dragoman.wire.peer import Peer, Progress, ProgressCallback

CAUSE_WAIT_SECONDS: Final = 1.0
FIRST_IDS: Final = (100_000_000, 1_000_000_000)
"""Request ids are integers, because some bridges read every id as one. They start at a random number in this
range: a number that merely occurs in a server's text is then not taken for an id, and all ids fit 32 bits."""

_HOUSEKEEPING: Final = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "subscriptions/listen",
    }
)
"""Requests that every server is sent, whether or not a caller uses it."""

REPLY_LIMITS_BYTES: Final[Mapping[str, int]] = {
    "initialize": 512 * 1024,
    "server/discover": 512 * 1024,
    "completion/complete": 256 * 1024,
}
"""Results that are decoded in one piece, and that no server needs to make large. The readers of
other results limit what is decoded on the event loop."""

End = Literal["lost", "session", "sign-in"]
"""How a link ended: by itself, because the server forgot the session, or because it wants a sign-in."""


class _TimeLimitPassed(Exception):
    """The reply to a request has not come in time."""


class Driver(Protocol):
    """How requests of one era are encoded."""

    @property
    def era(self) -> Era: ...
    @property
    def servers_may_ask(self) -> bool: ...
    @property
    def accepts_batches(self) -> bool: ...
    @property
    def revision(self) -> str: ...
    def encode(
        self, request_id: int, method: str, params: Mapping[str, Any] | None, wants_progress: bool
    ) -> bytes: ...
    def set_log_level(self, level: LogLevel | None) -> bool: ...
    def headers(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, str]: ...
    def encode_cancel(self, request_id: int, reason: str) -> bytes: ...


class OpenCall(NamedTuple):
    """A call under way."""

    call: RelatedCall
    within: OpenQuestion | None
    """The question that the call helps to answer, if it was made for that."""
    sampling_depth: int
    """See `questions.sampling_depth`."""
    check: Callable[[], None] | None = None
    """Raises an exception if the call is not allowed any more."""


class SessionEvents(Struct, frozen=True):
    """What is called on events outside requests."""

    notified: Callable[[str, Raw], None]
    asked: Callable[[Session, MessageId, str, Raw, Mapping[int, OpenCall]], None]
    """The last: calls under way that the request may belong to, by request id."""
    logged: Callable[[str, str], None]
    stderr: Callable[[bytes], None]
    ended: Callable[[Session, str, End], None]
    unresponsive: Callable[[Session], None]
    """The server has sent nothing for a while although requests wait."""
    unauthorized: Callable[[Session], None]
    """A request was refused with 401: the credentials are invalid by now, or this request needs others."""
    call_ended: Callable[[int], None]
    """A call, by its request id, that the server may have asked something about, has ended in any way."""


class _TaskNamed(Struct, frozen=True, rename={"task": "io.modelcontextprotocol/related-task"}):
    task: dict[str, Any] = {}


class _Asked(Struct, rename={"meta": "_meta"}):
    meta: _TaskNamed = _TaskNamed()


def _calls_of_task(calls: Mapping[int, OpenCall], params: Raw) -> Mapping[int, OpenCall]:
    """Those of the calls that a request of the server names by their task; all if it names none of them."""
    if params is ABSENT or not any(each.call.task_id for each in calls.values()):
        return calls
    try:
        task_id = decode_as(_Asked, params).meta.task.get("taskId")
    except Unreadable:
        return calls
    named = {key: each for key, each in calls.items() if task_id and each.call.task_id == task_id}
    return named or calls


def _unencodable(server: str, params: Mapping[str, Any] | None, error: Exception) -> InvalidArguments:
    about = (params or {}).get("name") or (params or {}).get("uri") or ""
    return InvalidArguments(server, str(about), (f"cannot be written as JSON: {error}",))


class Session:
    def __init__(
        self,
        server: str,
        transport: Transport,
        driver: Driver,
        events: SessionEvents,
        *,
        limit_bytes: int,
        unrequested_per_second: int,
    ) -> None:
        self.server = server
        self._transport = transport
        self._events = events
        self._peer = Peer(server, self, limit_bytes=limit_bytes, first_id=random.randrange(*FIRST_IDS))
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines[int](self._loop, self._expired)
        self._in_line = asyncio.Lock()
        self._unsent: set[int] = set()
        """Requests that are not sent yet: the server is not notified when they are cancelled."""
        self.received = self._receive_singly if transport.wants_about else self._peer.receive
        """What the transport calls with every message."""
        self._calls: dict[int, OpenCall] = {}
        """By request id, the calls under way that questions of the server may belong to."""
        self._stream_of: int | None = None
        """The request on whose stream the message came that is being received."""
        self._limit_bytes = limit_bytes
        self._flood = FloodGauge(unrequested_per_second)
        self._health = Health()
        self._is_handshake_done = False
        self.is_used = False
        """Whether a caller's request was answered, so that the server may have work to finish."""
        self.refusal: HttpError | None = None
        """The answer of the server to credentials that are no longer valid."""
        self._long_lived = 0
        """Requests under way that are streams meant to stay open."""
        self._users = 0
        """How many tasks need the session although no request is under way; see `in_use`."""
        self._idle_since = monotonic()
        self._wants_about = transport.wants_about
        self._lost_cause: str | None = None
        self._ended = asyncio.Event()
        self.use(driver)

    def use(self, driver: Driver) -> None:
        """Replaces the driver: the era that the session uses."""
        self.driver = driver
        self._peer.accepts_batches = driver.accepts_batches
        self.mirrors_arguments = self._transport.sends_message_headers and driver.era == "modern"
        """Whether parts of a call's arguments are repeated as headers."""

    @property
    def lost_cause(self) -> str | None:
        """Why the link ended; None while it is open."""
        return self._lost_cause

    @property
    def ignored(self) -> Mapping[str, int]:
        """How many messages were dropped, by kind."""
        return self._peer.ignored

    @property
    def unparsed_output(self) -> tuple[str, ...]:
        """The newest lines of output that were not messages, made visible."""
        return tuple(visible(line) for line in self._peer.unparsed_output)

    @property
    def first_unparsed(self) -> str | None:
        """The first line of output that was not a message, made visible."""
        first = self._peer.first_unparsed
        return None if first is None else visible(first)

    def details(self) -> Details:
        return self._transport.details()

    async def open(self) -> None:
        await self._transport.open(self)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float,
        on_progress: ProgressCallback | None = None,
        send_cancelled: bool = True,
        headers: Mapping[str, str] | None = None,
        is_long_lived: bool = False,
        reset_timeout_on_progress: bool = False,
        before_send: Callable[[], None] | None = None,
        call: RelatedCall | None = None,
    ) -> Raw:
        """The raw result, or one of the errors under `CallError`.

        `headers` are sent by transports that carry headers. `is_long_lived`: a stream meant to stay open.
        `reset_timeout_on_progress`: the time limit starts again with each progress notification.
        `before_send` is called first, and again after a wait for room; what it raises keeps the request from
        being sent.
        `call`: the server may ask questions while it is under way.
        """
        if before_send is not None:
            before_send()
        if self._lost_cause is not None:
            raise ConnectionLost(self.server, self._lost_cause, may_have_run=False)
        if is_long_lived:
            self._long_lived += 1
        future: asyncio.Future[Raw] = self._loop.create_future()
        if reset_timeout_on_progress:
            on_progress = self._extending(self._peer.next_id, timeout_seconds, on_progress)
        request_id = self._peer.open_request(future, on_progress)
        self._deadlines.set(request_id, timeout_seconds)
        # In the modern era the server asks in its reply.
        may_ask = call is not None and self.driver.servers_may_ask
        if call is not None and may_ask:
            self._calls[request_id] = OpenCall(call, current_question(), sampling_depth.get(), before_send)
        is_sent = is_answered = False
        try:
            try:
                message = self.driver.encode(request_id, method, params, on_progress is not None)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                raise _unencodable(self.server, params, error) from None
            if self._transport.congested:
                await self._wait_for_room(request_id, future)
                if future.done():
                    return await future
                if before_send is not None:
                    before_send()
                if self._lost_cause is not None:
                    raise ConnectionLost(self.server, self._lost_cause, may_have_run=False)
            if self._wants_about:
                mirrored = self.driver.headers(method, params)
                about = About(
                    request_id,
                    method,
                    {**mirrored, **headers} if headers else mirrored,
                    # The limit that progress extends is kept here; the transport's must not end it.
                    math.inf if reset_timeout_on_progress else timeout_seconds,
                    is_long_lived,
                )
                self._transport.send(message, about)
            else:
                self._transport.send(message)
            is_sent = True
            result = await future
            is_answered = True
            if method in REPLY_LIMITS_BYTES:
                self._check_size(method, result)
            if not self.is_used:
                self.is_used = method not in _HOUSEKEEPING
            return result
        except _TimeLimitPassed:
            raise CallTimeout(self.server, method, timeout_seconds, may_have_run=is_sent) from None
        except RemoteError as error:
            self._check_session(error)
            raise
        except ConnectionError as error:
            self._peer.forget(request_id)
            cause = await self._why_gone() or str(error)
            raise ConnectionLost(self.server, cause, may_have_run=False) from None
        finally:
            if is_long_lived:
                self._long_lived -= 1
            self._idle_since = monotonic()
            self._deadlines.clear(request_id)
            if may_ask:
                del self._calls[request_id]
                self._events.call_ended(request_id)
            if not is_answered:
                self._end_unanswered(request_id, future, is_sent, send_cancelled)

    def _end_unanswered(
        self, request_id: int, future: asyncio.Future[Raw], is_sent: bool, send_cancelled: bool
    ) -> None:
        """Notifies the server that no caller waits for a reply any more, if it was to send one."""
        is_cancelled = future.cancelled()
        if is_cancelled or not future.done():  # the caller was cancelled, or it could not be encoded
            if self._peer.forget(request_id) and is_cancelled:
                self._give_up(request_id, "the caller gave up" if send_cancelled else None)
        elif isinstance(future.exception(), _TimeLimitPassed) and is_sent:
            if self._wants_about and self._health.expired():
                self._events.unresponsive(self)
            self._give_up(request_id, "the time limit passed" if send_cancelled else None)

    def _extending(
        self,
        request_id: int,
        seconds: float,
        on_progress: ProgressCallback | None,
    ) -> ProgressCallback:
        """Restarts the deadline before progress is passed on."""

        def progressed(progress: Progress) -> None:
            self._deadlines.set(request_id, seconds)
            if on_progress is not None:
                on_progress(progress)

        return progressed

    def forget_progress(self, on_progress: ProgressCallback) -> None:
        """Ends the progress that has outlived its reply."""
        self._peer.forget_progress(on_progress)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._send_quietly(encode_notification(method, params), method=method)

    def answer(self, message: bytes) -> None:
        """Sends the reply to a request of the server."""
        self._send_quietly(message)

    @property
    def fails_singly(self) -> bool:
        """Whether each request travels by itself, so that one can fail while the link stays open."""
        return self._wants_about

    @property
    def idle_seconds(self) -> float:
        """For how many seconds there was no request under way, except streams that stay open."""
        if self._users or self._peer.in_flight > self._long_lived:
            return 0.0
        return monotonic() - self._idle_since

    @contextlib.contextmanager
    def in_use(self) -> Generator[None]:
        """Inside, the session does not count as idle: a task runs at the server."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._idle_since = monotonic()

    def handshake_done(self) -> None:
        """Called when the handshake is done."""
        self._is_handshake_done = True
        self._transport.negotiated(self.driver.revision)

    def skip_stop_wait(self) -> None:
        """`close`, now or later, does not wait for the server to finish."""
        self._transport.skip_stop_wait()

    async def close(self) -> None:
        graceful = self.is_used and self._lost_cause is None
        self.end("the connection was closed")
        await (self._transport.close(graceful=True) if graceful else self._transport.close())

    def end(self, cause: str) -> None:
        """Fails what waits; nothing can be sent after this."""
        if self._lost_cause is None:
            self._lost_cause = cause
            self._ended.set()
        self._fail_waiting(self._lost_cause)

    def _fail_waiting(self, cause: str) -> None:
        self._deadlines.close()
        stderr_tail = visible(self.details().stderr_tail)

        def lost(request_id: int) -> ConnectionLost:
            error = ConnectionLost(self.server, cause, may_have_run=request_id not in self._unsent)
            error.stderr_tail = stderr_tail
            return error

        self._peer.fail_all(lost)

    async def wait_until_idle(self, seconds: float | None) -> None:
        """Returns once nothing waits for a reply, or the time is up; None: each has its own limit."""
        waiting = cast("list[asyncio.Future[Raw]]", self._peer.waiters())
        if waiting:
            await asyncio.wait(waiting, timeout=seconds)

    async def _why_gone(self) -> str | None:
        """Why the peer accepts nothing more; the transport is about to report it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CAUSE_WAIT_SECONDS):
                await self._ended.wait()
        return self._lost_cause

    async def _wait_for_room(self, request_id: int, future: asyncio.Future[Raw]) -> None:
        self._unsent.add(request_id)
        room = asyncio.ensure_future(self._room())
        try:
            await asyncio.wait((room, future), return_when=asyncio.FIRST_COMPLETED)
        finally:
            room.cancel()
            self._unsent.discard(request_id)

    async def _room(self) -> None:
        # One at a time, in order: room for one would otherwise admit all that wait.
        async with self._in_line:
            while self._transport.congested and self._lost_cause is None:
                await self._transport.drained()
                await asyncio.sleep(0)

    def _expired(self, request_id: int) -> None:
        self._peer.fail(request_id, _TimeLimitPassed())

    def _give_up(self, request_id: int, reason: str | None) -> None:
        """No caller waits for the reply any more; the server is notified, if there is a reason to give."""
        if not self._transport.abandon(request_id) and reason is not None:
            self._send_quietly(self.driver.encode_cancel(request_id, reason), although_congested=True)

    def _check_session(self, error: RemoteError) -> None:
        """Some servers report in an ordinary reply that the client has to reconnect."""
        if not self._is_handshake_done or not self._transport.sends_message_headers:
            return
        cause = why_renewed(self.driver.era, error)
        if cause is not None:
            self._end_as(cause, "session")
            raise ConnectionLost(self.server, cause, may_have_run=False, was_refused=True) from None

    def _check_size(self, method: str, result: Raw) -> None:
        limit_bytes = REPLY_LIMITS_BYTES[method]
        if len(result) > limit_bytes:
            raise MessageTooLarge(self.server, limit_bytes, method)

    def _send_quietly(self, message: bytes, *, although_congested: bool = False, method: str = "") -> None:
        # Messages that a server can cause without limit are dropped while it does not read; those that are
        # bounded by the requests of this side are not.
        if self._lost_cause is None and (although_congested or not self._transport.congested):
            try:
                self._transport.send(message, About(method=method) if self._wants_about else None)
            except ConnectionError:
                return

    # What the transport delivers.

    def _receive_singly(self, message: bytes) -> None:
        self._health.good()
        self._peer.receive(message)

    def received_on(self, request_id: int, message: bytes) -> None:
        self._stream_of = request_id
        try:
            self.received(message)
        finally:
            self._stream_of = None

    def oversized(self, head: bytes, tail: bytes) -> bool:
        return self._peer.receive_oversized(head, tail)

    def awaits(self, request_id: int) -> bool:
        return self._peer.awaits(request_id)

    def failed(self, request_id: int | None, failure: TransportFailure) -> None:
        verdict = self._health.after(failure)
        if request_id is not None:
            self._peer.fail(request_id, error_of(self.server, failure, self._limit_bytes))
        match verdict:
            case "keep":
                if request_id is None:
                    self._events.logged("warning", f"a message was not taken: {failure.cause}")
            case "renew":
                self._end_as(failure.cause, "lost")
            case "session":
                self._end_as("its session has ended", "session")
            case "unauthorized":
                self._events.unauthorized(self)

    def stderr(self, data: bytes) -> None:
        self._events.stderr(data)

    def unrequested(self, count: int) -> None:
        if self._flood.is_flooded(count, self._loop.time()):
            self.lost(self._flood.cause)

    def lost(self, cause: str) -> None:
        self._end_as(cause, "lost", nothing_follows=True)

    def sign_in_needed(self, refusal: HttpError) -> None:
        """The credentials are no longer valid: no request is sent; those under way may still be answered."""
        self.refusal = refusal
        self._end_as(refusal.cause, "sign-in")

    def _end_as(self, cause: str, how: End, *, nothing_follows: bool = False) -> None:
        if self._lost_cause is None:
            self._lost_cause = cause
            self._ended.set()
            # Otherwise what is on its way may still arrive; the owner closes, and fails what is left then.
            if nothing_follows or not self._wants_about:
                self._fail_waiting(cause)
            self._events.ended(self, cause, how)

    # What the peer reports.

    def notified(self, method: str, params: Raw) -> None:
        self._events.notified(method, params)

    def asked(self, request_id: MessageId, method: str, params: Raw) -> None:
        if self.driver.servers_may_ask:
            calls = _calls_of_task(self._possible_calls(), params)
            self._events.asked(self, request_id, method, params, calls)
        else:
            self._events.logged(
                "warning", f"it sent the request {cut(method, 200)}, which this era forbids; ignored"
            )

    def _possible_calls(self) -> Mapping[int, OpenCall]:
        """The calls that the request being received may belong to: that of its stream, or where one stream
        serves all, every call under way."""
        stream_of = self._stream_of
        if stream_of is None:
            return self._calls.copy()
        found = self._calls.get(stream_of)
        return {} if found is None else {stream_of: found}

    def faulted(self, kind: str, sample: str) -> None:
        what = "data that is not an MCP message" if kind == "unparsed" else f"{kind} from the server"
        self._events.logged("warning", f"{what}, ignored: {sample}" if sample else f"{kind}, ignored")

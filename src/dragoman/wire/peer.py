"""One side of a JSON-RPC conversation, without I/O.

Assigns request ids, matches replies to requests (exact id, exact type), passes progress on, and counts
messages that are late, doubled, foreign or unreadable. Sending, deadlines and answering are left to
`connections`. No bytes raise, and each waiter is resolved at most once. An unreadable reply that names its
request fails that request; output that names none is counted as unparsed, and fails no request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import UNSET, Raw, Struct

from dragoman.cleaning import CUT
from dragoman.errors import DragomanError, MalformedReply, MessageTooLarge, RemoteError
from dragoman.surrogates import keep_original, replace_lone_surrogates
from dragoman.wire.attribution import answered_ids, ids_in_ends
from dragoman.wire.codec import (
    DECODE_ERRORS,
    Unreadable,
    batch_members,
    decode_as,
    decode_envelope,
    decode_message,
    unreadable,
)
from dragoman.wire.messages import (
    ABSENT,
    Envelope,
    ErrorObject,
    LargeErrorObject,
    MessageId,
    ProgressParams,
)

PROGRESS_MESSAGE_LIMIT: Final = 2048
PROGRESS_LIMIT_BYTES: Final = 2 * 1024 * 1024
"""The largest progress notification that is decoded."""
UNPARSED_LINES: Final = 8
SAMPLE_BYTES: Final = 200
ERROR_LIMIT_BYTES: Final = 1024 * 1024
"""The largest error object that is decoded whole; of a larger one, `data` is left out."""
REPORT_EVERY: Final = 64


class Progress(Struct, frozen=True):
    """The progress of a call, in the server's own units."""

    progress: float
    total: float | None = None
    message: str | None = None


ProgressCallback = Callable[[Progress], None]


class Waiter(Protocol):
    """Receives the reply to a request; `asyncio.Future` is one."""

    def done(self) -> bool: ...
    def set_result(self, result: Raw, /) -> None: ...
    def set_exception(self, exception: Exception, /) -> None: ...


class Listener(Protocol):
    """Receives requests and notifications of the server."""

    def notified(self, method: str, params: Raw) -> None: ...
    def asked(self, request_id: MessageId, method: str, params: Raw) -> None: ...
    def faulted(self, kind: str, sample: str) -> None: ...
    def unrequested(self, count: int) -> None:
        """Reports this many further messages that answer no request; called every `REPORT_EVERY` messages."""
        ...


class Peer:
    def __init__(self, server: str, listener: Listener, *, limit_bytes: int, first_id: int = 1) -> None:
        self._server = server
        self._listener = listener
        self._limit_bytes = limit_bytes
        self._first_id = first_id
        self._last_id = first_id - 1
        self._waiters: dict[int, Waiter] = {}
        self._progress: dict[int, _ProgressReceiver] = {}
        self._unrequested = 0
        """The number of messages that answer no request."""
        self.accepts_batches = False
        self.ignored: dict[str, int] = {}
        """The number of dropped messages, by kind."""
        self.unparsed_output: deque[str] = deque(maxlen=UNPARSED_LINES)
        """The newest lines that were not messages: often the error output of a failing server."""
        self.first_unparsed: str | None = None

    @property
    def in_flight(self) -> int:
        return len(self._waiters)

    def is_waiting_for(self, request_id: MessageId) -> bool:
        return type(request_id) is int and request_id in self._waiters

    @property
    def next_id(self) -> int:
        """The id of the request that is opened next."""
        return self._last_id + 1

    def open_request(self, waiter: Waiter, on_progress: ProgressCallback | None = None) -> int:
        """Returns a new id; its reply is passed to the waiter. The id is also the progress token.

        A callback with a true `outlives_reply` is called until `forget_progress`: the reply may be a task.
        """
        self._last_id += 1
        request_id = self._last_id
        self._waiters[request_id] = waiter
        if on_progress is not None:
            self._progress[request_id] = _ProgressReceiver(on_progress)
        return request_id

    def forget(self, request_id: int) -> bool:
        """Stops waiting for a reply; true if it was still awaited."""
        if self._progress:
            self._progress.pop(request_id, None)
        return self._waiters.pop(request_id, None) is not None

    def forget_progress(self, on_progress: ProgressCallback) -> None:
        """Ends the progress that has outlived its reply."""
        for token in [
            token for token, receiver in self._progress.items() if receiver.callback is on_progress
        ]:
            del self._progress[token]

    def waiters(self) -> list[Waiter]:
        return list(self._waiters.values())

    def awaits(self, request_id: int) -> bool:
        return request_id in self._waiters

    def fail(self, request_id: int, error: Exception) -> None:
        """Ends a request without a reply; has no effect if it is not awaited any more."""
        self._fail(request_id, error)

    def fail_all(self, make_error: Callable[[int], DragomanError]) -> None:
        for request_id in list(self._waiters):
            self._fail(request_id, make_error(request_id))

    def receive(self, message: bytes) -> None:
        """Takes one message as it came off the wire."""
        try:
            envelope = decode_message(message)
        except DECODE_ERRORS as error:
            self._receive_odd(message, unreadable(error))
            return
        if envelope.method is UNSET:
            self.receive_reply(envelope, message)
        else:
            self._dispatch(envelope, message)

    def receive_oversized(self, head: bytes, tail: bytes) -> bool:
        """Takes the ends of a message over the limit (an empty tail: it is still being received).

        Returns whether the request it belongs to was found and failed.
        """
        found = self._fail_named(
            ids_in_ends(head, tail), lambda: MessageTooLarge(self._server, self._limit_bytes)
        )
        if not found and tail:
            self._ignore("oversized message", _sample(head))
        return found

    def _dispatch(self, envelope: Envelope, message: bytes) -> None:
        method = envelope.method
        if method is UNSET:
            self.receive_reply(envelope, message)
        elif envelope.id is not UNSET:
            self._count_unrequested()
            self._listener.asked(envelope.id, method, envelope.params)
        elif method == "notifications/progress":
            self._progressed(envelope.params)
        else:
            self._count_unrequested()
            self._listener.notified(method, envelope.params)

    def receive_reply(self, envelope: Envelope, message: bytes) -> None:
        """Takes a message without a method, decoded."""
        request_id = envelope.id
        # All request ids are integers; `true` and `1.0` equal an integer in Python and must not match one.
        waiter = self._waiters.pop(request_id, None) if type(request_id) is int else None
        if waiter is None:
            self._unexpected_reply(envelope, message)
            return
        if self._progress:
            receiver = self._progress.get(request_id)  # type: ignore[arg-type]
            if receiver is not None and not receiver.outlives_reply:
                del self._progress[request_id]  # type: ignore[arg-type]
        if waiter.done():
            return
        if envelope.error is ABSENT and envelope.result is not ABSENT:
            waiter.set_result(envelope.result)
        else:
            waiter.set_exception(self._error_of(envelope))

    def _error_of(self, envelope: Envelope) -> DragomanError:
        if envelope.error is ABSENT:
            return MalformedReply(self._server, "neither a result nor an error")
        if envelope.result is not ABSENT:
            return MalformedReply(self._server, "both a result and an error")
        try:
            if memoryview(envelope.error).nbytes > ERROR_LIMIT_BYTES:
                large = decode_as(LargeErrorObject, envelope.error)
                return RemoteError(self._server, large.code, large.message)
            error = decode_as(ErrorObject, envelope.error)
        except Unreadable as problem:
            return MalformedReply(self._server, f"the error object cannot be read ({problem.detail})")
        return RemoteError(self._server, error.code, error.message, error.data)

    def _unexpected_reply(self, envelope: Envelope, message: bytes) -> None:
        if envelope.id is UNSET and envelope.result is ABSENT and envelope.error is ABSENT:
            self._count_unparsed(message)
        elif envelope.id is None and envelope.error is not ABSENT:
            error = self._error_of(envelope)
            self._ignore("error without an id", str(error).encode())
        else:
            self._ignore("reply to no pending request", repr(envelope.id).encode())

    def _progressed(self, params: Raw) -> None:
        if not self._progress:
            self._ignore("progress for no pending request", b"")
            return
        try:
            if memoryview(params).nbytes > PROGRESS_LIMIT_BYTES:
                raise Unreadable("it is too large")
            update = decode_as(ProgressParams, params)
        except Unreadable:
            self._ignore("unreadable progress", _sample(bytes(memoryview(params)[: SAMPLE_BYTES + 1])))
            return
        token = update.progress_token
        meter = self._progress.get(token) if type(token) is int else None
        if meter is None:
            self._ignore("progress for no pending request", b"")
        elif not meter.pass_on(update):
            self._ignore("progress that does not increase", b"")

    def _receive_odd(self, data: bytes, problem: Unreadable) -> None:
        if not data.strip():
            self._count_unrequested()
            return
        repaired = replace_lone_surrogates(data)
        if repaired is not None:
            try:
                envelope = decode_envelope(repaired)
            except Unreadable:
                data = repaired
            else:
                if envelope.result is not ABSENT:
                    envelope.result = keep_original(envelope.result, data, repaired)
                self._dispatch(envelope, data)
                return
        if self.accepts_batches and (members := batch_members(data)):
            for member in members:
                self._receive_member(member)
        else:
            self._receive_unreadable(data, problem)

    def _receive_member(self, member: bytes) -> None:
        try:
            self._dispatch(decode_envelope(member), member)
        except Unreadable as problem:
            self._receive_unreadable(member, problem)

    def _receive_unreadable(self, data: bytes, problem: Unreadable) -> None:
        # Most output that is not a message contains no id, and needs no further check.
        named = answered_ids(data) if b'"id"' in data else []
        if not self._fail_named(named, lambda: MalformedReply(self._server, problem.detail)):
            self._count_unparsed(data)

    def _fail_named(self, ids: list[int], make_error: Callable[[], DragomanError]) -> bool:
        """Fails the requests with these ids; false if none of the ids was ever given to a request."""
        ours = [each for each in ids if self._first_id <= each <= self._last_id]
        for request_id in ours:
            self._fail(request_id, make_error())
        return bool(ours)

    def _fail(self, request_id: int, error: Exception) -> None:
        waiter = self._waiters.pop(request_id, None)
        self._progress.pop(request_id, None)
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _count_unparsed(self, data: bytes) -> None:
        sample = _sample(data)
        line = sample.decode("utf-8", "replace")
        self.unparsed_output.append(line)
        if self.first_unparsed is None:
            self.first_unparsed = line
        self._ignore("unparsed", sample)

    def _count_unrequested(self) -> None:
        self._unrequested += 1
        if not self._unrequested % REPORT_EVERY:
            self._listener.unrequested(REPORT_EVERY)

    def _ignore(self, kind: str, sample: bytes) -> None:
        self._count_unrequested()
        count = self.ignored[kind] = self.ignored.get(kind, 0) + 1
        if count == 1:
            self._listener.faulted(kind, sample.decode("utf-8", "replace"))


def _sample(data: bytes) -> bytes:
    """The beginning of a server's message, for display."""
    return data if len(data) <= SAMPLE_BYTES else data[:SAMPLE_BYTES] + CUT.encode()


class _ProgressReceiver:
    """Passes on only increasing progress, as the specification requires of servers."""

    __slots__ = ("_last", "callback", "outlives_reply")

    def __init__(self, callback: ProgressCallback) -> None:
        self.callback = callback
        self.outlives_reply: bool = getattr(callback, "outlives_reply", False)
        self._last: float | None = None

    def pass_on(self, update: ProgressParams) -> bool:
        if self._last is not None and update.progress <= self._last:
            return False
        self._last = update.progress
        message = update.message
        if message is not None and len(message) > PROGRESS_MESSAGE_LIMIT:
            message = message[:PROGRESS_MESSAGE_LIMIT] + CUT
        self.callback(Progress(update.progress, update.total, message))
        return True

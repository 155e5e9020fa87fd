"""Messages that a server sends on its own: log messages, requests and notifications.

Each is passed to its handler and bounded: text is cut and cleaned, and at most `QUESTIONS_LIMIT` requests
wait for an answer at the same time. A request is dropped when the server cancels it, when the calls that it
may belong to have ended, and when the connection ends. `server_requests.py` makes the answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from dragoman import events
from dragoman.cleaning import one_line
from dragoman.connections.server_log import ServerLog, Source
from dragoman.connections.server_requests import Refusal, RequestContext, ServerRequests
from dragoman.connections.session import OpenCall, Session
from dragoman.errors import HostClosed
from dragoman.protocol import INTERNAL_ERROR, INVALID_REQUEST, LOG_LEVELS
from dragoman.wire.codec import Unreadable, decode_as, encode_error, encode_result
from dragoman.wire.messages import ABSENT, LogParams, MessageId

LOG_TEXT_LIMIT: Final = 4096
LOGGER_LIMIT: Final = 200
LOG_LIMIT_BYTES: Final = 64 * 1024
"""A larger line of the log is shown as it came, cut like the others."""
NOTICE_LIMIT_BYTES: Final = 64 * 1024
"""Larger parameters of a notification count as missing."""
QUESTIONS_LIMIT: Final = 16
SHOWN_CALLS: Final = 8
"""Calls that a request may belong to, which its handler is given."""
LEVELS: Final = frozenset(LOG_LEVELS)


class _OpenRequest:
    """A request of the server while it waits for its answer."""

    def __init__(self, session: Session, request_id: MessageId, method: str) -> None:
        self.session = session
        self.request_id = request_id
        self.method = method
        self.calls: Mapping[int, OpenCall] = {}
        """Calls under way that it may belong to, by request id."""
        self.open_calls: set[int] | None = None
        """Those of them that have not ended; None if the request needs no call."""
        self.task: asyncio.Task[None] | None = None
        self.is_dropped = False
        """Whether nothing is sent any more, even if the front end answers although it was cancelled."""

    def answer(self, message: bytes) -> None:
        if not self.is_dropped:
            self.session.answer(message)

    def check_allowed(self) -> None:
        """Raises `Refusal` if none of the calls that it may belong to is allowed any more: a rule that denies
        the server may have been added while it waited."""
        if self.open_calls and not any(_is_allowed(self.calls[each]) for each in self.open_calls):
            why = f"{self.method} was not answered: the call that it belongs to is not allowed any more"
            raise Refusal(INTERNAL_ERROR, why)

    def drop(self) -> None:
        self.is_dropped = True
        if self.task is not None:
            self.task.cancel()


def _is_allowed(call: OpenCall) -> bool:
    if call.check is None:
        return True
    try:
        call.check()
    except Exception:  # border: what says that a call must be judged again belongs to a higher package
        return False
    return True


class _Cancelled(Struct, rename="camel"):
    request_id: str | int


class _Completed(Struct, rename="camel"):
    elicitation_id: str


class ServerMessages:
    def __init__(
        self,
        server: str,
        bus: events.EventBus,
        requests: ServerRequests,
        on_notice: Callable[[str, Raw], None],
        log: ServerLog | None = None,
    ) -> None:
        """`on_notice` is called with every notification that is not a log message. `log`: the server's log
        file."""
        self._log = log
        self._server = server
        self._bus = bus
        self._requests = requests
        self._on_notice = on_notice
        self._open: dict[MessageId, _OpenRequest] = {}

    def notified(self, method: str, params: Raw) -> None:
        if method != "notifications/message":
            is_large = memoryview(params).nbytes > NOTICE_LIMIT_BYTES
            self._noticed(method, ABSENT if is_large else params)
        elif self._bus.has_listeners or (self._log is not None and self._log.has_room()):
            self._log_message(params)

    def _noticed(self, method: str, params: Raw) -> None:
        if method == "notifications/cancelled":
            self._cancelled(params)
        elif method == "notifications/elicitation/complete":
            with contextlib.suppress(Unreadable):
                self._requests.completions.completed(decode_as(_Completed, params).elicitation_id)
        else:
            self._on_notice(method, params)

    def asked(
        self,
        session: Session,
        request_id: MessageId,
        method: str,
        params: Raw,
        calls: Mapping[int, OpenCall],
    ) -> None:
        local = self._requests.local_reply(request_id, method, has_call=bool(calls))
        if local is not None:
            session.answer(local)
        elif request_id in self._open:
            session.answer(encode_error(request_id, INVALID_REQUEST, "a request with this id is open"))
        elif len(self._open) >= QUESTIONS_LIMIT:
            session.answer(encode_error(request_id, INTERNAL_ERROR, "too many requests at once"))
        else:
            asked = self._open[request_id] = _OpenRequest(session, request_id, method)
            asked.calls = calls
            asked.open_calls = set(calls) if self._requests.needs_call(method) else None
            asked.task = asyncio.create_task(self._reply(asked, params))
            asked.task.add_done_callback(lambda _: self._open.pop(request_id, None))

    def call_ended(self, request_id: int) -> None:
        """Drops the requests that can belong to no other call; the server is answered with an error."""
        for asked in self._open.values():
            if asked.open_calls is None or request_id not in asked.open_calls:
                continue
            asked.open_calls.discard(request_id)
            if not asked.open_calls:
                why = f"{asked.method} was not answered: the call that it belongs to has ended"
                asked.answer(encode_error(asked.request_id, INTERNAL_ERROR, why))
                asked.drop()

    def logged(self, level: str, text: str) -> None:
        """What the host notices about the server."""
        self._keep("host", level, text)

    def stderr(self, data: bytes) -> None:
        """What the server's process has written to stderr; empty at its end."""
        if self._log is not None:
            self._log.write_stderr(data) if data else self._log.end_stderr()

    def _keep(self, source: Source, level: str, text: str, logger: str = "") -> None:
        level = level if level in LEVELS else "info"
        if self._log is not None:
            self._log.write(source, level, text, logger)
        if self._bus.has_listeners:
            self._bus.publish(
                events.ServerLogged(
                    server=self._server,
                    level=level,
                    text=one_line(text, LOG_TEXT_LIMIT),
                    logger=one_line(logger, LOGGER_LIMIT),
                    is_message=source == "message",
                )
            )

    def cancel_requests(self) -> None:
        """The connection of the server that sent the requests has ended."""
        for asked in self._open.values():
            asked.drop()

    async def _reply(self, asked: _OpenRequest, params: Raw) -> None:
        calls = asked.calls.values()
        context = RequestContext(
            calls=tuple(call.call for call in calls)[:SHOWN_CALLS],
            within=next((call.within for call in calls if call.within is not None), None),
            sampling_depth=max((call.sampling_depth for call in calls), default=0),
        )
        try:
            asked.check_allowed()
            result = await self._requests.answer(asked.method, params, context)
            asked.check_allowed()
            asked.answer(encode_result(asked.request_id, result))
        except Refusal as refusal:
            self.logged("warning", f"its request {asked.method} was refused: {refusal.message}")
            asked.answer(encode_error(asked.request_id, refusal.code, refusal.message))
        except HostClosed:
            return
        asked.is_dropped = True  # the answer is sent

    def _cancelled(self, params: Raw) -> None:
        """The server does not need the answer any more, and gets none."""
        try:
            asked = self._open.get(decode_as(_Cancelled, params).request_id)
        except (Unreadable, TypeError):
            return
        if asked is not None:
            asked.drop()

    def _log_message(self, params: Raw) -> None:
        if memoryview(params).nbytes > LOG_LIMIT_BYTES:
            # Its beginning, undecoded: decoding megabytes would block the event loop.
            self._keep(
                "message", "info", bytes(memoryview(params)[:LOG_LIMIT_BYTES]).decode("utf-8", "replace")
            )
            return
        try:
            message = decode_as(LogParams, params)
        except Unreadable:
            return
        text = message.data if isinstance(message.data, str) else msgspec.json.encode(message.data).decode()
        self._keep("message", message.level, text, message.logger or "")

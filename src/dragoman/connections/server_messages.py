"""Messages that a server sends on its own: log messages, requests and notifications.

Each is passed to its handler and bounded: text is cut and cleaned, and at most `QUESTIONS_LIMIT` requests
wait for a person at the same time. `server_requests.py` makes the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from dragoman import events
from dragoman.cleaning import one_line
from dragoman.connections.server_log import ServerLog, Source
from dragoman.connections.server_requests import ServerRequests
from dragoman.connections.session import Session
from dragoman.protocol import INTERNAL_ERROR, LOG_LEVELS
from dragoman.wire.codec import Unreadable, decode_as, encode_error
from dragoman.wire.messages import ABSENT, LogParams, MessageId

LOG_TEXT_LIMIT: Final = 4096
LOGGER_LIMIT: Final = 200
LOG_LIMIT_BYTES: Final = 64 * 1024
"""A larger line of the log is shown as it came, cut like the others."""
NOTICE_LIMIT_BYTES: Final = 64 * 1024
"""Larger parameters of a notification count as missing."""
QUESTIONS_LIMIT: Final = 16
LEVELS: Final = frozenset(LOG_LEVELS)


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
        self._questions: set[asyncio.Task[None]] = set()

    def notified(self, method: str, params: Raw) -> None:
        if method != "notifications/message":
            is_large = memoryview(params).nbytes > NOTICE_LIMIT_BYTES
            self._on_notice(method, ABSENT if is_large else params)
        elif self._bus.has_listeners or (self._log is not None and self._log.has_room()):
            self._log_message(params)

    def asked(self, session: Session, request_id: MessageId, method: str, params: Raw) -> None:
        if self._requests.can_answer_locally(method):
            session.answer(self._requests.local_reply(request_id, method))
        elif len(self._questions) >= QUESTIONS_LIMIT:
            session.answer(encode_error(request_id, INTERNAL_ERROR, "too many requests at once"))
        else:
            task = asyncio.create_task(self._reply(session, request_id, method, params))
            self._questions.add(task)
            task.add_done_callback(self._questions.discard)

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
                )
            )

    def cancel_questions(self) -> None:
        """The server that asked is gone."""
        for question in self._questions:
            question.cancel()

    async def _reply(self, session: Session, request_id: MessageId, method: str, params: Raw) -> None:
        session.answer(await self._requests.reply(request_id, method, params))

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

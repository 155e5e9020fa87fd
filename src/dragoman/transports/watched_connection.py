"""Connections of aiohttp that detect what aiohttp does not report: floods that it reads without limit, and a
body that cannot be read on.

Interim replies (status 1xx) before the answer to a request are limited. Nearly empty WebSocket frames, and
nearly empty chunks of an event stream, are counted, for the flood limit: aiohttp joins them. Names are
resolved in threads of their own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError

from dragoman.resolver import Resolver

INTERIM_LIMIT: Final = 100
FRAME_BYTES: Final = 64
"""The average size of the parts of a message from which they are not counted as nearly empty."""
_SMALL_CHUNK: Final = re.compile(rb"\r\n[0-9A-Fa-f]{1,2}\r\n")
"""The line with the size of a chunk of less than 256 bytes, and the line ends around it."""


class WatchedConnection(ResponseHandler):
    on_tiny_frames: Callable[[int], None] | None = None
    """Called with the approximate number of nearly empty frames."""
    on_tiny_chunks: Callable[[int], None] | None = None
    """The same for the chunks of an event stream. (Some servers write a JSON document in tiny chunks.)"""
    _interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Takes one parsed HTTP response."""
        self.on_tiny_chunks = None  # it was for the response before
        status = data[0].code
        is_interim = 100 <= status < 200 and status != 101
        self._interim = self._interim + 1 if is_interim else 0
        if self._interim <= INTERIM_LIMIT:
            super().feed_data(data, size)
        elif self._interim == INTERIM_LIMIT + 1 and self.transport is not None:
            self.transport.close()
            why = f"more than {INTERIM_LIMIT} interim replies came instead of an answer"
            self.set_exception(HttpProcessingError(code=status, message=why))

    def data_received(self, data: bytes) -> None:
        """Takes data from the network."""
        if self.on_tiny_frames is not None:
            # A part of an unfinished message begins with a zero byte, and no JSON text contains one; the
            # sizes of large parts do.
            tiny = data.count(b"\0") - len(data) // FRAME_BYTES
            if tiny > 0:
                self.on_tiny_frames(tiny)
        elif self.on_tiny_chunks is not None and data.count(b"\r\n") > len(data) // FRAME_BYTES:
            tiny = len(_SMALL_CHUNK.findall(data)) - len(data) // FRAME_BYTES
            if tiny > 0:
                self.on_tiny_chunks(tiny)
        super().data_received(data)

    def set_exception(self, exc: BaseException, *cause: Any, **named: Any) -> None:
        """Takes the failure of the connection. aiohttp does not report one in the middle of a body, such as
        an invalid size of a chunk, to the reader of the body, which would wait without an end."""
        super().set_exception(exc, *cause, **named)
        body = self._payload
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError(f"the body cannot be read: {exc}"))


def watch_chunks(response: aiohttp.ClientResponse, report: Callable[[int], None]) -> None:
    """Reports nearly empty chunks of an event stream."""
    connection = response.connection
    if connection is not None and isinstance(connection.protocol, WatchedConnection):
        connection.protocol.on_tiny_chunks = report


class WatchedConnector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(resolver=Resolver(), **options)  # pyright: ignore[reportUnknownMemberType]
        self._factory = functools.partial(WatchedConnection, loop=self._loop)

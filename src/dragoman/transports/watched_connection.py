"""Connections of aiohttp that detect floods that aiohttp reads without limit and does not report.

Interim replies (status 1xx) before the answer to a request are limited. Nearly empty WebSocket frames are
counted, for the flood limit: aiohttp joins the frames of a message until it is complete. Names are resolved
in threads of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError

from dragoman.resolver import Resolver

INTERIM_LIMIT: Final = 100
FRAME_BYTES: Final = 64
"""The average size of the parts of a message from which they are not counted as nearly empty."""


class WatchedConnection(ResponseHandler):
    on_tiny_frames: Callable[[int], None] | None = None
    """Called with the approximate number of nearly empty frames."""
    _interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Takes one parsed HTTP response."""
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
        super().data_received(data)


class WatchedConnector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(resolver=Resolver(), **options)  # pyright: ignore[reportUnknownMemberType]
        self._factory = functools.partial(WatchedConnection, loop=self._loop)

"""Connections of aiohttp that notice what aiohttp reads without end and does not report.

Interim replies (status 1xx) before the answer to a request are limited. Nearly empty WebSocket frames are
counted, for the flood limit: aiohttp joins the frames of a message until it is complete. Names are resolved
in threads of their own.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError

from dragoman.own_threads import resolve

INTERIM_LIMIT: Final = 100
FRAME_BYTES: Final = 64
"""Parts of a message are at least as large on average; smaller ones count."""


class WatchedConnection(ResponseHandler):
    on_tiny_frames: Callable[[int], None] | None = None
    """Called with the approximate number of nearly empty frames."""
    _interim = 0

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Takes one parsed answer of HTTP."""
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
        """Takes what came over the network."""
        if self.on_tiny_frames is not None:
            # A part of an unfinished message begins with a zero byte, and no JSON text contains one; the
            # sizes of large parts do.
            tiny = data.count(b"\0") - len(data) // FRAME_BYTES
            if tiny > 0:
                self.on_tiny_frames(tiny)
        super().data_received(data)


class WatchedConnector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(resolver=_Resolver(), **options)  # pyright: ignore[reportUnknownMemberType]
        self._factory = functools.partial(WatchedConnection, loop=self._loop)


class _Resolver(AbstractResolver):
    """Resolves names in threads of its own: a name server that does not answer delays nothing else."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await resolve(host, port, family=family, flags=socket.AI_ADDRCONFIG)
        return [
            ResolveResult(
                hostname=host,
                host=_with_scope(address),
                port=port,
                family=socket.AddressFamily(kind),
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        return


def _with_scope(address: tuple[Any, ...]) -> str:
    """The address; one of IPv6 that counts on one network only with that network."""
    host, scope = str(address[0]), (*address, 0, 0)[3]
    return f"{host}%{scope}" if scope and "%" not in host else host

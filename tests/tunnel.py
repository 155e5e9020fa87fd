"""An HTTP proxy on loopback that records the requested hosts.

It supports CONNECT and plain requests in absolute form, and does not inspect tunnelled bytes.

    async with Tunnel() as proxy:
        host = Host({"x": {"url": server.url, "proxy": proxy.url}})
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self
from urllib.parse import urlsplit

PIECE_BYTES = 65536


class Tunnel:
    def __init__(self, *, refusing: bytes | None = None) -> None:
        """`refusing`: what it answers instead of doing what it is asked."""
        self._refusing = refusing
        self.tunnels: list[str] = []
        """The targets of CONNECT, "host:port", one for each tunnel."""
        self.plain: list[str] = []
        """The origins of plain connections."""
        self.heads: list[bytes] = []
        self._passing: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        return len(self.tunnels) + len(self.plain)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            writer.transport.abort()
            self._passing.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self._refusing is not None:
            writer.write(self._refusing)
            await writer.drain()
            return
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        place = target if method == "CONNECT" else urlsplit(target).netloc
        (self.tunnels if method == "CONNECT" else self.plain).append(place)
        far_reader, far_writer = await asyncio.open_connection(*place.rsplit(":", 1))
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                far_writer.write(head)  # servers must understand the absolute form
            await _first_end(_pass(reader, far_writer), _pass(far_reader, writer))
        finally:
            far_writer.transport.abort()


async def _first_end(*works: object) -> None:
    tasks = [asyncio.ensure_future(work) for work in works]  # type: ignore[call-overload]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE_BYTES):
        writer.write(data)
        await writer.drain()

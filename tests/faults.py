"""A TCP proxy on loopback that causes faults on request, with the terms of toxiproxy.

It passes bytes between a client and one upstream port. Each direction is a `Leg` (`up`: client to server,
`down`: server to client); a fault applies from the next piece of bytes on, also for open connections. The
proxy does not interpret HTTP. Leaving it ends every connection.

    async with FaultProxy(site.port) as proxy:
        proxy.down.reset_at(40)          # every connection is reset after 40 bytes of reply
        ...
        proxy.heal()                     # from now on a plain proxy again
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

PIECE_BYTES = 64 * 1024
FLUSH_SECONDS = 0.5
STEPS_PER_SECOND = 20
"""How often a leg with little bandwidth passes something on."""


@dataclass(eq=False)
class Cut:
    """An end of connections, `after` so many bytes; counted from when it was asked for."""

    how: Literal["reset", "close"]
    after: int
    times: int | None


class Leg:
    """One direction of all connections: what is wrong with it, and how much has passed."""

    def __init__(self) -> None:
        self.bytes = 0
        """How much was passed on, over all connections."""
        self.heal()

    def heal(self) -> None:
        """Nothing is wrong any more. A connection whose bytes were swallowed stays mute."""
        self.latency_seconds = 0.0
        self.bytes_per_second: float | None = None
        self.piece_bytes = PIECE_BYTES
        self.slow_close_seconds = 0.0
        self.swallows = False
        self.cut: Cut | None = None

    def latency(self, seconds: float) -> None:
        """Everything arrives later by this much; what comes meanwhile waits its own turn."""
        self.latency_seconds = seconds

    def bandwidth(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second

    def slicer(self, piece_bytes: int) -> None:
        """Everything arrives in pieces of at most this size."""
        self.piece_bytes = piece_bytes

    def reset_at(self, count: int, *, times: int | None = None) -> None:
        """RST to both sides once `count` bytes passed; at 0, when a first byte wants to pass.

        `times`: how many connections are cut before the leg is well again; None is all of them.
        """
        self.cut = Cut("reset", count, times)

    def close_at(self, count: int, *, times: int | None = None) -> None:
        """Like `reset_at`, but both sides see an orderly end (FIN)."""
        self.cut = Cut("close", count, times)

    def black_hole(self) -> None:
        """Bytes are taken and never arrive, nor does an end."""
        self.swallows = True

    def slow_close(self, seconds: float) -> None:
        """The end of this direction is passed on this much later."""
        self.slow_close_seconds = seconds


class FaultProxy:
    def __init__(self, upstream_port: int, *, upstream_host: str = "127.0.0.1") -> None:
        self.up = Leg()
        self.down = Leg()
        self.connections = 0
        """How many were accepted so far."""
        self._upstream = (upstream_host, upstream_port)
        self._links: dict[Link, asyncio.Task[None]] = {}
        self._listener: socket.socket | None = None
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        # Bound and never listening, it keeps the port ours while connections are refused.
        self._keeper = _bind(0)
        self.port: int = self._keeper.getsockname()[1]
        self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        tasks = [*self._links.values()]
        self.cut_all()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._keeper.close()

    @property
    def open_connections(self) -> int:
        return sum(not link.ended for link in self._links)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # Verbs for both directions at once.

    def heal(self) -> None:
        self.up.heal()
        self.down.heal()

    def latency(self, seconds: float) -> None:
        self.up.latency(seconds)
        self.down.latency(seconds)

    def bandwidth(self, bytes_per_second: float) -> None:
        self.up.bandwidth(bytes_per_second)
        self.down.bandwidth(bytes_per_second)

    def slicer(self, piece_bytes: int) -> None:
        self.up.slicer(piece_bytes)
        self.down.slicer(piece_bytes)

    def slow_close(self, seconds: float) -> None:
        self.up.slow_close(seconds)
        self.down.slow_close(seconds)

    def black_hole(self) -> None:
        self.up.black_hole()
        self.down.black_hole()

    # Verbs for whole connections.

    def refuse(self) -> None:
        """New connections are refused; those that stand are left alone."""
        if self._listener is not None and self._listening is not None:
            self._listening.cancel()
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def accept(self) -> None:
        """New connections are taken (again), on the same port."""
        if self._listener is None:
            self._listener = _bind(self.port)
            self._listener.listen(128)
            self._listening = asyncio.create_task(self._accept(self._listener), name="fault proxy")

    def cut_all(self) -> None:
        """RST to both sides of every connection, now."""
        for link, task in list(self._links.items()):
            link.reset()
            task.cancel()

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = await asyncio.get_running_loop().sock_accept(listener)
            client.setblocking(False)
            self.connections += 1
            link = Link(client, self.up, self.down)
            task = self._links[link] = asyncio.create_task(link.run(self._upstream))
            task.add_done_callback(lambda _, link=link: self._links.pop(link, None))


class Link:
    """One client's connection and the one to the server that belongs to it."""

    def __init__(self, client: socket.socket, up: Leg, down: Leg) -> None:
        self._client = client
        self._server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._server.setblocking(False)
        self._up = up
        self._down = down
        self.ended = False

    async def run(self, upstream: tuple[str, int]) -> None:
        into_the_dark = self._up.swallows
        try:
            if not into_the_dark:
                await asyncio.get_running_loop().sock_connect(self._server, upstream)
            for end in (self._client, self._server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.TaskGroup() as legs:
                legs.create_task(Pump(self._up, self._client, self._server, self._end).run())
                if not into_the_dark:
                    legs.create_task(Pump(self._down, self._server, self._client, self._end).run())
        except* (OSError, _Cut):
            self.reset()  # a side that breaks breaks the other one too
        finally:
            self.close()

    def _end(self, how: str) -> None:
        if how == "reset":
            self.reset()
        else:
            self.close()

    def reset(self) -> None:
        self._finish(linger_zero=True)

    def close(self) -> None:
        self._finish(linger_zero=False)

    def _finish(self, *, linger_zero: bool) -> None:
        if self.ended:
            return
        self.ended = True
        loop = asyncio.get_running_loop()
        for end in (self._client, self._server):
            if linger_zero:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            loop.remove_reader(end)
            loop.remove_writer(end)
            end.close()


class _Cut(Exception):
    """The connection was ended on purpose."""


class Pump:
    """Moves one connection's bytes in one direction, with everything that is wrong with the leg."""

    def __init__(
        self, leg: Leg, source: socket.socket, target: socket.socket, end: Callable[[str], None]
    ) -> None:
        self._leg = leg
        self._source = source
        self._target = target
        self._end = end
        self._mute = False
        self._cut: Cut | None = None
        self._left = 0
        """How many bytes may pass before the cut."""

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while piece := await loop.sock_recv(self._source, PIECE_BYTES):
            if self._leg.latency_seconds:
                await asyncio.sleep(self._leg.latency_seconds)
            while piece and not self._is_mute():
                size = self._size_now()
                await self._pass(piece[:size])
                piece = piece[size:]
        if self._is_mute():
            await asyncio.Event().wait()  # not even an end arrives; `cut_all` ends it
        if self._leg.slow_close_seconds:
            await asyncio.sleep(self._leg.slow_close_seconds)
        self._target.shutdown(socket.SHUT_WR)

    def _is_mute(self) -> bool:
        self._mute = self._mute or self._leg.swallows
        return self._mute

    def _size_now(self) -> int:
        size = self._leg.piece_bytes
        if self._leg.bytes_per_second is not None:
            size = min(size, max(1, int(self._leg.bytes_per_second / STEPS_PER_SECOND)))
        return size

    async def _pass(self, piece: bytes) -> None:
        if self._leg.cut is not self._cut:
            self._cut = self._leg.cut
            self._left = self._cut.after if self._cut else 0
        cut = self._cut
        if cut is not None:
            piece = piece[: self._left]
        if piece:
            await asyncio.get_running_loop().sock_sendall(self._target, piece)
            self._leg.bytes += len(piece)
        if cut is not None:
            self._left -= len(piece)
            if self._left == 0:
                await self._carry_out(cut)
        await self._wait_after(len(piece))

    async def _wait_after(self, size: int) -> None:
        if self._leg.bytes_per_second is not None:
            await asyncio.sleep(size / self._leg.bytes_per_second)
        elif self._leg.piece_bytes < PIECE_BYTES:
            await asyncio.sleep(0)  # the reader gets a chance to see the pieces one by one

    async def _carry_out(self, cut: Cut) -> None:
        if cut.times is not None:
            cut.times -= 1
            if cut.times == 0 and self._leg.cut is cut:
                self._leg.cut = None
        await _flushed(self._target)
        self._end(cut.how)
        raise _Cut


async def _flushed(end: socket.socket) -> None:
    """Until the far end has everything: a reset throws away what has not been sent yet."""
    deadline = asyncio.get_running_loop().time() + FLUSH_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        waiting = struct.unpack("i", fcntl.ioctl(end, termios.TIOCOUTQ, b"\0\0\0\0"))[0]
        if waiting == 0:
            return
        await asyncio.sleep(0.001)


def _bind(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setblocking(False)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound

"""The stdio transport, from the server's side: the program that started the gateway is its one client.

Standard output stays in blocking mode, because other programs may share it. Data that it does not accept at
once is written in a thread, so that a client that does not read delays nothing but its own messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Final

from dragoman.atomic_write import write_all
from dragoman.gateway.access import LOCAL
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.outbox import NOT_READING, Outbox
from dragoman.transports.inprocess import ServerEnd

AT_ONCE_BYTES: Final = 4096
"""A pipe that is ready takes so much without blocking (POSIX)."""
END_SECONDS: Final = 2.0
"""How long requests may take that are being answered when the client closes its side, and then how long the
last messages may."""


async def serve_stdio(gateway: Gateway, stream: ServerEnd, output: int = 1) -> None:
    """Serves the client until it disconnects. `output`: the descriptor that messages are written to."""
    writer = _Writer(output, stream.shut)
    writing = asyncio.create_task(writer.write_waiting())
    try:
        async with gateway.client(LOCAL, writer.send) as connection:
            while (message := await stream.receive()) is not None:
                connection.receive(message)
            await connection.finish(END_SECONDS)
        writer.outbox.end()
        await asyncio.wait([writing], timeout=END_SECONDS)
    finally:
        writing.cancel()
    if writer.outbox.has_overflowed:
        gateway.disconnected(LOCAL.caller, NOT_READING)


class _Writer:
    def __init__(self, descriptor: int, gone: Callable[[], None]) -> None:
        """`gone` is called when the client cannot be written to any more."""
        self._descriptor = descriptor
        self._gone = gone
        self.outbox = Outbox(keeps_read=False)
        self.outbox.disconnect = gone
        self._waiting = 0
        """Messages that are not written yet."""
        self._given: SimpleQueue[tuple[bytes, asyncio.Future[None]]] | None = None

    def send(self, message: bytes) -> None:
        if not self._waiting and len(message) < AT_ONCE_BYTES and self._is_ready():
            try:
                write_all(self._descriptor, message + b"\n")
            except OSError:
                self._gone()
            return
        self._waiting += 1
        self.outbox.put(message)

    def _is_ready(self) -> bool:
        try:
            return bool(select.select([], [self._descriptor], [], 0)[1])
        except OSError:  # Windows knows only sockets there
            return False

    async def write_waiting(self) -> None:
        """Writes what could not be written at once, until the outbox ends."""
        with contextlib.suppress(OSError):  # the client is gone, or its messages are lost
            try:
                while (message := await self.outbox.get()) is not None:
                    await self._write_in_thread(message + b"\n")
                    self._waiting = self.outbox.waiting_count
            finally:
                self._gone()

    async def _write_in_thread(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if self._given is None:
            self._given = SimpleQueue()
            # A daemon: one that the client keeps waiting does not keep the gateway from ending.
            Thread(target=self._run, args=(self._given, loop), daemon=True, name="stdout").start()
        done: asyncio.Future[None] = loop.create_future()
        self._given.put((data, done))
        await done

    def _run(
        self,
        given: SimpleQueue[tuple[bytes, asyncio.Future[None]]],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        while True:
            data, done = given.get()
            problem: OSError | None = None
            try:
                write_all(self._descriptor, data)
            except OSError as error:
                problem = error
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_finish, done, problem)


def _finish(done: asyncio.Future[None], problem: OSError | None) -> None:
    if done.done():
        return
    if problem is None:
        done.set_result(None)
    else:
        done.set_exception(problem)

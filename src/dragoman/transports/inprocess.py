"""The transport to a server in the same process: two connected ends.

Messages are delivered in the next iteration of the event loop, never inside `send`, so neither side can
re-enter the other; those of a server that sends very many at once, in several iterations. Closing one end
closes the other. A server is any object with a `serve` coroutine; `sdk_objects.py` adapts objects of the
official SDK and of FastMCP. `standard_streams` is the end of stdio for such a server in a process of
its own.
"""

from __future__ import annotations

import asyncio
import math
import os
import stat
import sys
from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Final, Protocol, runtime_checkable

from dragoman.errors import StartFailed
from dragoman.transports.base import About, OneLink, Receiver, Sink
from dragoman.transports.lines import LineFramer
from dragoman.transports.pacing import TURN_SECONDS, clock

END_GRACE_SECONDS = 0.5
"""How long a server may take to finish after the pair was closed."""
STDIN_LIMIT_BYTES: Final = 64 * 1024 * 1024


@runtime_checkable
class InProcessServer(Protocol):
    async def serve(self, end: ServerEnd) -> None:
        """Reads and answers messages until the end is closed."""
        ...


class ServerEnd:
    """The server's end of the pair."""

    def __init__(self, sink: Receiver, *, turn_seconds: float = TURN_SECONDS) -> None:
        """`turn_seconds`: how long messages of the server are delivered in one iteration of the loop."""
        self._loop = asyncio.get_running_loop()
        self._sink: Receiver | None = sink
        self._turn_seconds = turn_seconds
        self._outbox: deque[Callable[[Receiver], None]] = deque()
        """Calls of the sink that are not made yet."""
        self._is_due = False
        self._inbox: deque[bytes] = deque()
        self._wake = asyncio.Event()

    async def receive(self) -> bytes | None:
        """The next message from the host; None once the pair is closed."""
        while not self._inbox:
            if self._sink is None:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._inbox.popleft()

    def send(self, message: bytes) -> None:
        if not isinstance(message, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a message must be bytes, not {type(message).__name__}")
        self._queue(lambda sink: sink.received(message))

    def close(self, cause: str = "it closed the connection") -> None:
        """Closes the pair from the server's side, after what was sent before."""

        def disconnect(sink: Receiver) -> None:
            self.shut()
            sink.lost(cause)

        self._queue(disconnect)

    def put(self, message: bytes) -> None:
        self._inbox.append(message)
        self._wake.set()

    def shut(self) -> None:
        self._sink = None
        self._outbox.clear()
        self._wake.set()

    def _queue(self, what: Callable[[Receiver], None]) -> None:
        if self._sink is not None:
            self._outbox.append(what)
            self._deliver_soon()

    def _deliver_soon(self) -> None:
        if self._outbox and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        end = clock() + self._turn_seconds
        try:
            while self._outbox and self._sink is not None and clock() < end:
                self._outbox.popleft()(self._sink)
        finally:
            self._is_due = False
            self._deliver_soon()


class InProcessTransport(OneLink):
    def __init__(self, server: str, served: InProcessServer) -> None:
        self._server = server
        self._served = served
        self._end: ServerEnd | None = None
        self._task: asyncio.Task[None] | None = None

    async def open(self, sink: Sink) -> None:
        if self._task is not None:
            raise StartFailed(self._server, "start", "this pair was already opened")
        self._end = ServerEnd(sink)
        self._task = asyncio.create_task(self._serve(self._end), name=f"in-process server {self._server}")

    def send(self, message: bytes, about: About | None = None) -> None:
        end = self._end
        if end is None or self._task is None or self._task.done():
            raise ConnectionError("the server is gone")
        asyncio.get_running_loop().call_soon(end.put, message)

    @property
    def congested(self) -> bool:
        return False

    async def drained(self) -> None:
        return

    async def close(self, *, graceful: bool = False) -> None:
        if self._end is not None:
            self._end.shut()
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=END_GRACE_SECONDS)
            self._task.cancel()
            await asyncio.wait([self._task], timeout=END_GRACE_SECONDS)

    async def _serve(self, end: ServerEnd) -> None:
        try:
            await self._served.serve(end)
        except BaseException as error:  # border: whatever a server's code raises ends only its own pair
            end.close(f"it failed with {_words_of(error)}")
            if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
                raise
        else:
            end.close("it ended")


def _words_of(error: BaseException) -> str:
    try:
        return ": ".join(filter(None, (type(error).__name__, str(error))))
    except Exception:  # border: an error that cannot be shown
        return type(error).__name__


async def standard_streams() -> ServerEnd:
    """This process's standard input and output as a server's end."""
    end, loop = ServerEnd(_Output(), turn_seconds=math.inf), asyncio.get_running_loop()
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or sys.stdin.isatty():
        await loop.connect_read_pipe(lambda: _Input(end), sys.stdin.buffer)
    else:  # a file, or /dev/null: event loops cannot wait for these, and their data is available at once
        Thread(target=_read_file, args=(sys.stdin.fileno(), _Input(end), loop), daemon=True).start()
    return end


def _read_file(descriptor: int, receiver: _Input, loop: asyncio.AbstractEventLoop) -> None:
    while data := os.read(descriptor, 65536):
        loop.call_soon_threadsafe(receiver.data_received, data)
    loop.call_soon_threadsafe(receiver.connection_lost, None)


class _Input(asyncio.Protocol):
    def __init__(self, end: ServerEnd) -> None:
        self._end = end
        self._framer = LineFramer(end.put, lambda _head, _tail: True, limit_bytes=STDIN_LIMIT_BYTES)

    def data_received(self, data: bytes) -> None:
        self._framer.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._framer.end()
        self._end.shut()


class _Output:
    def received(self, message: bytes) -> None:
        sys.stdout.buffer.write(message + b"\n")
        sys.stdout.buffer.flush()

    def lost(self, cause: str) -> None:
        return

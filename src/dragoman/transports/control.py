"""The transport to servers in an embedding program, reached by control messages to that program.

`ControlChannel` is the interface that the program offers, `LineControlChannel` an implementation over two
line streams for programs that run Dragoman as a child process. Messages are not interpreted. A failure of one
message is reported for that message only; a line that cannot be understood is passed on or ignored and never
ends the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.cleaning import one_line
from dragoman.errors import Unreachable
from dragoman.surrogates import as_written, replace_lone_surrogates
from dragoman.transports.base import About, OneLink, Sink, TransportFailure
from dragoman.transports.lines import Flood, LineFramer
from dragoman.transports.pacing import TURN_SECONDS, clock

UNDER_WAY_LIMIT: Final = 1024
"""The maximum number of messages that the program has not answered; more wait."""
CLOSE_SECONDS: Final = 1.0
READ_BYTES: Final = 256 * 1024
LINES_AT_ONCE: Final = 64
"""How many lines are delivered between two checks of the time."""
UNREAD_BYTES: Final = 4 * 1024 * 1024
"""The bytes of answers to the program after which `pump` waits until the program has read them."""
NOT_READ: Final = "the program no longer reads its messages"


class ControlFailed(Exception):
    """A message failed; `failure` says why."""

    def __init__(self, failure: TransportFailure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


class ServerLink(Protocol):
    """The program's side of the connection of its server. To be called from the host's event loop."""

    def push(self, message: bytes) -> None:
        """Delivers a message that the server sends on its own."""
        ...

    def disconnect(self, cause: str) -> None:
        """Reports that the server has disconnected."""
        ...


class ControlChannel(Protocol):
    """The interface that an embedding program implements."""

    async def mcp_message(self, server: str, message: bytes) -> bytes | None:
        """Passes a message to the program's server; returns the reply, or None if the message needs none.

        Cancelled when the reply is no longer needed. Raises `ControlFailed`, or anything, if it fails.
        """
        ...

    def attach(self, server: str, link: ServerLink) -> None:
        """Registers this link for messages of the server. ConnectionError if the program has ended."""
        ...

    def detach(self, server: str, link: ServerLink) -> None:
        """Unregisters the link. Does nothing if another one is attached meanwhile."""
        ...


class ControlTransport(OneLink):
    def __init__(self, server: str, channel: ControlChannel) -> None:
        self._server = server
        self._channel = channel
        self._sink: Sink | None = None
        """None once the end has been reported or requested: nothing is delivered after that."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests: dict[int, asyncio.Task[None]] = {}
        self._room = asyncio.Event()
        self._room.set()

    @property
    def wants_about(self) -> bool:
        return True  # so that a message that fails can be named

    async def open(self, sink: Sink) -> None:
        try:
            self._channel.attach(self._server, self)
        except ConnectionError as error:
            raise Unreachable(self._server, "connect", str(error)) from None
        self._sink = sink

    def send(self, message: bytes, about: About | None = None) -> None:
        if self._sink is None:
            raise ConnectionError("the connection is closed")
        request_id = about.request_id if about else None
        # Each in a task, because a reply may take long. Tasks start in order, so messages keep theirs.
        task = asyncio.create_task(self._exchange(message, request_id))
        self._tasks.add(task)
        if request_id is not None:
            self._requests[request_id] = task
        task.add_done_callback(lambda task: self._done(task, request_id))
        if self.congested:
            self._room.clear()

    @property
    def congested(self) -> bool:
        return len(self._tasks) >= UNDER_WAY_LIMIT

    async def drained(self) -> None:
        await self._room.wait()

    def abandon(self, request_id: int) -> bool:
        if task := self._requests.get(request_id):
            task.cancel()
        return False

    async def close(self, *, graceful: bool = False) -> None:
        if self._stop() is not None:
            self._channel.detach(self._server, self)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=CLOSE_SECONDS)

    def push(self, message: bytes) -> None:
        # In the next iteration of the loop, as for a reply, so that the two keep their order.
        asyncio.get_running_loop().call_soon(self._deliver, message)

    def disconnect(self, cause: str) -> None:
        asyncio.get_running_loop().call_soon(self._end, cause)

    def _end(self, cause: str) -> None:
        if sink := self._stop():
            sink.lost(one_line(cause, 500))

    def _stop(self) -> Sink | None:
        sink, self._sink = self._sink, None
        self._room.set()
        return sink

    def _deliver(self, message: bytes) -> None:
        if self._sink is not None:
            self._sink.received(message)

    async def _exchange(self, message: bytes, request_id: int | None) -> None:
        try:
            reply = await self._channel.mcp_message(self._server, message)
        except ControlFailed as failure:
            self._fail(request_id, failure.failure)
        except Exception as error:  # border: an exception of the program's code fails only this message
            self._fail(
                request_id, TransportFailure("broken", one_line(f"{type(error).__name__}: {error}", 200))
            )
        else:
            if reply is not None:
                self._deliver(reply)

    def _fail(self, request_id: int | None, failure: TransportFailure) -> None:
        if self._sink is not None:
            self._sink.failed(request_id, failure)

    def _done(self, task: asyncio.Task[None], request_id: int | None) -> None:
        self._tasks.discard(task)
        if request_id is not None and self._requests.get(request_id) is task:
            del self._requests[request_id]
        if not self.congested:
            self._room.set()


# The implementation over lines.


class LineWriter(Protocol):
    """The part of `asyncio.StreamWriter` that is needed."""

    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...


class LineControlChannel:
    """Control messages as lines of JSON: sent to the writer, and received from the program through `feed` or
    `pump`.

    `on_other` is called with every other line: the stream may carry more than the messages of servers.
    """

    def __init__(
        self, writer: LineWriter, *, limit_bytes: int, on_other: Callable[[bytes], None] | None = None
    ) -> None:
        self._writer = writer
        self._is_closing: Callable[[], bool] = getattr(writer, "is_closing", lambda: False)
        self._unread_bytes = 0
        self._on_other = on_other
        self._framer = LineFramer(self._line, self._oversized, limit_bytes)
        self._limit_bytes = limit_bytes
        self._links: dict[str, ServerLink] = {}
        self._waiters: dict[str, asyncio.Future[bytes]] = {}
        self._numbers = itertools.count(1)
        # A unique prefix: an id that occurs in a server's text is then never mistaken for one of these.
        self._prefix = f"mcp-{os.urandom(3).hex()}-"
        self._ended: str | None = None

    async def pump(self, reader: asyncio.StreamReader) -> None:
        """Reads the program's stream to its end, as long as the program reads the answers."""
        cause = "the program closed its stream"
        try:
            while self._ended is None and (data := await reader.read(READ_BYTES)):
                await self._feed_in_turns(data)
                await self._answers_read()
        except OSError as error:
            cause = f"the program's stream broke: {error.strerror or type(error).__name__}"
        finally:
            self.end(cause)

    def feed(self, data: bytes) -> None:
        """Takes data that was read from the program, all at once. `pump` lets other work run meanwhile."""
        try:
            self._framer.feed(data)
        except Flood:
            self._end_flood()

    async def _feed_in_turns(self, data: bytes) -> None:
        try:
            lines, rest = self._framer.split(data)
            over = clock() + TURN_SECONDS
            for first in range(0, len(lines), LINES_AT_ONCE):
                if clock() > over:
                    await asyncio.sleep(0)
                    over = clock() + TURN_SECONDS
                if self._ended is not None:
                    return
                self._framer.deliver(lines[first : first + LINES_AT_ONCE])
            self._framer.keep(rest)
        except Flood:
            self._end_flood()

    async def _answers_read(self) -> None:
        if self._unread_bytes > UNREAD_BYTES and not self._is_closing():
            self._unread_bytes = 0
            with contextlib.suppress(ConnectionError):  # what the program still sends is read
                await self._writer.drain()

    def _end_flood(self) -> None:
        self.end("the program sends data without a line end")

    def end(self, cause: str = "the program closed its stream") -> None:
        """Reports the end of the program's stream."""
        if self._ended is not None:
            return
        self._framer.end()
        self._ended = cause
        for request_id in list(self._waiters):
            self._fail(request_id, TransportFailure("broken", cause))
        links, self._links = self._links, {}
        for link in links.values():
            link.disconnect(cause)

    def attach(self, server: str, link: ServerLink) -> None:
        if self._ended is not None:
            raise ConnectionError(self._ended)
        self._links[server] = link

    def detach(self, server: str, link: ServerLink) -> None:
        if self._links.get(server) is link:
            del self._links[server]

    async def mcp_message(self, server: str, message: bytes) -> bytes | None:
        if self._ended is not None:
            raise ControlFailed(TransportFailure("broken", self._ended, may_have_run=False))
        request_id = f"{self._prefix}{next(self._numbers)}"
        waiter: asyncio.Future[bytes] | None = None
        if _wants_reply(message):
            self._waiters[request_id] = waiter = asyncio.get_running_loop().create_future()
        try:
            await self._send(mcp_request(request_id, server, message))
            return None if waiter is None else await waiter
        finally:
            self._waiters.pop(request_id, None)

    async def _send(self, line: bytes) -> None:
        if self._is_closing():
            raise ControlFailed(TransportFailure("broken", NOT_READ, may_have_run=False))
        self._writer.write(line + b"\n")
        try:
            await self._writer.drain()
        except ConnectionError:
            raise ControlFailed(TransportFailure("broken", NOT_READ)) from None

    def _line(self, line: bytes) -> None:
        readable = line
        try:
            read = _read_line(line)
        except _UNREADABLE:
            readable = replace_lone_surrogates(line) or line
            read = _read_line_or_none(readable)
        match read:
            case _Answer():
                self._answered(read, line, readable)
            case _Request(request=_Message(server_name=server, message=message)):
                self._pushed(read.request_id, server, as_written(bytes(message), line, readable))
            case _:
                self._pass_on(line)

    def _pass_on(self, line: bytes) -> None:
        if self._on_other is not None:
            self._on_other(line)

    def _answered(self, answer: _Answer, line: bytes, readable: bytes) -> None:
        response = answer.response
        if response.request_id not in self._waiters:
            if not response.request_id.startswith(self._prefix):
                self._pass_on(line)
        elif response.subtype == "error":
            cause = response.error if isinstance(response.error, str) else "no reason given"
            self._fail(
                response.request_id, TransportFailure("broken", f"the program says: {one_line(cause, 500)}")
            )
        else:
            self._resolve(response.request_id, response.response, line, readable)

    def _resolve(self, request_id: str, payload: Raw, line: bytes, readable: bytes) -> None:
        try:
            reply = msgspec.json.decode(bytes(payload), type=_Payload).mcp_response
        except _UNREADABLE:
            self._fail(
                request_id, TransportFailure("malformed", "the program's answer holds no mcp_response")
            )
            return
        waiter = self._waiters.pop(request_id)
        if not waiter.done():
            waiter.set_result(as_written(bytes(reply), line, readable))

    def _fail(self, request_id: str, failure: TransportFailure) -> None:
        waiter = self._waiters.pop(request_id, None)
        if waiter is not None and not waiter.done():
            waiter.set_exception(ControlFailed(failure))

    def _pushed(self, request_id: str, server: str, message: bytes) -> None:
        if link := self._links.get(server):
            link.push(message)
            answer: dict[str, Any] = {"subtype": "success", "request_id": request_id, "response": {}}
        else:
            error = "no server of that name is connected"
            answer = {"subtype": "error", "request_id": request_id, "error": error}
        if self._ended is None and not self._is_closing():
            line = msgspec.json.encode({"type": "control_response", "response": answer}) + b"\n"
            self._unread_bytes += len(line)
            self._writer.write(line)

    def _oversized(self, head: bytes, tail: bytes) -> bool:
        mentioned = {found.decode() for found in _REQUEST_ID.findall(head + b"\n" + tail)}
        owners = mentioned & self._waiters.keys()
        for request_id in owners:
            cause = f"the reply is larger than the limit of {self._limit_bytes} bytes"
            self._fail(request_id, TransportFailure("too-large", cause))
        return bool(owners)


class _Message(Struct, tag_field="subtype", tag="mcp_message"):
    server_name: str
    message: Raw


class _Request(Struct, tag_field="type", tag="control_request"):
    request_id: str
    request: _Message


class _Response(Struct):
    request_id: str
    subtype: str = "success"
    response: Raw = Raw(b"null")
    error: Any = None


class _Answer(Struct, tag_field="type", tag="control_response"):
    response: _Response


class _Payload(Struct):
    mcp_response: Raw


class _Envelope(Struct):
    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET


_REQUEST_ID: Final = re.compile(rb'"request_id"\s*:\s*"([ -!#-\[\]-~]{1,64})"')
# msgspec raises RecursionError on deep nesting and UnicodeDecodeError on invalid UTF-8 inside a string.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LINES: Final = msgspec.json.Decoder(_Request | _Answer)


def _read_line(line: bytes) -> _Request | _Answer:
    return _LINES.decode(line)


def _read_line_or_none(line: bytes) -> _Request | _Answer | None:
    try:
        return _read_line(line)
    except _UNREADABLE:
        return None


def _wants_reply(message: bytes) -> bool:
    """A request has both an id and a method; notifications and answers lack one of them."""
    try:
        envelope = msgspec.json.decode(replace_lone_surrogates(message) or message, type=_Envelope)
    except _UNREADABLE:
        return False
    return envelope.id is not UNSET and envelope.method is not UNSET


def mcp_request(request_id: str, server: str, message: bytes) -> bytes:
    """The line, without its end, that carries a message to the program's server."""
    # Line ends can only be between the parts of JSON, where a space is equivalent.
    carried = Raw(message.replace(b"\r", b" ").replace(b"\n", b" "))
    request = {"subtype": "mcp_message", "server_name": server, "message": carried}
    return msgspec.json.encode({"type": "control_request", "request_id": request_id, "request": request})

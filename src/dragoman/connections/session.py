"""A conversation with one server: requests that end, one way or another.

I own: deadlines, cancellation and what becomes of requests when the link ends. The peer correlates,
the driver spells, the transport carries. I guarantee that every request returns or raises no later
than its deadline (a second more, to learn why a far end is gone), and that giving one up disturbs no
other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Raw

from dragoman.connections.deadlines import Deadlines
from dragoman.connections.inbound import answer
from dragoman.errors import CallTimeout, ConnectionLost
from dragoman.protocol import Era
from dragoman.transports.base import Details, Transport
from dragoman.wire.codec import encode_notification
from dragoman.wire.messages import MessageId
from dragoman.wire.peer import Peer, ProgressCallback

CAUSE_WAIT_SECONDS: Final = 1.0

_Deadline = tuple["asyncio.Future[Raw]", str, float, bool]
"""Whom to tell, of which method, after how long, and whether the server is to know."""


class Driver(Protocol):
    """How an era spells requests."""

    @property
    def era(self) -> Era: ...
    @property
    def servers_may_ask(self) -> bool: ...
    @property
    def accepts_batches(self) -> bool: ...
    @property
    def revision(self) -> str: ...
    def encode(
        self, request_id: str, method: str, params: Mapping[str, Any] | None, wants_progress: bool
    ) -> bytes: ...
    def encode_cancel(self, request_id: str, reason: str) -> bytes: ...


class SessionObserver(Protocol):
    """Who is told of what happens outside requests."""

    def notified(self, method: str, params: Raw) -> None: ...
    def logged(self, level: str, text: str) -> None: ...
    def ended(self, cause: str) -> None: ...


class Session:
    def __init__(
        self,
        server: str,
        transport: Transport,
        driver: Driver,
        observer: SessionObserver,
        *,
        limit_bytes: int,
    ) -> None:
        self.server = server
        self._transport = transport
        self._observer = observer
        # A prefix of its own: an id that merely occurs in a server's text is then never taken for ours.
        self._peer = Peer(server, self, limit_bytes=limit_bytes, id_prefix=f"d{os.urandom(3).hex()}-")
        self._loop = asyncio.get_running_loop()
        self._deadlines = Deadlines[_Deadline](self._loop, self._expired)
        self._unsent: set[str] = set()
        """Requests that wait for room: nobody needs to be told when they are given up."""
        self.received = self._peer.receive
        """What the transport calls with every message."""
        self._lost_cause: str | None = None
        self._ended = asyncio.Event()
        self.use(driver)

    def use(self, driver: Driver) -> None:
        """Speaks as this driver from now on."""
        self._driver = driver
        self._peer.accepts_batches = driver.accepts_batches

    @property
    def driver(self) -> Driver:
        return self._driver

    @property
    def lost_cause(self) -> str | None:
        """Why the link ended; None while it stands."""
        return self._lost_cause

    @property
    def ignored(self) -> Mapping[str, int]:
        """How many messages were dropped, by kind."""
        return self._peer.ignored

    @property
    def noise(self) -> str:
        """The newest output that was not a message."""
        return "\n".join(self._peer.noise)

    def details(self) -> Details:
        return self._transport.details()

    async def open(self) -> None:
        await self._transport.open(self)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float,
        on_progress: ProgressCallback | None = None,
        courtesy_cancel: bool = True,
    ) -> Raw:
        """The raw result, or one of the errors under `CallError`."""
        if self._lost_cause is not None:
            raise ConnectionLost(self.server, self._lost_cause, may_have_run=False)
        future: asyncio.Future[Raw] = self._loop.create_future()
        request_id = self._peer.open_request(future, on_progress)
        self._deadlines.set(request_id, timeout_seconds, (future, method, timeout_seconds, courtesy_cancel))
        try:
            message = self._driver.encode(request_id, method, params, on_progress is not None)
            if self._transport.congested:
                await self._wait_for_room(request_id, future)
            if not future.done():
                self._transport.send(message)
            return await future
        except ConnectionError as error:
            self._peer.forget(request_id)
            cause = await self._why_gone() or str(error)
            raise ConnectionLost(self.server, cause, may_have_run=False) from None
        finally:
            self._deadlines.clear(request_id)
            # Still awaited here only if the caller was cancelled, or if it could not be encoded.
            if self._peer.forget(request_id) and courtesy_cancel and future.cancelled():
                self._cancel_remotely(request_id, "the caller gave up")

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._send_quietly(encode_notification(method, params))

    async def close(self) -> None:
        self.end("the connection was closed")
        await self._transport.close()

    def end(self, cause: str) -> None:
        """Fails what waits; nothing can be sent after this."""
        if self._lost_cause is None:
            self._lost_cause = cause
            self._ended.set()
            self._deadlines.close()
            self._peer.fail_all(
                lambda request_id: ConnectionLost(
                    self.server, cause, may_have_run=request_id not in self._unsent
                )
            )

    async def _why_gone(self) -> str | None:
        """The far end takes nothing more; the transport is about to say why."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CAUSE_WAIT_SECONDS):
                await self._ended.wait()
        return self._lost_cause

    async def _wait_for_room(self, request_id: str, future: asyncio.Future[Raw]) -> None:
        self._unsent.add(request_id)
        room = asyncio.ensure_future(self._transport.drained())
        try:
            await asyncio.wait((room, future), return_when=asyncio.FIRST_COMPLETED)
        finally:
            room.cancel()
            self._unsent.discard(request_id)

    def _expired(self, request_id: str, what: _Deadline) -> None:
        future, method, seconds, courtesy_cancel = what
        if self._peer.forget(request_id) and not future.done():
            was_sent = request_id not in self._unsent
            future.set_exception(CallTimeout(self.server, method, seconds, may_have_run=was_sent))
            if courtesy_cancel and was_sent:
                self._cancel_remotely(request_id, "the time limit passed")

    def _cancel_remotely(self, request_id: str, reason: str) -> None:
        self._send_quietly(self._driver.encode_cancel(request_id, reason), although_congested=True)

    def _send_quietly(self, message: bytes, *, although_congested: bool = False) -> None:
        # What a server can make us say without end is dropped while it does not listen; what is bounded
        # by our own requests is not.
        if self._lost_cause is None and (although_congested or not self._transport.congested):
            try:
                self._transport.send(message)
            except ConnectionError:
                return

    # What the transport delivers.

    def oversized(self, head: bytes, tail: bytes) -> bool:
        return self._peer.receive_oversized(head, tail)

    def lost(self, cause: str) -> None:
        self.end(cause)
        self._observer.ended(cause)

    # What the peer reports.

    def notified(self, method: str, params: Raw) -> None:
        self._observer.notified(method, params)

    def asked(self, request_id: MessageId, method: str, params: Raw) -> None:
        if self._driver.servers_may_ask:
            self._send_quietly(answer(request_id, method))
        else:
            self._observer.logged(
                "warning", f"it sent the request {method[:200]}, which this era forbids; ignored"
            )

    def faulted(self, kind: str, sample: str) -> None:
        self._observer.logged(
            "warning", f"{kind} from the server, ignored: {sample}" if sample else f"{kind}, ignored"
        )

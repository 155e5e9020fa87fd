"""The interface of all transports (`Transport`), and of the receiver of their messages (`Sink`).

A transport carries whole messages and does not interpret them. `open` either succeeds or raises
`ConnectError`. After it, `lost` is called at most once, when the connection ends although `close` was not
called; it is never called after `close`. Where each request has its own connection, as over HTTP, a single
request can fail while the others continue: `failed` reports that. A new transport also needs a row in
`transport_types.py` and a maker in `connections/factory.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct

from dragoman.errors import ConnectError, SignInNeeded, Unreachable

CONNECT_HINT: Final = "Are the host and port right? With TLS, the url begins with https:// or wss://."
"""The hint for a failure without details, such as an end before any answer."""


ADDRESS_QUESTION: Final = "is the URL right?"
ADDRESS_HINT: Final = "A page for people is not an MCP server: its url often ends in /mcp or /sse."


class Details(Struct, frozen=True):
    """Details about the peer for people, as far as the transport knows them."""

    pid: int | None = None
    exit_code: int | None = None
    stderr_tail: str = ""
    left_behind: tuple[str, ...] = ()
    """Processes that could not be ended: pid and command of each."""


class About(Struct, frozen=True):
    """Information about a message that a transport with `wants_about` is given in addition to the bytes."""

    request_id: int | None = None
    """The request id; None: a notification or an answer, which has no reply."""
    method: str = ""
    headers: Mapping[str, str] = {}
    """Headers that repeat parts of the message, as the protocol's era requires."""
    timeout_seconds: float = 0.0
    """The time limit of the request; a transport's own limit is never shorter."""
    is_long_lived: bool = False
    """Whether the response is a stream that stays open: its end does not mean that the link is lost."""


FailureKind = Literal["unreachable", "broken", "timeout", "status", "malformed", "too-large"]


class TransportFailure(Struct, frozen=True):
    """Why one message failed."""

    kind: FailureKind
    """`unreachable`: no connection was made. `broken`: it ended early. `status`: an HTTP error status."""
    cause: str
    may_have_run: bool = True
    """Whether the peer may have processed the message nevertheless."""
    hint: str | None = None
    status: int | None = None
    retry_after_seconds: float | None = None
    challenge: str | None = None
    """`WWW-Authenticate` of a 401 or 403."""
    body: bytes = b""
    """The beginning of the body of an error status; it may contain a JSON-RPC error."""
    was_sent: bool = True
    """Whether the message was sent to the peer, if the kind is `status`."""
    is_long_lived: bool = False
    """See `About`."""
    in_session: bool = False
    """Whether the message named a session that the server had opened."""


def connect_error(server: str, failure: TransportFailure, phase: str = "connect") -> ConnectError:
    """The failure as an error of connecting."""
    if failure.status in (401, 403):
        refused = SignInNeeded(server, phase, failure.cause, hint=failure.hint, status=failure.status)
        refused.challenge = failure.challenge
        return refused
    hint = failure.hint or (CONNECT_HINT if failure.kind == "broken" else None)
    error = Unreachable(server, phase, failure.cause, hint=hint, status=failure.status)
    error.retry_after_seconds = failure.retry_after_seconds
    return error


class Receiver(Protocol):
    def received(self, message: bytes) -> None:
        """Delivers one whole message."""
        ...

    def lost(self, cause: str) -> None:
        """Reports that the connection ended although `close` was not called."""
        ...


class Sink(Receiver, Protocol):
    def received_on(self, request_id: int, message: bytes) -> None:
        """Delivers one whole message from the stream, or the body, of the reply to this request."""
        ...

    def oversized(self, head: bytes, tail: bytes) -> bool:
        """Reports a message over the limit: its head, and its tail once it is received (empty until then).

        Returns whether the request that the message belongs to is known; if so, it is not reported again.
        """
        ...

    def awaits(self, request_id: int) -> bool:
        """Whether the reply to this request is still to come."""
        ...

    def unrequested(self, count: int) -> None:
        """Reports an amount of input that is not a message: comments of a stream, pings, empty frames."""
        ...

    def stderr(self, data: bytes) -> None:
        """Delivers stderr output of a process; empty at its end."""
        ...

    def failed(self, request_id: int | None, failure: TransportFailure) -> None:
        """Reports that a message failed; the id is None if it was not a request. Ignored after the reply was
        received."""
        ...


class Transport(Protocol):
    @property
    def wants_about(self) -> bool:
        """Whether `send` needs to know more than the bytes."""
        ...

    @property
    def sends_message_headers(self) -> bool:
        """Whether the headers in `About` reach the server."""
        ...

    async def open(self, sink: Sink) -> None: ...

    def send(self, message: bytes, about: About | None = None) -> None:
        """Sends a message without waiting. Raises ConnectionError after the peer has disconnected."""
        ...

    @property
    def congested(self) -> bool:
        """Whether the peer reads more slowly than this side writes; then await `drained` before sending
        more."""
        ...

    async def drained(self) -> None: ...

    def abandon(self, request_id: int) -> bool:
        """Reports that the reply is no longer needed. Returns whether this alone informs the server."""
        ...

    def negotiated(self, revision: str) -> None:
        """Reports that the handshake is done and this revision is used."""
        ...

    async def close(self, *, graceful: bool = False) -> None:
        """Ends the connection in bounded time, whatever the peer does. May be called twice.

        `graceful`: the peer has processed requests, and may finish its work first.
        """
        ...

    def skip_stop_wait(self) -> None:
        """Ends the wait for the peer to finish, in a running or a later `close`."""
        ...

    def details(self) -> Details: ...


class OneLink:
    """The common part of transports with one connection for all messages."""

    @property
    def sends_message_headers(self) -> bool:
        return False

    @property
    def wants_about(self) -> bool:
        return False

    def abandon(self, request_id: int) -> bool:
        return False

    def negotiated(self, revision: str) -> None:
        return

    def skip_stop_wait(self) -> None:
        return

    def details(self) -> Details:
        return Details()

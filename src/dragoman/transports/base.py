"""The interface of all transports (`Transport`), and of the receiver of their messages (`Sink`).

A transport carries whole messages and does not interpret them. `open` either succeeds or raises
`ConnectError`. After it, `lost` is called at most once, when the connection ends although `close` was not
called; it is never called after `close`. Where each request has a connection of its own, as over HTTP, a
single request can fail while the others go on: `failed` reports that. A new transport also needs a row in
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
    """What a person wants to know of the far end, as far as the transport knows."""

    pid: int | None = None
    exit_code: int | None = None
    stderr_tail: str = ""
    left_behind: tuple[str, ...] = ()
    """Processes that could not be ended: pid and command of each."""


class About(Struct, frozen=True):
    """What a transport with `wants_about` is given about a message besides its bytes."""

    request_id: int | None = None
    """None: a notification or an answer, which has no reply."""
    method: str = ""
    headers: Mapping[str, str] = {}
    """What the protocol's era wants repeated where headers are carried."""
    timeout_seconds: float = 0.0
    """The time limit of the request; a transport's own limit is never shorter."""
    is_long_lived: bool = False
    """A stream that is meant to stay open: its end says little about the link."""


FailureKind = Literal["unreachable", "broken", "timeout", "status", "malformed", "too-large"]


class TransportFailure(Struct, frozen=True):
    """Why one message failed."""

    kind: FailureKind
    """`unreachable`: no connection was made. `broken`: it ended early. `status`: HTTP said no."""
    cause: str
    may_have_run: bool = True
    """Whether the far end may have acted on it all the same."""
    hint: str | None = None
    status: int | None = None
    retry_after_seconds: float | None = None
    challenge: str | None = None
    """`WWW-Authenticate` of a 401 or 403."""
    body: bytes = b""
    """The beginning of what came with a status; it may hold an error of the protocol."""
    was_sent: bool = True
    """Whether the far end was asked at all, where the kind is `status`."""
    is_long_lived: bool = False
    """See `About`."""
    in_session: bool = False
    """Whether the message named a session that the server had opened."""


def connect_error(server: str, failure: TransportFailure, phase: str = "connect") -> ConnectError:
    """The same failure, met while connecting."""
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
        """One whole message."""
        ...

    def lost(self, cause: str) -> None:
        """The connection ended although `close` was not called."""
        ...


class Sink(Receiver, Protocol):
    def received_on(self, request_id: int, message: bytes) -> None:
        """One whole message that came on the stream, or in the body, of the reply to this request."""
        ...

    def oversized(self, head: bytes, tail: bytes) -> bool:
        """A message over the limit: its head, and its tail once it came (empty until then).

        Returns whether it is clear whom the message concerns; if so, it is not reported again.
        """
        ...

    def awaits(self, request_id: int) -> bool:
        """Whether the reply to this request is still to come."""
        ...

    def unrequested(self, count: int) -> None:
        """So much input came that is not a message: comments of a stream, pings, empty frames."""
        ...

    def stderr(self, data: bytes) -> None:
        """What a process has written to stderr; empty at its end."""
        ...

    def failed(self, request_id: int | None, failure: TransportFailure) -> None:
        """A message failed; None if it was not a request. Ignored once the reply has come."""
        ...


class Transport(Protocol):
    @property
    def wants_about(self) -> bool:
        """Whether `send` needs to know more than the bytes."""
        ...

    @property
    def carries_headers(self) -> bool:
        """Whether the headers in `About` reach the server."""
        ...

    async def open(self, sink: Sink) -> None: ...

    def send(self, message: bytes, about: About | None = None) -> None:
        """Hands a message over without waiting. Raises ConnectionError once the far end is gone."""
        ...

    @property
    def congested(self) -> bool:
        """Whether the far end reads more slowly than we write; then await `drained` before more."""
        ...

    async def drained(self) -> None: ...

    def abandon(self, request_id: int) -> bool:
        """The reply is no longer needed. Returns whether this alone informs the server."""
        ...

    def negotiated(self, revision: str) -> None:
        """The handshake is done and this revision is spoken from now on."""
        ...

    async def close(self, *, graceful: bool = False) -> None:
        """Ends it, bounded in time whatever the far end does. May be called twice.

        `graceful`: the far end has worked for us, and may finish that first.
        """
        ...

    def skip_stop_wait(self) -> None:
        """Ends any wait for the far end to finish, now or in a `close` to come."""
        ...

    def details(self) -> Details: ...


class OneLink:
    """The part of a transport with one link for everything, where no request travels by itself."""

    @property
    def carries_headers(self) -> bool:
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

"""Decides what the failure of one message means: the error for the caller, and the state of the connection.
Pure.

`session.py` acts on the decisions.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import structs

from dragoman.cleaning import one_line
from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectError,
    ConnectionLost,
    ConnectTimeout,
    DragomanError,
    HandshakeFailed,
    HttpError,
    MalformedReply,
    MessageTooLarge,
    RemoteError,
)
from dragoman.names import shell_quoted
from dragoman.protocol import INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, Era
from dragoman.surrogates import replace_lone_surrogates
from dragoman.transports.base import TransportFailure, connect_error
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ErrorObject, ErrorReply

TERMINAL_LIMIT: Final = 3
"""Terminal errors in a row after which the server is reconnected."""

Verdict = Literal["keep", "renew", "session", "unauthorized"]
"""The connection stays · is replaced · its session has ended · stays, but its credentials may be invalid."""

_SESSION_CODES: Final = (-32000, -32001, INVALID_REQUEST)
_SESSION_WORDS: Final = re.compile(
    r"session[^.]{0,80}(not found|expired|terminated|invalid|unknown|gone|closed|does not exist)"
    r"|(no valid|invalid|unknown|missing|expired) session|not initialized",
    re.IGNORECASE,
)


def error_in(body: bytes) -> ErrorObject | None:
    """The protocol's own error in the body of an HTTP answer that is no success, whatever id it carries."""
    try:
        return decode_as(ErrorReply, replace_lone_surrogates(body) or body).error if body else None
    except Unreadable:
        return None


def error_of(server: str, failure: TransportFailure, limit_bytes: int) -> CallError:
    """The error for the caller of the message."""
    error = error_in(failure.body)
    if error is not None and not is_session_loss(failure) and failure.status not in (401, 403, 429):
        return RemoteError(server, error.code, error.message, error.data, status=failure.status)
    match failure.kind:
        case "status" if not is_session_loss(failure):
            return HttpError(
                server,
                failure.status or 0,
                failure.cause,
                may_have_run=failure.may_have_run,
                retry_after_seconds=failure.retry_after_seconds,
                challenge=failure.challenge,
                hint=_scopes_hint(server, failure) or failure.hint,
                was_sent=failure.was_sent,
            )
        case "malformed":
            return MalformedReply(server, failure.cause, hint=failure.hint)
        case "too-large":
            return MessageTooLarge(server, limit_bytes)
        case _:
            return ConnectionLost(
                server,
                failure.cause,
                may_have_run=failure.may_have_run,
                hint=failure.hint,
                was_refused=failure.kind == "status",
            )


def _scopes_hint(server: str, failure: TransportFailure) -> str | None:
    """What to do where the token lacks scopes (RFC 6750 §3.1)."""
    if failure.status != 403 or "insufficient_scope" not in (failure.challenge or ""):
        return None
    from dragoman.auth.challenges import oauth_parameters, scopes_in

    scopes = " ".join(scopes_in(oauth_parameters([failure.challenge or ""]).get("scope", "")))
    asked = f"It asks for the scopes {one_line(scopes, 200)}" if scopes else "It asks for more scopes"
    return f"{asked}. To grant them, sign in again: `dragoman mcp login {shell_quoted(server)}`."


def connect_error_of(error: CallError, server: str, phase: str = "connect") -> ConnectError:
    """The same, met while connecting."""
    status = error.status if isinstance(error, HttpError | RemoteError) else None
    cause = error.cause if isinstance(error, HttpError | ConnectionLost) else str(error)
    failure = TransportFailure(
        "broken" if isinstance(error, ConnectionLost) else "status", cause, hint=error.hint, status=status
    )
    if isinstance(error, HttpError):
        challenge, pause_seconds = error.challenge, error.retry_after_seconds
        failure = structs.replace(failure, challenge=challenge, retry_after_seconds=pause_seconds)
    return connect_error(server, failure, phase)


def list_failed(server: str, error: DragomanError | Unreadable) -> ConnectError:
    """The error of a server that declares tools, but returns no list of them."""
    phase = "tools/list"
    if isinstance(error, CallTimeout):
        cause = f"no answer within {error.timeout_seconds:.3g} s"
        return ConnectTimeout(server, phase, cause, hint="Raise MCP_TIMEOUT if it is merely slow.")
    if isinstance(error, HttpError):
        return connect_error_of(error, server, phase)
    cause = error.detail if isinstance(error, Unreadable | MalformedReply) else str(error)
    hint = error.hint if isinstance(error, DragomanError) else "This is a fault of the server."
    return HandshakeFailed(server, phase, cause, hint=hint or "Its log may say more.")


def is_session_loss(failure: TransportFailure) -> bool:
    """Whether a 404 or 400 means that the session has ended and the client must initialize again. Servers
    report it in several ways."""
    if failure.status not in (400, 404) or not failure.in_session:
        return False
    error = error_in(failure.body)
    if failure.status == 404:
        # Without a body, or with one for people, the session is what was not found.
        return error is None or error.code in _SESSION_CODES
    return error is not None and names_lost_session(error.code, error.message)


def names_lost_session(code: int, message: str) -> bool:
    return code in _SESSION_CODES and _SESSION_WORDS.search(message[:500]) is not None


def why_renewed(era: Era, error: RemoteError) -> str | None:
    """Why an error that came as a reply means that the client has to reconnect; None if it does not.

    Only for a request that cannot have been carried out, because the call is made again: it was invalid, or
    HTTP refused it. Errors of tools may mention sessions of their own.
    """
    code, message = error.remote_code, error.remote_message
    if era == "legacy":
        lost = code == INVALID_REQUEST and names_lost_session(code, message)
        return "its session has ended" if lost else None
    # Restarted as something older: it wants a session, of which the modern era knows nothing.
    wants_session = error.status == 400 and code in _SESSION_CODES and "session" in message[:500].lower()
    if wants_session or code == UNSUPPORTED_PROTOCOL_VERSION:
        return "it no longer speaks the protocol it spoke"
    return None


class Health:
    """The recent failures of a link."""

    def __init__(self) -> None:
        self._terminal = 0
        """Terminal errors since the last success."""
        self._expired = 0
        """Requests that timed out since then; their tools may merely be slow."""

    def good(self) -> None:
        self._terminal = self._expired = 0

    def expired(self) -> bool:
        """A request timed out; whether that has happened so often that the link is in doubt."""
        self._expired += 1
        return self._expired % TERMINAL_LIMIT == 0

    def after(self, failure: TransportFailure) -> Verdict:
        match failure.kind:
            case "unreachable":
                return "renew"
            case "broken" | "timeout" if not failure.is_long_lived:
                self._terminal += 1
                return "renew" if self._terminal >= TERMINAL_LIMIT else "keep"
            case "status":
                return self._after_status(failure)
            case _:
                return "keep"

    def _after_status(self, failure: TransportFailure) -> Verdict:
        if is_session_loss(failure):
            return "session"
        # A 403, with or without a challenge, is about the request, not about the credentials.
        return "unauthorized" if failure.status == 401 else "keep"

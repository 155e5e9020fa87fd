"""The table that decides what happens after a call failed. Pure.

A call is repeated only when that is safe: it never reached the server, the server says that it did not accept
it, or the tool declares that repeating is safe, its server is trusted by the person, and the setting allows
it. In all other cases the error says that the call may have run. The first row that applies decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    HttpError,
    RemoteError,
)
from dragoman.protocol import HEADER_MISMATCH, URL_ELICITATION_REQUIRED


class Changed(Exception):
    """The tool, or its server's entry, is another than the one that was judged: the call starts again."""


UNSENT_LIMIT: Final = 3
"""How often a call that never reached its server is tried."""
URL_ATTEMPT_LIMIT: Final = 4
"""How often a call is tried that needs a person to open a URL first: once, and once more after each of three
visits."""
BUSY_LIMIT: Final = 4
"""How often a call is tried at a server that answers 429 (too many requests)."""
FIRST_WAIT_SECONDS: Final = 1.0
LEAST_WAIT_SECONDS: Final = 0.1
"""The shortest wait, also where the server asks for none."""
LONGEST_WAIT_SECONDS: Final = 60.0
"""The longest wait. If a server asks for a longer one, the call fails with an error that states it."""

Reaction = Literal[
    "give up", "repeat", "wait and retry", "list again and retry", "ask the person to open the URL and retry"
]


class RecoveryRow(NamedTuple):
    """One kind of failure."""

    what: str
    fits: Callable[[CallError], bool]
    reaction: Reaction = "give up"
    attempts: int = 1
    """How often the call is made at most, the first time included."""
    if_retry_safe: bool = False
    """Whether the call may have run, so that it is repeated only if its tool is retry-safe."""
    then: str = ""
    """The reason in the error of a call that is not repeated, in a few words."""


def _status(*numbers: int) -> Callable[[CallError], bool]:
    return lambda error: isinstance(error, HttpError) and error.status in numbers


def _remote(code: int, status: int | None = None) -> Callable[[CallError], bool]:
    def fits(error: CallError) -> bool:
        if not isinstance(error, RemoteError) or error.remote_code != code:
            return False
        return status is None or error.status == status

    return fits


def _lost(*, may_have_run: bool, was_refused: bool | None = None) -> Callable[[CallError], bool]:
    def fits(error: CallError) -> bool:
        if not isinstance(error, ConnectionLost) or error.may_have_run != may_have_run:
            return False
        return was_refused is None or error.was_refused == was_refused

    return fits


def _any(*kinds: type[CallError]) -> Callable[[CallError], bool]:
    return lambda error: isinstance(error, kinds)


TABLE: Final[tuple[RecoveryRow, ...]] = (
    RecoveryRow(
        "the session was lost, and the server refused the call for it",
        _lost(may_have_run=False, was_refused=True),
        "repeat",
        2,
        then="the error",
    ),
    RecoveryRow(
        "the connection was lost before the call was sent",
        _lost(may_have_run=False),
        "repeat",
        UNSENT_LIMIT,
        then="the error",
    ),
    RecoveryRow(
        "the connection or its stream was lost after the call was sent",
        _lost(may_have_run=True),
        "repeat",
        2,
        if_retry_safe=True,
        then="the error: it may have run",
    ),
    RecoveryRow(
        "-32020: headers do not fit, the tool's definition has changed",
        _remote(HEADER_MISMATCH, status=400),
        "list again and retry",
        2,
        then="the server's error",
    ),
    RecoveryRow(
        "-32042: a URL must be opened first",
        _remote(URL_ELICITATION_REQUIRED),
        "ask the person to open the URL and retry",
        URL_ATTEMPT_LIMIT,
        then="the server's error",
    ),
    RecoveryRow(
        "any other JSON-RPC error: -32700, -32600, -32601, -32602, -32603, the server's own",
        _any(RemoteError),
        then="the server's error",
    ),
    RecoveryRow(
        "401, after credentials that can be renewed were renewed once",
        _status(401),
        then="the error; the server needs a sign-in",
    ),
    RecoveryRow("403: not allowed, or not with these credentials", _status(403), then="the error"),
    RecoveryRow("429: too many requests", _status(429), "wait and retry", BUSY_LIMIT, then="the error"),
    RecoveryRow(
        "5xx",
        _status(*range(500, 1000)),
        "wait and retry",
        3,
        if_retry_safe=True,
        then="the error: it may have run",
    ),
    RecoveryRow("any other status", _any(HttpError), then="the error"),
    RecoveryRow("no answer in time", _any(CallTimeout), then="the error: it may have run"),
    RecoveryRow(
        "anything else: a reply that cannot be read, or is too large", _any(CallError), then="the error"
    ),
)


class Step(NamedTuple):
    reaction: Reaction
    wait_seconds: float = 0.0


GIVE_UP: Final = Step("give up")


def react(error: CallError, *, attempt: int, retry_safe: bool) -> Step:
    """What to do now. `attempt`: how often the call has been tried, this one included."""
    row = next(row for row in TABLE if row.fits(error))
    if error.is_final or attempt >= row.attempts or (row.if_retry_safe and not retry_safe):
        return GIVE_UP
    if row.reaction != "wait and retry":
        return Step(row.reaction)
    asked = error.retry_after_seconds if isinstance(error, HttpError) else None
    wait = FIRST_WAIT_SECONDS * 2 ** (attempt - 1) if asked is None else max(asked, LEAST_WAIT_SECONDS)
    return Step(row.reaction, wait) if wait <= LONGEST_WAIT_SECONDS else GIVE_UP

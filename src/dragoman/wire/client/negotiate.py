"""Decides which era to use with a server, from the answer to the probe. Pure.

Contains the tables of the specification's dual-era algorithms, for stdio and for HTTP.
`connections/handshake.py` sends the probe, waits and restarts the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.protocol import (
    HEADER_MISMATCH,
    LEGACY_REVISIONS,
    MISSING_CLIENT_CAPABILITY,
    MODERN_REVISIONS,
    REVISIONS,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from dragoman.wire.messages import DiscoverResult

AUTO: Final = "auto"
LEGACY: Final = "legacy"
OLDER: Final = "sse"
"""The verdict for a server that supports only HTTP+SSE, the transport before Streamable HTTP."""


# The result of the probe.


class Discovered(Struct, frozen=True):
    result: DiscoverResult


class ProbeRefused(Struct, frozen=True):
    code: int
    message: str = ""
    data: Any = None


class Exited(Struct, frozen=True):
    """The process ended instead of answering."""


class Silent(Struct, frozen=True):
    """No answer within the probe's time limit, or one that cannot be read."""


class ProbeRejected(Struct, frozen=True):
    """The server refused the probe with an HTTP status 4xx and without a JSON-RPC error."""

    status: int


ProbeAnswer = Discovered | ProbeRefused | Exited | Silent | ProbeRejected


# What to do next.


class Probe(Struct, frozen=True):
    revision: str


class SpeakModern(Struct, frozen=True):
    revision: str
    discovery: DiscoverResult | None = None


class SpeakLegacy(Struct, frozen=True):
    offer: str
    respawn: bool = False
    """The process ended after the probe: it is started again, without a probe."""


class GiveUp(Struct, frozen=True):
    cause: str
    hint: str


Step = Probe | SpeakModern | SpeakLegacy | GiveUp


def first_step(protocol: str, remembered: str | None) -> Step:
    """What to do with a fresh process, given the entry's `protocol` and the last verdict for it."""
    if protocol == AUTO:
        knows_legacy = remembered in (LEGACY, OLDER)
        return SpeakLegacy(LEGACY_REVISIONS[0]) if knows_legacy else Probe(MODERN_REVISIONS[0])
    if protocol == LEGACY:
        return SpeakLegacy(LEGACY_REVISIONS[0])
    return Probe(protocol) if protocol in MODERN_REVISIONS else SpeakLegacy(protocol)


def after_probe(answer: ProbeAnswer, *, tried: str, retried: bool, protocol: str = AUTO) -> Step:
    """The next step after an answer to `server/discover`. `retried`: this was already the second probe."""
    step = _judge(answer, tried, retried)
    if protocol != AUTO and isinstance(step, SpeakLegacy):
        return GiveUp(
            f"it does not speak {protocol}, to which this entry is pinned",
            'Set "protocol": "auto" for this server, or a revision it speaks.',
        )
    return step


def _judge(answer: ProbeAnswer, tried: str, retried: bool) -> Step:
    newest_legacy = LEGACY_REVISIONS[0]
    match answer:
        case Discovered(result):
            if revision := newest_mutual(result.supported_versions, MODERN_REVISIONS):
                return SpeakModern(revision, result)
            if revision := newest_mutual(result.supported_versions, LEGACY_REVISIONS):
                return SpeakLegacy(revision)
            return _disjoint(result.supported_versions)
        case ProbeRefused(code, _, data) if code == UNSUPPORTED_PROTOCOL_VERSION:
            supported = supported_in(data)
            if revision := newest_mutual(supported, MODERN_REVISIONS):
                # One retry even with the same revision: some servers refuse the very first request.
                return _disjoint(supported) if retried else Probe(revision)
            if revision := newest_mutual(supported, LEGACY_REVISIONS):
                return SpeakLegacy(revision)
            return _disjoint(supported) if supported else SpeakLegacy(newest_legacy)
        case ProbeRefused(code) if code in (HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY):
            return SpeakModern(tried)
        case Exited():
            return SpeakLegacy(newest_legacy, respawn=True)
        case ProbeRefused() | Silent() | ProbeRejected():
            return SpeakLegacy(newest_legacy)


def is_verdict(status: int) -> bool:
    """Whether an HTTP status in answer to the probe shows the era."""
    return 400 <= status < 500 and status not in (401, 403, 407, 408, 425, 429)


def wants_older_transport(status: int, protocol: str) -> bool:
    """Whether `initialize` was refused in the way of a server that supports only HTTP+SSE."""
    return status in (400, 404, 405) and protocol in (AUTO, LEGACY, LEGACY_REVISIONS[-1])


def newest_mutual(theirs: Sequence[str], ours: Sequence[str]) -> str | None:
    return next((revision for revision in ours if revision in theirs), None)


def supported_in(data: Any) -> list[str]:
    """`data.supported` of an UnsupportedProtocolVersion error, whatever shape it came in."""
    supported: Any = cast("dict[str, Any]", data).get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list):
        return []
    return [item for item in cast("list[Any]", supported) if isinstance(item, str)]


def _disjoint(supported: Sequence[str]) -> GiveUp:
    theirs = ", ".join(supported[:10]) or "no revision it names"
    return GiveUp(
        f"it speaks {theirs}; Dragoman speaks {', '.join(REVISIONS)}", "Update the server or Dragoman."
    )

"""From an open pipe to a server that is understood: the thin, waiting half of negotiation.

I own: sending the probe and `initialize`, and restarting a process that ended on the probe. What an
answer means is decided in `wire/negotiate.py`. I guarantee to end within the time given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dragoman.connections.session import Session
from dragoman.errors import (
    CallTimeout,
    ConnectionLost,
    HandshakeFailed,
    MalformedReply,
    MessageTooLarge,
    RemoteError,
)
from dragoman.protocol import (
    LEGACY_REVISIONS,
    META_SERVER_INFO,
    MODERN_REVISIONS,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.legacy import LegacyDriver
from dragoman.wire.messages import DiscoverResult, Implementation, InitializeResult
from dragoman.wire.modern import ModernDriver
from dragoman.wire.negotiate import (
    AUTO,
    LEGACY,
    Discovered,
    Exited,
    GiveUp,
    Probe,
    ProbeAnswer,
    Refused,
    Silent,
    SpeakLegacy,
    SpeakModern,
    after_probe,
    first_step,
    supported_in,
)

PROBE_SHARE: Final = 1 / 3
"""The probe never takes more than this share of the time allowed for connecting."""

FAULT_OF_SERVER: Final = "This is a fault of the server: update it, or tell its makers."


class Introduction(Struct, frozen=True):
    """What a server says of itself."""

    revision: str
    server_info: Implementation
    capabilities: Mapping[str, Any]
    instructions: str | None


class Handshake:
    def __init__(
        self,
        server: str,
        *,
        protocol: str,
        remembered: str | None,
        client_info: Mapping[str, Any],
        capabilities: Mapping[str, Any],
        probe_seconds: float,
        connect_seconds: float,
        respawn: Callable[[], Awaitable[Session]],
    ) -> None:
        self._server = server
        self._protocol = protocol
        self._remembered = remembered
        self._client = (client_info, capabilities)
        self._probe_seconds = min(probe_seconds, connect_seconds * PROBE_SHARE)
        self._connect_seconds = connect_seconds
        self._respawn = respawn

    async def run(self, session: Session) -> tuple[Session, Introduction]:
        """The session to use (another one if the process had to be restarted) and the introduction."""
        step = first_step(self._protocol, self._remembered)
        if isinstance(step, Probe):
            step = await self._probe(session, step.revision)
        if isinstance(step, SpeakModern):
            return session, _introduction_of(step)
        if isinstance(step, SpeakLegacy):
            if step.respawn:
                await session.close()
                session = await self._respawn()
            return await self._initialize(session, step.offer)
        raise self._given_up(step)

    async def _probe(self, session: Session, revision: str) -> SpeakModern | SpeakLegacy | GiveUp:
        retried = False
        while True:
            session.use(ModernDriver(revision, *self._client))
            answer = await self._discover(session)
            step = after_probe(answer, tried=revision, retried=retried, protocol=self._protocol)
            if not isinstance(step, Probe):
                return step
            revision, retried = step.revision, True

    async def _discover(self, session: Session) -> ProbeAnswer:
        # No courtesy cancel: a legacy server has no use for it before `initialize`.
        try:
            raw = await session.request(
                "server/discover", {}, timeout_seconds=self._probe_seconds, courtesy_cancel=False
            )
            return Discovered(decode_as(DiscoverResult, raw))
        except RemoteError as error:
            return Refused(error.remote_code, error.remote_message, error.remote_data)
        except ConnectionLost:
            return Exited()
        except (CallTimeout, MalformedReply, MessageTooLarge, Unreadable):
            return Silent()

    async def _initialize(self, session: Session, offer: str) -> tuple[Session, Introduction]:
        driver = LegacyDriver(offer, *self._client)
        session.use(driver)
        try:
            # The time limit for connecting is the caller's; `initialize` itself is never cancelled.
            raw = await session.request(
                "initialize",
                driver.opening_params(),
                timeout_seconds=self._connect_seconds,
                courtesy_cancel=False,
            )
        except RemoteError as error:
            if error.remote_code == UNSUPPORTED_PROTOCOL_VERSION and self._protocol == AUTO:
                return session, await self._probe_again(session)
            raise self._refused(error, offer) from None
        except MalformedReply as error:
            raise self._failed(error.detail, FAULT_OF_SERVER) from None
        return session, self._accept(session, raw, offer)

    def _accept(self, session: Session, raw: Raw, offer: str) -> Introduction:
        try:
            result = decode_as(InitializeResult, raw)
        except Unreadable as problem:
            cause = f"its answer to initialize cannot be read ({problem.detail})"
            raise self._failed(cause, FAULT_OF_SERVER) from None
        revision = result.protocol_version
        pinned = self._protocol not in (AUTO, LEGACY)
        if revision not in LEGACY_REVISIONS or (pinned and revision != self._protocol):
            raise self._failed(
                f"it wants to speak {revision}, but {offer} was offered",
                f"Dragoman speaks {', '.join(LEGACY_REVISIONS)} with such servers.",
            )
        session.use(LegacyDriver(revision, *self._client))
        session.notify("notifications/initialized")
        return Introduction(
            revision, result.server_info or Implementation(), result.capabilities or {}, result.instructions
        )

    async def _probe_again(self, session: Session) -> Introduction:
        """`initialize` was refused as a modern server would: it was only slow to answer the probe."""
        step = await self._probe(session, MODERN_REVISIONS[0])
        if isinstance(step, SpeakModern):
            return _introduction_of(step)
        if isinstance(step, GiveUp):
            raise self._given_up(step)
        raise self._failed("it refuses both the legacy handshake and the modern probe", "Update the server.")

    def _refused(self, error: RemoteError, offer: str) -> HandshakeFailed:
        cause = f"it answered initialize at {offer} with error {error.remote_code}: {error.remote_message}"
        if supported := supported_in(error.remote_data):
            cause += f"; it speaks {', '.join(supported[:10])}"
            return self._failed(cause, f'Set "protocol" to "{AUTO}" or to a revision that it speaks.')
        return self._failed(cause, "Its log may say more; run its command by hand to see it.")

    def _given_up(self, step: GiveUp) -> HandshakeFailed:
        return self._failed(step.cause, step.hint)

    def _failed(self, cause: str, hint: str) -> HandshakeFailed:
        return HandshakeFailed(self._server, "handshake", cause, hint=hint)


def _introduction_of(step: SpeakModern) -> Introduction:
    found = step.discovery
    if found is None:
        return Introduction(step.revision, Implementation(), {}, None)
    info = found.server_info
    if info is None and found.meta is not None:
        info = _implementation(found.meta.get(META_SERVER_INFO))
    return Introduction(step.revision, info or Implementation(), found.capabilities or {}, found.instructions)


def _implementation(value: Any) -> Implementation | None:
    try:
        return msgspec.convert(value, Implementation)
    except msgspec.ValidationError:
        return None

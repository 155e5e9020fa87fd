"""The handshake: sends the probe and `initialize`, and restarts a process that ended because of the probe.

`wire/client/negotiate.py` decides what an answer means. The handshake ends within the time limit that is
passed in.

A probe without an answer in time is not withdrawn: `initialize` is sent, and an answer to the probe is still
used until the handshake is done. The end of the probe's time limit alone is never stored as a verdict. Over
stdio, a server that answers `initialize` and not the probe, which was sent before, has ignored the probe:
that is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from dragoman.cleaning import for_model, one_line
from dragoman.connections.failures import connect_error_of
from dragoman.connections.session import Session
from dragoman.connections.target import ConnectionContext, ConnectionTarget
from dragoman.errors import (
    CallTimeout,
    ConnectError,
    ConnectionLost,
    HandshakeFailed,
    HttpError,
    MalformedReply,
    MessageTooLarge,
    RemoteError,
    SignInNeeded,
    Unreachable,
)
from dragoman.protocol import (
    LEGACY_REVISIONS,
    META_SERVER_INFO,
    METHOD_NOT_FOUND,
    MODERN_REVISIONS,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from dragoman.transports.base import ADDRESS_QUESTION
from dragoman.wire.client.legacy import LegacyDriver
from dragoman.wire.client.modern import ModernDriver
from dragoman.wire.client.negotiate import (
    AUTO,
    LEGACY,
    OLDER,
    Discovered,
    Exited,
    GiveUp,
    Probe,
    ProbeAnswer,
    ProbeRefused,
    ProbeRejected,
    Silent,
    SpeakLegacy,
    SpeakModern,
    after_probe,
    first_step,
    is_verdict,
    supported_in,
    wants_older_transport,
)
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import DiscoverResult, Implementation, InitializeResult

NAME_CHARACTERS: Final = 1000
"""The most characters of a server's own name, title or version that are kept."""
PROBE_SHARE: Final = 1 / 3
"""The probe never takes more than this share of the time allowed for connecting."""
LATE_SECONDS: Final = 0.5
"""How long an unanswered probe is awaited after `initialize` was answered: replies may come out of order."""

_REFUSALS_OF_MODERN_SERVERS: Final = (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND)
"""How a server that speaks only the modern era may answer `initialize`."""
FAULT_OF_SERVER: Final = "This is a fault of the server: update it, or report it to its developers."


class HandshakeResult(Struct, frozen=True):
    """How a server describes itself."""

    revision: str
    server_info: Implementation
    capabilities: Mapping[str, Any]
    instructions: str | None


class Handshake:
    def __init__(
        self,
        server: str,
        target: ConnectionTarget,
        context: ConnectionContext,
        capabilities: Mapping[str, Any],
        remembered: str | None,
        respawn: Callable[[bool], Awaitable[Session]],
    ) -> None:
        """`remembered`: the verdict of an earlier handshake. `respawn` makes a new session, on the older
        transport if asked to."""
        seconds = context.settings.seconds
        self._server = server
        self._protocol = target.protocol
        self._has_older = target.older_transport is not None
        self._client = (context.client_info, capabilities)
        self._connect_seconds = seconds("MCP_TIMEOUT")
        self._probe_seconds = min(seconds("DRAGOMAN_PROBE_TIMEOUT_MS"), self._connect_seconds * PROBE_SHARE)
        self._remembered = remembered
        self._respawn = respawn
        self._is_certain = True
        self._late: asyncio.Task[ProbeAnswer] | None = None
        """The probe, while it is unanswered and its time is over."""
        self.verdict: str | None = None
        """What is worth remembering of this server; None if nothing is certain."""
        self.is_from_timeout = False
        """Whether the verdict rests on a probe that was not answered in time: the server may only have been
        slow, so that the verdict is kept until the host ends and no longer."""

    async def run(self, session: Session) -> tuple[Session, HandshakeResult]:
        """The session to use (another one if the process had to be restarted), and how the server describes
        itself."""
        try:
            return await self._run(session)
        finally:
            self._forget_probe()

    async def _run(self, session: Session) -> tuple[Session, HandshakeResult]:
        step = first_step(self._protocol, self._remembered)
        if isinstance(step, Probe):
            step = await self._probe(session, step.revision)
        if isinstance(step, SpeakModern):
            self.verdict = "modern"
            return session, _introduction_of(step)
        if isinstance(step, SpeakLegacy):
            if step.respawn:
                session = await self._restart(session, older=False)
            return await self._initialize(session, step.offer, may_fall_back=self._has_older)
        raise self._given_up(step)

    async def _restart(self, session: Session, *, older: bool) -> Session:
        await session.close()
        return await self._respawn(older)

    async def _probe(self, session: Session, revision: str) -> SpeakModern | SpeakLegacy | GiveUp:
        retried = False
        while True:
            session.use(ModernDriver(revision, *self._client))
            answer = await self._discover(session)
            if isinstance(answer, Silent) and session.fails_singly:
                # It may be the network's: worth an attempt, but not worth remembering.
                self._is_certain = False
                if self._protocol != AUTO:
                    raise Unreachable(
                        self._server,
                        "handshake",
                        f"no answer in {revision}, to which this entry is pinned",
                        hint='Is the server slow? Otherwise set "protocol": "auto" for it.',
                    )
            step = after_probe(answer, tried=revision, retried=retried, protocol=self._protocol)
            if not isinstance(step, Probe):
                return step
            revision, retried = step.revision, True

    async def _discover(self, session: Session) -> ProbeAnswer:
        """The answer to the probe; `Silent` if there is none in its time, and then it is awaited further."""
        self._forget_probe()
        self.is_from_timeout = False
        self._late = asking = asyncio.create_task(self._answer_to_probe(session))
        # Where nothing else may be spoken, there is nothing to try instead.
        await asyncio.wait([asking], timeout=self._probe_seconds if self._protocol == AUTO else None)
        if not asking.done():
            self.is_from_timeout = True
            return Silent()
        self._late = None
        return asking.result()

    def _forget_probe(self) -> None:
        late, self._late = self._late, None
        if late is not None:
            # So that asyncio does not report an unread error.
            late.add_done_callback(lambda done: done.cancelled() or done.exception())
            late.cancel()

    async def _answer_to_probe(self, session: Session) -> ProbeAnswer:
        # No courtesy cancel: a legacy server has no use for it before `initialize`.
        try:
            raw = await session.request(
                "server/discover", {}, timeout_seconds=self._connect_seconds, send_cancelled=False
            )
            return Discovered(decode_as(DiscoverResult, raw))
        except RemoteError as error:
            if error.status is not None and not is_verdict(error.status):
                raise connect_error_of(error, self._server) from None
            return ProbeRefused(error.remote_code, error.remote_message, error.remote_data)
        except ConnectionLost as error:
            if session.fails_singly:
                raise connect_error_of(error, self._server) from None
            return Exited()
        except HttpError as error:
            if not is_verdict(error.status):
                raise connect_error_of(error, self._server) from None
            return ProbeRejected(error.status)
        except CallTimeout:
            self.is_from_timeout = True
            return Silent()
        except MessageTooLarge as error:
            if error.method is not None:
                raise self._failed(str(error), FAULT_OF_SERVER) from None
            return Silent()
        except (MalformedReply, Unreadable):
            return Silent()

    async def _initialize(
        self, session: Session, offer: str, *, may_fall_back: bool
    ) -> tuple[Session, HandshakeResult]:
        driver = LegacyDriver(offer, *self._client)
        session.use(driver)
        # The time limit for connecting is the caller's; `initialize` itself is never cancelled.
        asking = session.request(
            "initialize",
            driver.opening_params(),
            timeout_seconds=self._connect_seconds,
            send_cancelled=False,
        )
        try:
            raw = await asking if self._late is None else await self._first_answer(session, asking)
        except RemoteError as error:
            if may_fall_back and wants_older_transport(error.status or 0, self._protocol):
                return await self._fall_back(session, offer, self._refused(error, offer))
            if error.remote_code in _REFUSALS_OF_MODERN_SERVERS and self._protocol == AUTO:
                return session, await self._probe_again(session, self._refused(error, offer))
            raise self._refused(error, offer) from None
        except MessageTooLarge as error:
            raise self._failed(str(error), error.hint or FAULT_OF_SERVER) from None
        except MalformedReply as error:
            hint = error.hint if ADDRESS_QUESTION in error.detail else None
            raise self._failed(error.detail, hint or FAULT_OF_SERVER) from None
        except HttpError as error:
            if may_fall_back and wants_older_transport(error.status, self._protocol):
                return await self._fall_back(session, offer, connect_error_of(error, self._server))
            raise connect_error_of(error, self._server) from None
        except ConnectionLost as error:
            if session.fails_singly:
                raise connect_error_of(error, self._server) from None
            raise
        if isinstance(raw, SpeakModern):
            return session, self._speak_modern(session, raw)
        if self.verdict is None and self._is_certain:
            self.verdict = LEGACY
        return session, self._accept(session, raw, offer)

    async def _first_answer(self, session: Session, asking: Coroutine[Any, Any, Raw]) -> Raw | SpeakModern:
        """The answer to `initialize`, unless the probe is answered meanwhile, and in the modern era."""
        late, opening = self._late, asyncio.create_task(asking)
        assert late is not None
        try:
            await asyncio.wait((late, opening), return_when=asyncio.FIRST_COMPLETED)
            if opening.done() and opening.exception() is None:
                await asyncio.wait([late], timeout=LATE_SECONDS)
            if late.done() and (step := self._late_step(late)) is not None:
                return step
            return await opening
        finally:
            opening.add_done_callback(lambda done: done.cancelled() or done.exception())
            opening.cancel()

    def _late_step(self, late: asyncio.Task[ProbeAnswer]) -> SpeakModern | None:
        """What an answer to the probe means that came after its time; None: `initialize` decides."""
        self._late = None
        answer = Silent() if late.cancelled() or late.exception() is not None else late.result()
        if isinstance(answer, Silent | Exited):
            return None
        self._is_certain, self.is_from_timeout = True, False
        step = after_probe(answer, tried=MODERN_REVISIONS[0], retried=True, protocol=self._protocol)
        return step if isinstance(step, SpeakModern) else None

    def _speak_modern(self, session: Session, step: SpeakModern) -> HandshakeResult:
        session.use(ModernDriver(step.revision, *self._client))
        self.verdict = "modern"
        return _introduction_of(step)

    async def _fall_back(
        self, session: Session, offer: str, refusal: ConnectError
    ) -> tuple[Session, HandshakeResult]:
        """The server refused a POST at its address: perhaps that is where its stream of events is."""
        try:
            session = await self._restart(session, older=True)
        except SignInNeeded:
            raise
        except ConnectError:
            # It is no such server either; its first answer is the better reason.
            raise refusal from None
        self.verdict = OLDER
        return await self._initialize(session, offer, may_fall_back=False)

    def _accept(self, session: Session, raw: Raw, offer: str) -> HandshakeResult:
        try:
            result = decode_as(InitializeResult, raw)
        except Unreadable as problem:
            cause = f"its answer to initialize cannot be read ({problem.detail})"
            raise self._failed(cause, FAULT_OF_SERVER) from None
        revision = result.protocol_version
        pinned = self._protocol not in (AUTO, LEGACY)
        if revision not in LEGACY_REVISIONS or (pinned and revision != self._protocol):
            raise self._failed(
                f"it answered with protocol revision {revision}, but {offer} was requested",
                f"Dragoman speaks {', '.join(LEGACY_REVISIONS)} with such servers.",
            )
        session.use(LegacyDriver(revision, *self._client))
        session.notify("notifications/initialized")
        return _result_of(revision, result.server_info, result.capabilities, result.instructions)

    async def _probe_again(self, session: Session, refusal: HandshakeFailed) -> HandshakeResult:
        """`initialize` was refused as a modern server would: it was only slow to answer the probe."""
        step = await self._probe(session, MODERN_REVISIONS[0])
        if isinstance(step, SpeakModern):
            self.verdict = "modern"
            return _introduction_of(step)
        if isinstance(step, GiveUp):
            raise self._given_up(step)
        # It refuses both; its first answer is the better reason.
        raise refusal

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


def _introduction_of(step: SpeakModern) -> HandshakeResult:
    found = step.discovery
    if found is None:
        return HandshakeResult(step.revision, Implementation(), {}, None)
    info = found.server_info
    if info is None and found.meta is not None:
        info = _implementation(found.meta.get(META_SERVER_INFO))
    return _result_of(step.revision, info, found.capabilities, found.instructions)


def _result_of(
    revision: str,
    info: Implementation | None,
    capabilities: dict[str, Any] | None,
    instructions: str | None,
) -> HandshakeResult:
    """The result with cleaned texts: programs show them, or give them to a model (`ServerStatus`)."""
    info = info or Implementation()
    shown = Implementation(
        one_line(info.name, NAME_CHARACTERS),
        one_line(info.version, NAME_CHARACTERS),
        None if info.title is None else one_line(info.title, NAME_CHARACTERS),
    )
    text = None if instructions is None else for_model(instructions)
    return HandshakeResult(revision, shown, capabilities or {}, text)


def _implementation(value: Any) -> Implementation | None:
    try:
        return msgspec.convert(value, Implementation)
    except msgspec.ValidationError:
        return None

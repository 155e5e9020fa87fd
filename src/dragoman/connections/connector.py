"""One attempt to connect to a server: transport, handshake, and errors with details.

Keeps one time limit over all steps and falls back to the older transport. `connection.py` decides about
further attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from dragoman import events
from dragoman.cleaning import one_line, visible
from dragoman.clock import Clock
from dragoman.connections.connect_limiter import ConnectLimiter
from dragoman.connections.eras import EraMemory
from dragoman.connections.factory import MakeTransport
from dragoman.connections.handshake import Handshake, Introduction
from dragoman.connections.reachability import TcpProbe
from dragoman.connections.session import Session, SessionObserver
from dragoman.errors import (
    ConnectError,
    ConnectionLost,
    ConnectTimeout,
    SignInNeeded,
    StartFailed,
    Unreachable,
)
from dragoman.protocol import LEGACY_REVISIONS
from dragoman.settings import Settings
from dragoman.transport_types import Place
from dragoman.wire.legacy import LegacyDriver
from dragoman.wire.negotiate import OLDER

_SLOW = {
    False: "Raise MCP_TIMEOUT if it is merely slow, or run its command by hand to see why.",
    True: "Raise MCP_TIMEOUT if it is merely slow, or ask its operator.",
}


class ConnectionContext(Struct, frozen=True):
    """What the connections of a host share."""

    settings: Settings
    clock: Clock
    bus: events.EventBus
    eras: EraMemory
    client_info: Mapping[str, Any]
    limiter: ConnectLimiter


class ConnectionTarget(Struct, frozen=True, kw_only=True):
    """How one server is reached, and when its connection is open."""

    make_transport: MakeTransport
    older_transport: MakeTransport | None = None
    """The transport before Streamable HTTP, for a server that was never updated."""
    protocol: str
    fingerprint: str | None = None
    """Names the entry in the memory of eras; None: nothing is remembered of it."""
    kind: Place = "in-process"
    probe: TcpProbe | None = None
    """Finds out cheaply whether an unreachable server is back."""
    idle_seconds: float | None = None
    """It is stopped when not used for that long, and started at the next use."""
    starts_on_use: bool = False
    """It is not started before its first use."""


class LinkObserver(SessionObserver, Protocol):
    def opened(self, session: Session) -> None:
        """A transport is up; the handshake begins on this session."""
        ...


class Connector:
    def __init__(
        self,
        server: str,
        target: ConnectionTarget,
        context: ConnectionContext,
        observer: LinkObserver,
        capabilities: Mapping[str, Any],
    ) -> None:
        self._server = server
        self._target = target
        self._context = context
        self._observer = observer
        self._capabilities = capabilities
        self._session: Session | None = None
        self.phase = "start"
        """How far it came, in words."""

    async def link(self) -> tuple[Session, Introduction, float]:
        """A session, what the server says of itself, and how many seconds of the time limit are left."""
        seconds = self._context.settings.seconds("MCP_TIMEOUT")
        self.phase = "start"
        self._session = None
        remembered = self._recall()
        try:
            async with asyncio.timeout(seconds) as limit:
                session = await self._open(older=remembered == OLDER)
                handshake = self._handshake(remembered, seconds)
                session, introduction = await handshake.run(session)
                left = (limit.when() or 0) - asyncio.get_running_loop().time()
        except TimeoutError:
            raise self._with_details(self._too_late(f"no answer within {seconds:g} s")) from None
        except ConnectionLost as error:
            raise self.start_failed(error.cause, self._session) from None
        except ConnectError as error:
            if not isinstance(error, Unreachable | SignInNeeded):
                self._forget()
            raise self._with_details(error) from None
        if handshake.verdict is not None and self._target.fingerprint is not None:
            self._context.eras.remember(
                self._target.fingerprint, handshake.verdict, until_end=handshake.is_from_timeout
            )
        session.introduced()
        return session, introduction, left

    def _too_late(self, cause: str) -> ConnectTimeout:
        hint = _SLOW[self._target.kind == "remote"]
        said = self._session.first_noise if self._session is not None else None
        if said is not None and self._target.kind == "local":
            cause = f"it prints text that is not MCP on stdout: {one_line(said, 120)!r}; {cause}"
            hint = "On stdout a server may write MCP messages only; what it logs belongs on stderr."
        return ConnectTimeout(self._server, self.phase, cause, hint=hint)

    def start_failed(self, cause: str, session: Session | None) -> ConnectError:
        self._session = session
        self._forget()
        if self._target.kind == "remote":
            hint = "Its own log may say more."
            return Unreachable(self._server, self.phase, cause, hint=hint)
        hint = (
            "Run its command by hand to see what it needs. If it works there, it may lack a variable: a "
            "server gets PATH, HOME and a few others; `env` in its entry sets more."
        )
        return self._with_details(StartFailed(self._server, self.phase, cause, hint=hint))

    def _handshake(self, remembered: str | None, seconds: float) -> Handshake:
        return Handshake(
            self._server,
            protocol=self._target.protocol,
            remembered=remembered,
            client_info=self._context.client_info,
            capabilities=self._capabilities,
            probe_seconds=self._context.settings.seconds("DRAGOMAN_PROBE_TIMEOUT_MS"),
            connect_seconds=seconds,
            respawn=self._open,
            has_older=self._target.older_transport is not None,
        )

    async def _open(self, older: bool) -> Session:
        make = (
            self._target.older_transport
            if older and self._target.older_transport is not None
            else self._target.make_transport
        )
        driver = LegacyDriver(LEGACY_REVISIONS[0], self._context.client_info, self._capabilities)
        settings = self._context.settings
        session = Session(
            self._server,
            make(),
            driver,
            self._observer,
            limit_bytes=settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"],
            unrequested_per_second=settings["DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND"],
        )
        self._session = session
        try:
            await session.open()
        except BaseException:
            await session.close()
            raise
        self.phase = "handshake"
        self._observer.opened(session)
        return session

    def _recall(self) -> str | None:
        return self._context.eras.recall(self._target.fingerprint) if self._target.fingerprint else None

    def _forget(self) -> None:
        """The failure may come from a stored verdict that no longer holds: the next attempt probes again."""
        if self._target.fingerprint is not None:
            self._context.eras.forget(self._target.fingerprint)

    def _with_details(self, error: ConnectError) -> ConnectError:
        session = self._session
        if session is None:
            return error
        details = session.details()
        if error.exit_code is None:
            error.exit_code = details.exit_code
        if not error.stderr_tail:
            # Some servers complain on stdout, where only messages belong; a time-out quotes that already.
            noise = "" if isinstance(error, ConnectTimeout) else "\n".join(session.noise)
            error.stderr_tail = visible(details.stderr_tail or noise)
        return error

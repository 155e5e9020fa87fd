"""One attempt to connect to a server: transport, handshake, and errors with details.

Keeps one time limit over all steps and falls back to the older transport. `connection.py` decides about
further attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.cleaning import one_line, visible
from dragoman.connections.handshake import Handshake, HandshakeResult
from dragoman.connections.session import Session, SessionEvents
from dragoman.connections.target import ConnectionContext, ConnectionTarget
from dragoman.errors import (
    ConnectError,
    ConnectionLost,
    ConnectTimeout,
    SignInNeeded,
    StartFailed,
    Unreachable,
)
from dragoman.protocol import LEGACY_REVISIONS
from dragoman.wire.client.legacy import LegacyDriver
from dragoman.wire.client.negotiate import OLDER

_SLOW = {
    False: "Raise MCP_TIMEOUT if it is merely slow, or run its command by hand to see why.",
    True: "Raise MCP_TIMEOUT if it is merely slow, or ask its operator.",
}
PROBE_ENDED_IT: Final = "it ended before it answered server/discover; it is started again and sent initialize"


class Connector:
    def __init__(
        self,
        server: str,
        target: ConnectionTarget,
        context: ConnectionContext,
        session_events: SessionEvents,
        on_open: Callable[[Session], None],
        capabilities: Mapping[str, Any],
    ) -> None:
        """`on_open`: a transport is up, and the handshake begins on this session."""
        self._server = server
        self._target = target
        self._context = context
        self._session_events = session_events
        self._on_open = on_open
        self._capabilities = capabilities
        self._session: Session | None = None
        self.phase = "start"
        """The phase reached, for errors."""

    async def link(self) -> tuple[Session, HandshakeResult, float]:
        """A session, how the server describes itself, and how many seconds of the time limit are left."""
        seconds = self._context.settings.seconds("MCP_TIMEOUT")
        self.phase = "start"
        self._session = None
        known = self._target.fingerprint
        remembered = self._context.eras.recall(known) if known else None
        try:
            async with asyncio.timeout(seconds) as limit:
                session = await self._open(older=remembered == OLDER)
                handshake = Handshake(
                    self._server, self._target, self._context, self._capabilities, remembered, self._reopen
                )
                session, handshake_result = await handshake.run(session)
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
        session.handshake_done()
        return session, handshake_result, left

    def _too_late(self, cause: str) -> ConnectTimeout:
        hint = _SLOW[self._target.place == "remote"]
        unparsed = self._session.first_unparsed if self._session is not None else None
        if unparsed is not None and self._target.place == "local":
            cause = f"it prints text that is not MCP on stdout: {one_line(unparsed, 120)!r}; {cause}"
            hint = "On stdout a server may write MCP messages only; what it logs belongs on stderr."
        return ConnectTimeout(self._server, self.phase, cause, hint=hint)

    def start_failed(self, cause: str, session: Session | None) -> ConnectError:
        self._session = session
        self._forget()
        if self._target.place == "remote":
            hint = "Its own log may say more."
            return Unreachable(self._server, self.phase, cause, hint=hint)
        hint = (
            "Run its command by hand to see what it needs. If it works there, it may lack a variable: a "
            "server gets PATH, HOME and a few others; `env` in its entry sets more."
        )
        return self._with_details(StartFailed(self._server, self.phase, cause, hint=hint))

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
            self._session_events,
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
        self._on_open(session)
        return session

    async def _reopen(self, older: bool) -> Session:
        """A new session for the handshake, on the older transport if asked to."""
        if not older:  # otherwise its log would show the output of two processes as that of one
            self._session_events.logged("info", PROBE_ENDED_IT)
        return await self._open(older)

    def _forget(self) -> None:
        """The failure may come from a stored verdict that no longer applies: the next attempt probes
        again."""
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
            unparsed = "" if isinstance(error, ConnectTimeout) else "\n".join(session.unparsed_output)
            error.stderr_tail = visible(details.stderr_tail or unparsed)
        return error

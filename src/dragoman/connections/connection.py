"""One server's live link, owned by one task.

I own: connecting, staying connected and ending, all inside a single owner task. Everybody else only
signals it, so closing in any order, from any task, twice or in the middle of connecting is ordinary.
I guarantee that `close` returns in bounded time and leaves no process and no task behind, and that
nothing a server does raises anywhere but in calls to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Raw, Struct

from dragoman import events
from dragoman.cleaning import one_line, visible
from dragoman.clock import Clock
from dragoman.connections.eras import EraMemory
from dragoman.connections.factory import MakeTransport
from dragoman.connections.handshake import Handshake, Introduction
from dragoman.connections.session import Session
from dragoman.connections.state import (
    Disable,
    Failed,
    Hold,
    Lost,
    Opened,
    Ready,
    ServerState,
    Signal,
    Start,
    next_state,
)
from dragoman.connections.turns import Kind, Turns
from dragoman.errors import (
    ConnectError,
    ConnectionLost,
    ConnectTimeout,
    DragomanError,
    NotConnected,
    StartFailed,
)
from dragoman.protocol import LEGACY_REVISIONS
from dragoman.settings import Settings
from dragoman.transports.base import Details
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.legacy import LegacyDriver
from dragoman.wire.messages import LogParams

CLIENT_CAPABILITIES: Final[Mapping[str, Any]] = {}
LOG_TEXT_LIMIT: Final = 4096


class Surroundings(Struct, frozen=True):
    """What the connections of a host share."""

    settings: Settings
    clock: Clock
    bus: events.EventBus
    eras: EraMemory
    client_info: Mapping[str, Any]
    turns: Turns


class Connection:
    def __init__(
        self,
        name: str,
        make_transport: MakeTransport,
        surroundings: Surroundings,
        *,
        protocol: str,
        fingerprint: str | None,
        prepare: Callable[[Connection, Session, float], Awaitable[None]],
        on_notification: Callable[[Connection, Session, str], None],
        kind: Kind = "in-process",
        held: Hold | Disable | None = None,
        error: DragomanError | None = None,
    ) -> None:
        """`held`: it is listed with this state, and never started; `error` says why, where that is one."""
        self.name = name
        self._make_transport = make_transport
        self._around = surroundings
        self._protocol = protocol
        self._fingerprint = fingerprint
        self._prepare = prepare
        """Run once the handshake is done, before the server counts as connected, within the seconds given:
        fills the catalogue."""
        self._on_notification = on_notification
        self._state = ServerState(since=surroundings.clock.now())
        self._session: Session | None = None
        self._introduction: Introduction | None = None
        self._last_details = Details()
        self._last_ignored: Mapping[str, int] = {}
        self._error = error
        self._owner: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        """Set when the link is to end or has ended by itself."""
        self._settled = asyncio.Event()
        self._kind: Kind = kind
        self._is_held = held is not None
        if held is not None:
            self._state = next_state(self._state, held, surroundings.clock.now())
            self._settled.set()

    # What anyone may ask.

    @property
    def state(self) -> ServerState:
        return self._state

    @property
    def introduction(self) -> Introduction | None:
        return self._introduction

    @property
    def error(self) -> DragomanError | None:
        """Why it failed, as the exception that said so."""
        return self._error

    @property
    def details(self) -> Details:
        return self._session.details() if self._session is not None else self._last_details

    @property
    def ignored(self) -> Mapping[str, int]:
        return self._session.ignored if self._session is not None else self._last_ignored

    def session(self) -> Session:
        """The session to make calls on, or `NotConnected` with the reason."""
        session = self._session
        if session is None or self._state.status != "connected":
            hint = self._error.hint if self._error is not None else None
            raise NotConnected(self.name, self._state.status, self._state.reason, hint=hint)
        return session

    def start(self) -> None:
        """Begins connecting, in a task of its own."""
        if self._owner is None and not self._is_held:
            self._owner = asyncio.create_task(self._own(), name=f"dragoman connection {self.name}")

    async def settled(self) -> None:
        """Returns once connecting has succeeded or failed."""
        await self._settled.wait()

    async def close(self) -> None:
        """Ends the link. Safe from any task, at any moment, any number of times."""
        self._over.set()
        if self._owner is not None:
            # Waiting, not awaiting: cancelling one closer must not cancel the owner's tidying up.
            await asyncio.wait([self._owner])

    # What only the owner does.

    async def _own(self) -> None:
        try:
            await self._live()
        except DragomanError as error:
            self._fail(error)
        except Exception as error:  # border: a bug here must cost this server only, and be seen
            self._fail(StartFailed(self.name, self._phase_in_words(), f"{type(error).__name__}: {error}"))
        finally:
            self._settled.set()
            await self._tidy()

    async def _live(self) -> None:
        connecting = asyncio.create_task(self._connect(), name=f"dragoman connect {self.name}")
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait((connecting, over), return_when=asyncio.FIRST_COMPLETED)
            if connecting.done():
                connecting.result()
                self._settled.set()
                await over
        finally:
            for task in (connecting, over):
                task.cancel()
            # Gathered so that an error nobody will ask for any more counts as seen.
            await asyncio.gather(connecting, over, return_exceptions=True)

    async def _connect(self) -> None:
        async with self._around.turns.taken(self._kind):
            await self._connect_now()

    async def _connect_now(self) -> None:
        seconds = self._around.settings.seconds("MCP_TIMEOUT")
        self._signal(Start())
        try:
            async with asyncio.timeout(seconds) as limit:
                session, introduction = await self._shake_hands(await self._open(), seconds)
                self._introduction = introduction
                if self._fingerprint is not None:
                    self._around.eras.remember(self._fingerprint, session.driver.era)
                remaining = (limit.when() or 0) - asyncio.get_running_loop().time()
        except TimeoutError:
            raise self._with_details(
                ConnectTimeout(
                    self.name,
                    self._phase_in_words(),
                    f"no answer within {seconds:g} s",
                    hint="Raise MCP_TIMEOUT if it is merely slow, or run its command by hand to see why.",
                )
            ) from None
        except ConnectionLost as error:
            raise self._start_failed(error.cause) from None
        except ConnectError as error:
            if self._fingerprint is not None:
                # It may rest on a verdict that no longer holds: the next start finds out anew.
                self._around.eras.forget(self._fingerprint)
            raise self._with_details(error) from None
        await self._prepare(self, session, remaining)
        if session.lost_cause is not None:
            raise self._start_failed(session.lost_cause)
        self._signal(Ready())
        self._around.bus.publish(
            events.ServerConnected(server=self.name, protocol_version=introduction.revision)
        )

    async def _open(self) -> Session:
        driver = LegacyDriver(LEGACY_REVISIONS[0], self._around.client_info, CLIENT_CAPABILITIES)
        limit_bytes = self._around.settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"]
        self._session = Session(self.name, self._make_transport(), driver, self, limit_bytes=limit_bytes)
        await self._session.open()
        self._signal(Opened())
        return self._session

    async def _shake_hands(self, session: Session, seconds: float) -> tuple[Session, Introduction]:
        handshake = Handshake(
            self.name,
            protocol=self._protocol,
            remembered=self._around.eras.recall(self._fingerprint) if self._fingerprint else None,
            client_info=self._around.client_info,
            capabilities=CLIENT_CAPABILITIES,
            probe_seconds=self._around.settings.seconds("DRAGOMAN_PROBE_TIMEOUT_MS"),
            connect_seconds=seconds,
            respawn=self._open,
        )
        return await handshake.run(session)

    async def _tidy(self) -> None:
        session = self._session
        if self._state.status in ("pending", "connected"):
            self._signal(Disable("the connection was closed"))
        if session is not None:
            try:
                await session.close()
            finally:
                self._last_details = session.details()
                self._last_ignored = session.ignored
                if pids := self._last_details.left_behind:
                    self._log("warning", f"it left processes behind that are independent of it: {pids}")
                self._session = None

    def _fail(self, error: DragomanError) -> None:
        self._error = error
        self._signal(Failed(str(error)))
        self._around.bus.publish(events.ServerFailed(server=self.name, reason=str(error), hint=error.hint))

    def _start_failed(self, cause: str) -> ConnectError:
        hint = "Run its command by hand to see what it needs."
        return self._with_details(StartFailed(self.name, self._phase_in_words(), cause, hint=hint))

    def _with_details(self, error: ConnectError) -> ConnectError:
        details = self.details
        if error.exit_code is None:
            error.exit_code = details.exit_code
        if not error.stderr_tail:
            # Some servers complain on stdout, where only messages belong.
            noise = self._session.noise if self._session is not None else ""
            error.stderr_tail = visible(details.stderr_tail or noise)
        return error

    def _phase_in_words(self) -> str:
        return "handshake" if self._state.phase == "handshaking" else "start"

    def _signal(self, signal: Signal) -> None:
        before, self._state = self._state, next_state(self._state, signal, self._around.clock.now())
        if self._state is not before:
            state = self._state
            self._around.bus.publish(
                events.ServerStateChanged(
                    server=self.name, status=state.status, phase=state.phase, reason=state.reason
                )
            )

    def _log(self, level: str, text: str) -> None:
        if self._around.bus.has_listeners:
            line = one_line(text, LOG_TEXT_LIMIT)
            self._around.bus.publish(events.ServerLogged(server=self.name, level=level[:20], text=line))

    # What the session reports.

    def notified(self, method: str, params: Raw) -> None:
        if method == "notifications/message":
            if self._around.bus.has_listeners:
                self._log_message(params)
        elif self._session is not None:
            self._on_notification(self, self._session, method)

    def logged(self, level: str, text: str) -> None:
        self._log(level, text)

    def ended(self, cause: str) -> None:
        cause = one_line(cause, LOG_TEXT_LIMIT)
        if self._state.status == "connected":
            details = self.details
            self._error = ConnectError(
                self.name, "connection", cause, exit_code=details.exit_code, stderr_tail=details.stderr_tail
            )
            self._signal(Lost(cause))
            self._around.bus.publish(events.ServerLost(server=self.name, reason=cause))
            self._over.set()

    def _log_message(self, params: Raw) -> None:
        try:
            message = decode_as(LogParams, params)
        except Unreadable:
            return
        text = message.data if isinstance(message.data, str) else repr(message.data)
        self._log(message.level, text)

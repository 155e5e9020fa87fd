"""The connection to one server. One task, the owner, connects, reconnects and disconnects.

All other tasks only set the wanted state and wait. So enabling, disabling and closing are safe from any task,
in any order, more than once and while connecting; the last request is the one that is carried out. `close`
returns in bounded time and leaves no process and no task. A server's failure is raised only by requests to
that server. `connector.py` makes one attempt to connect; `reconnect_backoff.py` decides about the next ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Raw, Struct

from dragoman import events, tracing
from dragoman.cleaning import one_line
from dragoman.connections.connector import Connector
from dragoman.connections.failures import connect_error_of
from dragoman.connections.handshake import HandshakeResult
from dragoman.connections.health_check import CHECK_SECONDS, HealthCheck
from dragoman.connections.reachability import pause
from dragoman.connections.reconnect_backoff import ReconnectBackoff
from dragoman.connections.resource_subscriptions import UPDATED, ResourceSubscriptions
from dragoman.connections.server_log import ServerLog
from dragoman.connections.server_messages import LOG_TEXT_LIMIT, ServerMessages
from dragoman.connections.server_requests import ServerRequests
from dragoman.connections.session import End, Session, SessionEvents
from dragoman.connections.state import (
    CLOSED,
    AuthNeeded,
    Disable,
    Failed,
    Hold,
    Lost,
    Opened,
    Ready,
    Rest,
    ServerState,
    Signal,
    Start,
    in_words,
    next_state,
)
from dragoman.connections.subscription_stream import ACKNOWLEDGED
from dragoman.connections.target import ConnectionContext, ConnectionTarget
from dragoman.errors import (
    ConnectError,
    DragomanError,
    NotConnected,
    SignInNeeded,
    StartFailed,
    Unreachable,
)
from dragoman.names import shell_quoted
from dragoman.transports.base import Details
from dragoman.wire.messages import ABSENT

LAST_REPLIES_SECONDS: Final = 1.0
"""How long replies that are on their way may take to arrive when a link is given up."""
LONGEST_ASKED_SECONDS: Final = 300.0
"""The longest wait that a server can ask for (`Retry-After`) before the next attempt to connect."""
ANSWERS_SECONDS: Final = 0.5
"""How long other requests of a lost session are waited for: they are refused, too, and repeated."""


class ConnectionHandlers(Struct, frozen=True):
    """What is called on events of one connection."""

    prepare: Callable[[Session, float], Awaitable[None]]
    """Called once the handshake is done, before the server is shown as connected, with the seconds that it
    may take: reads the list of tools."""
    on_notification: Callable[[Session, str, Raw], None]
    """Called with the session, the method and the parameters."""
    requests: ServerRequests
    """Answers what the server asks for."""
    log: ServerLog | None = None
    """Its log file."""


class HeldBack(NamedTuple):
    """Why a server is listed and never started."""

    state: Hold | Disable
    error: DragomanError | None = None


class Connection:
    def __init__(
        self,
        name: str,
        target: ConnectionTarget,
        context: ConnectionContext,
        handlers: ConnectionHandlers,
        held: HeldBack | None = None,
    ) -> None:
        self.name = name
        self._target = target
        self._context = context
        self._handlers = handlers
        self._starts_on_use = target.starts_on_use
        self._state = ServerState(since=context.clock.now())
        self._session: Session | None = None
        self._handshake_result: HandshakeResult | None = None
        self._last_details = Details()
        self._last_ignored: Mapping[str, int] = {}
        self._last_unparsed: tuple[str, ...] = ()
        self._error = held.error if held is not None else None
        self._health = HealthCheck(target.place)
        messages = self._messages = ServerMessages(
            name, context.bus, handlers.requests, self._noticed, handlers.log
        )
        session_events = SessionEvents(
            messages.notified,
            messages.asked,
            messages.logged,
            messages.stderr,
            self._ended,
            self._unresponsive,
            self._unauthorized,
            messages.call_ended,
        )
        capabilities = {**handlers.requests.capabilities}
        if context.extensions:
            capabilities["extensions"] = context.extensions
        self._connector = Connector(name, target, context, session_events, self._opened, capabilities)
        self.subscriptions = ResourceSubscriptions(
            name,
            context.bus,
            missed=self._missed,
            logged=messages.logged,
            timeout_seconds=lambda: context.settings.seconds("MCP_REQUEST_TIMEOUT_MS"),
        )
        self._owner: asyncio.Task[None] | None = None
        self._disabled_by: Disable | None = None
        """Why the server is not to be connected; None: it is."""
        self._closed = False
        self._request_changed = asyncio.Event()
        """Set when another state is wanted."""
        self._needed = asyncio.Event()
        """Set when a resting server is used."""
        self._state_changed = asyncio.Event()
        """Set, and replaced, at each change of state."""
        self._settled = asyncio.Event()
        self._was_connected = False
        """Whether it has been connected since the last request to connect."""
        self._end: asyncio.Future[tuple[str, End]] | None = None
        """Resolved with the cause when the current connection ends."""
        self._is_held = held is not None
        if held is not None:
            self._state = next_state(self._state, held.state, context.clock.now())
            self._settled.set()

    # Questions from any task.

    @property
    def state(self) -> ServerState:
        return self._state

    @property
    def handshake_result(self) -> HandshakeResult | None:
        return self._handshake_result

    @property
    def error(self) -> DragomanError | None:
        """The exception with which connecting failed."""
        return self._error

    @property
    def details(self) -> Details:
        return self._session.details() if self._session is not None else self._last_details

    @property
    def ignored(self) -> Mapping[str, int]:
        return self._session.ignored if self._session is not None else self._last_ignored

    @property
    def unparsed_output(self) -> tuple[str, ...]:
        """The newest lines of output that were not messages."""
        return self._session.unparsed_output if self._session is not None else self._last_unparsed

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def is_lazy(self) -> bool:
        return self._target.idle_seconds is not None

    @property
    def offers_tools(self) -> bool:
        """Whether its tools can be called: at once, or after a wait that ends by itself."""
        state = self._state
        return state.status == "connected" or state.phase == "reconnecting" or self._is_idle

    @property
    def _is_idle(self) -> bool:
        return self.is_lazy and self._state.status == "pending" and not self._is_held

    def session(self) -> Session | None:
        """The session to make calls on, if there is one at this moment."""
        return self._session if self._state.status == "connected" else None

    async def wait_for_session(self, seconds: float) -> Session:
        """The session, once the connecting that is under way is done; `NotConnected` if there is none."""
        try:
            async with asyncio.timeout(seconds):
                while (session := self.session()) is None:
                    if not self._may_connect:
                        raise self._not_connected()
                    self._needed.set()
                    await self._state_changed.wait()
                return session
        except TimeoutError:
            raise self._not_connected() from None

    @property
    def _may_connect(self) -> bool:
        return self._state.phase is not None or (self._state.status == "pending" and not self._is_held)

    def _not_connected(self) -> NotConnected:
        hint = self._error.hint if self._error is not None else None
        return NotConnected(self.name, self._state.status, self._state.reason, hint=hint)

    # Requests from any task. The last one takes effect.

    def start(self) -> None:
        """Begins connecting, in a task of its own."""
        if self._owner is None and not self._is_held:
            self._owner = asyncio.create_task(self._run(), name=f"dragoman connection {self.name}")

    def reconnect(self) -> None:
        """Connects; if it is connected, disconnects first."""
        self._starts_on_use = False
        self._request(None)

    def enable(self) -> None:
        """Connects, unless it is connected or about to be."""
        if self._disabled_by is not None or self._state.status not in ("connected", "pending"):
            self._request(None)

    def disable(self, reason: str = "disabled by the person") -> None:
        self._request(Disable(reason))

    def _request(self, refusal: Disable | None) -> None:
        if self._closed or self._is_held:
            return
        self._disabled_by = refusal
        self._settled.clear()
        self._request_changed.set()
        self.start()

    async def settled(self) -> None:
        """Returns once connecting has succeeded or failed, or is not wanted."""
        await self._settled.wait()

    async def check(self, seconds: float) -> None:
        """Checks whether the server still answers; if not, reconnects."""
        if (session := self.session()) is not None:
            await self._health.check_answers(session, seconds)

    def log_problem(self, text: str) -> None:
        self._messages.logged("warning", text)

    def skip_stop_wait(self) -> None:
        """The server's process gets no time to finish its work, also if the closing is under way already."""
        if self._session is not None:
            self._session.skip_stop_wait()

    async def close(self) -> None:
        """Ends the link. Safe from any task, at any moment, any number of times."""
        self._closed = True
        self._request_changed.set()
        if self._owner is not None:
            # Waiting, not awaiting: cancelling one closer must not cancel the owner's tidying up.
            await asyncio.wait([self._owner])

    # Only called by the owner task.

    async def _run(self) -> None:
        try:
            while not self._closed:
                self._request_changed.clear()
                if self._disabled_by is not None:
                    self._signal(self._disabled_by)
                    self._settled.set()
                else:
                    await self._until_request_changes(self._keep_connected())
                if not self._closed:
                    await self._request_changed.wait()
        finally:
            await self._drop(None)
            self.subscriptions.finish()
            if self._state.status in ("pending", "connected"):
                self._signal(Disable(CLOSED))
            self._settled.set()

    async def _until_request_changes(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs the work until it ends or another state is wanted."""
        living = asyncio.create_task(work, name=f"dragoman life {self.name}")
        changed = asyncio.create_task(self._request_changed.wait())
        try:
            await asyncio.wait((living, changed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (living, changed):
                task.cancel()
            if self._state.status == "connected":
                # No caller gets the session that is about to be closed: it waits for the next one.
                closing = Disable(CLOSED) if self._closed else None
                self._signal(closing or self._disabled_by or Lost("it is reconnecting"))
            # Gathered so that asyncio does not report an unread error.
            await asyncio.gather(living, changed, return_exceptions=True)
            await self._drop(None)

    async def _keep_connected(self) -> None:
        """Connects, and reconnects after each loss; returns when there is no further attempt."""
        backoff = ReconnectBackoff.of(self._context.settings)
        self._was_connected = False
        rests = self._starts_on_use
        while True:
            if rests:
                await self._wait_for_first_use()
            try:
                await self._connect()
                self._starts_on_use = self._target.idle_seconds is not None
                self._settle()
                ended = await self._wait_for_end(backoff)
                rests = ended is None
                if ended is None:
                    continue
                error, how = ended
            except DragomanError as problem:
                error, how = problem, "failed"
            except Exception as problem:  # border: a bug here must cost this server only, and be seen
                cause = f"{type(problem).__name__}: {problem}"
                error, how = StartFailed(self.name, self._connector.phase, cause), "failed"
            self._error = error
            if how == "sign-in" or isinstance(error, SignInNeeded):
                self._signal(AuthNeeded(str(error)))
                await self._finish_calls()
                await self._drop(None)
                self._settle()
                if self._target.wait_for_sign_in is None:
                    return
                await self._target.wait_for_sign_in()
                rests = False
                continue
            if not await self._try_again(backoff, error, how):
                return

    async def _finish_calls(self) -> None:
        """Waits for the calls under way on a connection that accepts no further ones."""
        if self._was_connected and self._session is not None:
            self.subscriptions.close()
            await self._session.wait_until_idle(None)

    def _settle(self) -> None:
        """Marks the wanted state as reached or failed, unless another state is wanted by now."""
        if not self._request_changed.is_set():
            self._settled.set()

    async def _wait_for_first_use(self) -> None:
        self._signal(Rest())
        await self._drop(None)
        self._settle()
        await self._needed.wait()

    async def _wait_for_end(self, backoff: ReconnectBackoff) -> tuple[DragomanError, End] | None:
        """Waits for the link's end: why and how, or None if it was not needed any longer."""
        assert self._end is not None
        began = self._context.clock.monotonic()
        try:
            if self._target.idle_seconds is None:
                cause, how = await self._end
            else:
                found = await self._wait_for_end_or_idleness(self._end, self._target.idle_seconds)
                if found is None:
                    return None
                cause, how = found
        finally:
            backoff.was_connected(self._context.clock.monotonic() - began)
        refusal = self._session.refusal if self._session is not None else None
        if how == "sign-in" and refusal is not None:
            return connect_error_of(refusal, self.name, "connection"), how
        return self._lost_error(cause), how

    @property
    def _was_healthy(self) -> bool:
        """Whether a process of this machine has answered a caller's request since it was started."""
        session = self._session
        return self._target.place == "local" and session is not None and session.is_used

    async def _wait_for_end_or_idleness(
        self, end: asyncio.Future[tuple[str, End]], idle_seconds: float
    ) -> tuple[str, End] | None:
        while True:
            session = self._session
            idle = session.idle_seconds if session is not None else 0.0
            if idle >= idle_seconds:
                return None
            await asyncio.wait([end], timeout=idle_seconds - idle)
            if end.done():
                return end.result()

    async def _try_again(self, backoff: ReconnectBackoff, error: DragomanError, how: str) -> bool:
        """Waits for the next attempt; false if there is to be none."""
        # A server that never connected is not tried again, unless only the network failed.
        may_recover = self._was_connected or (
            isinstance(error, Unreachable) and self._target.place == "remote"
        )
        asked = error.retry_after_seconds if isinstance(error, Unreachable) else None
        at_least = min(asked or 0.0, LONGEST_ASKED_SECONDS)
        wait = None
        if may_recover:
            wait = backoff.next_wait(
                at_once=how == "session", was_healthy=self._was_healthy, at_least=at_least
            )
        if wait is None:
            await self._drop(None)
            self._fail(error)
            self._settle()
            return False
        if self._was_connected:
            self._signal(Lost(_reason(error), backoff.attempt - 1))
        else:
            self._fail(error)
            self._settle()
        # With an HTTP status the server was reached: probing for a connection would show nothing new.
        # A lost stream or connection is no answer: the server may be away, and come back at any moment.
        is_answered = isinstance(error, ConnectError) and error.status is not None
        probe = None if is_answered else self._target.probe
        # From now on: while replies under way are waited for, a server may already be started again.
        pausing = asyncio.create_task(pause(wait, probe))
        try:
            await self._drop(wait, until=pausing if probe is not None and wait else None)
            await pausing
        finally:
            pausing.cancel()
        return True

    async def _connect(self) -> None:
        async with self._context.limiter.slot(self._target.place):
            self._signal(Start())
            with tracing.span("connect", dragoman__server=self.name):
                session, handshake_result, seconds = await self._connector.link()
        self._handshake_result = handshake_result
        await self.subscriptions.open(session, handshake_result.capabilities)
        await self._handlers.prepare(session, seconds)
        if session.lost_cause is not None:
            raise self._connector.start_failed(session.lost_cause, session)
        self._error = None
        self._was_connected = True
        self._needed.clear()
        self._signal(Ready())
        self._context.bus.publish(
            events.ServerConnected(server=self.name, protocol_version=handshake_result.revision)
        )

    def _missed(self) -> None:
        for kind in ("tools", "prompts", "resources"):
            if self._session is not None:
                self._handlers.on_notification(self._session, f"notifications/{kind}/list_changed", ABSENT)

    async def _drop(self, reply_seconds: float | None, until: asyncio.Task[None] | None = None) -> None:
        """Closes the session. `reply_seconds`: how long replies under way may still arrive; `until`: when it
        ends, none is waited for any more."""
        session = self._session
        self.subscriptions.close()
        self._messages.cancel_requests()
        self._health.stop()
        if session is None:
            return
        if reply_seconds is not None:
            seconds = min(reply_seconds, LAST_REPLIES_SECONDS) or ANSWERS_SECONDS
            answering = asyncio.create_task(session.wait_until_idle(seconds))
            try:
                waited = [answering] if until is None else [answering, until]
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            finally:
                answering.cancel()
        closing = asyncio.create_task(session.close())
        try:
            await asyncio.shield(closing)
        finally:
            # A new request waits until it is closed, which is bounded in time.
            await asyncio.wait([closing])
            self._last_details = session.details()
            self._last_ignored = session.ignored
            self._last_unparsed = session.unparsed_output
            if survivors := self._last_details.left_behind:
                self._messages.logged(
                    "warning", f"these of its processes could not be ended: {', '.join(survivors)}"
                )
            self._session = None

    def _fail(self, error: DragomanError) -> None:
        self._error = error
        self._signal(Failed(_reason(error)))
        self._context.bus.publish(
            events.ServerFailed(server=self.name, reason=_reason(error), hint=error.hint)
        )

    def _lost_error(self, cause: str) -> ConnectError:
        details = self.details
        return ConnectError(
            self.name,
            "connection",
            one_line(cause, LOG_TEXT_LIMIT),
            hint=f"Try it again with `reconnect({self.name!r})`, or `dragoman mcp get "
            f"{shell_quoted(self.name)}`.",
            exit_code=details.exit_code,
            stderr_tail=details.stderr_tail,
        )

    def _signal(self, signal: Signal) -> None:
        before, self._state = self._state, next_state(self._state, signal, self._context.clock.now())
        if self._state == before:
            return
        self._state_changed.set()
        self._state_changed = asyncio.Event()
        state = self._state
        if self._handlers.log is not None:
            self._handlers.log.write("connection", *in_words(state))
        self._context.bus.publish(
            events.ServerStateChanged(
                server=self.name,
                status=state.status,
                phase=state.phase,
                reason=state.reason,
                attempt=state.attempt,
            )
        )

    # What the connector reports.

    def _opened(self, session: Session) -> None:
        self._session = session
        self._end = asyncio.get_running_loop().create_future()
        self._signal(Opened())

    # What the session reports.

    def _noticed(self, method: str, params: Raw) -> None:
        if method == ACKNOWLEDGED:
            self.subscriptions.acknowledged(params)
        elif self._session is not None:
            # The cache is marked stale first; subscribers, which may read again, are notified after that.
            self._handlers.on_notification(self._session, method, params)
            if method == UPDATED:
                self.subscriptions.updated(params)

    def _unresponsive(self, session: Session) -> None:
        if session is self.session():
            self._health.start(self.check(CHECK_SECONDS))

    def _unauthorized(self, session: Session) -> None:
        # While connecting, the failed request reports it to the handshake.
        if session is self.session():
            self._health.start(self._health.check_credentials(session))

    def _ended(self, session: Session, cause: str, how: End) -> None:
        if session is not self._session:
            return
        cause = one_line(cause, LOG_TEXT_LIMIT)
        if self._state.status == "connected" and how != "sign-in":
            self._signal(Lost(cause))
            self._context.bus.publish(events.ServerLost(server=self.name, reason=cause))
        if self._end is not None and not self._end.done():
            self._end.set_result((cause, how))


def _reason(error: DragomanError) -> str:
    """The error without what the state contains anyway."""
    return error.cause if isinstance(error, ConnectError) and error.phase == "connection" else str(error)

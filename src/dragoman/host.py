"""The host: every server a person uses, behind one object.

I own: wiring, and nothing else. This is the only place where the parts are put together.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self, cast

from dragoman.calls.outcome import CallOutcome
from dragoman.calls.pipeline import Pipeline, ToolCall
from dragoman.calls.progress import OnProgress
from dragoman.catalog.refresh import Refresher
from dragoman.catalog.tools import Catalog, Tool
from dragoman.clock import Clock, SystemClock
from dragoman.config.expand import expand_entry
from dragoman.config.model import IN_PROCESS, UNUSABLE, ServerConfig, parse_entry
from dragoman.connections.connection import Connection, Surroundings
from dragoman.connections.eras import EraMemory
from dragoman.connections.factory import MakeTransport, inprocess_maker, refusing_maker, transport_maker
from dragoman.connections.session import Session
from dragoman.connections.supervisor import Supervisor
from dragoman.errors import ConfigError, HostClosed
from dragoman.events import Event, EventBus
from dragoman.hooks.points import NoHooks
from dragoman.interaction import Interaction
from dragoman.names import ServerName
from dragoman.permissions.gate import MODES, ModeGate, PermissionMode
from dragoman.settings import Settings
from dragoman.version import VERSION
from dragoman.view import ServerView


class Host:
    """Connects to servers and calls their tools.

    Servers are given by name: as an entry (a dict with `command`, `args`, `env` …), as a
    `ServerConfig`, or as a server object that lives in this process.
    """

    def __init__(
        self,
        servers: Mapping[str, ServerConfig | Mapping[str, Any] | object],
        *,
        permission_mode: PermissionMode = "default",
        interaction: Interaction | None = None,
        settings: Mapping[str, int] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if permission_mode not in MODES:
            raise ConfigError(
                f"unknown permission_mode {permission_mode!r}", hint=f"One of {', '.join(MODES)}."
            )
        self._settings = Settings(settings)
        self._clock = clock or SystemClock()
        self._bus = EventBus()
        self._catalog = Catalog()
        self._refresher = Refresher(
            self._catalog, self._bus, self._settings.seconds("MCP_REQUEST_TIMEOUT_MS")
        )
        self._configs: dict[ServerName, ServerConfig] = {}
        self._timeouts: dict[ServerName, float] = {}
        self._connections: dict[ServerName, Connection] = {}
        self._surroundings = Surroundings(
            self._settings,
            self._clock,
            self._bus,
            EraMemory(self._clock),
            {"name": "dragoman", "version": VERSION},
        )
        for name, given in servers.items():
            self._add(ServerName(name), given)
        self._supervisor = Supervisor(self._connections)
        self._pipeline = Pipeline(
            catalog=self._catalog,
            hooks=NoHooks(),
            permissions=ModeGate(permission_mode, interaction, self._bus),
            session_of=self._session_of,
            timeout_of=self._timeouts.__getitem__,
            bus=self._bus,
            clock=self._clock,
        )
        self._stage = "new"
        self._closing: asyncio.Task[None] | None = None

    # Life.

    async def __aenter__(self) -> Self:
        if self._stage != "new":
            raise HostClosed
        self._stage = "open"
        self._supervisor.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ready(self, timeout: float | None = None) -> Mapping[str, ServerView]:
        """Waits until every server is connected or has failed, or the time is up.

        A server that failed does not raise; see its `reason`.
        """
        if self._stage != "open":
            raise HostClosed
        await self._supervisor.settled(timeout)
        return self.servers

    async def close(self) -> None:
        """Ends every connection. Safe from any task, at any moment, any number of times."""
        self._stage = "closed"
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="dragoman close")
        # Cancelling one closer must not cancel the closing itself.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._refresher.close()
        await self._supervisor.close()
        self._bus.close()

    # What there is.

    @property
    def servers(self) -> Mapping[str, ServerView]:
        """How every server is at this moment, by name."""
        return {name: self._view(name, connection) for name, connection in self._connections.items()}

    def tools(self) -> list[Tool]:
        """Every tool of the servers that are connected now, in a stable order."""
        up = {
            name for name, connection in self._connections.items() if connection.state.status == "connected"
        }
        return [tool for tool in self._catalog.tools() if tool.server in up]

    def events(self) -> AsyncIterator[Event]:
        """What happens from now on; ends when the host is closed."""
        return self._bus.listen()

    # What can be done.

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallOutcome:
        """Calls a tool by its qualified name.

        What the tool or its server answers, errors included, is the outcome. Raised are only
        `NotConnected`, `ConnectionLost`, `CallTimeout`, `MalformedReply`, `MessageTooLarge` and
        `HostClosed`.
        """
        if self._stage != "open":
            raise HostClosed
        return await self._pipeline.call(ToolCall(name, arguments or {}, timeout_seconds, on_progress))

    # Wiring.

    def _add(self, name: ServerName, given: object) -> None:
        try:
            config, make = self._understand(name, given)
        except ConfigError as error:
            # Said of this server when it is to be connected; the others are not affected.
            config, make = ServerConfig(type=UNUSABLE), refusing_maker(error)
        self._configs[name] = config
        own = config.timeout
        self._timeouts[name] = self._settings.seconds("MCP_TOOL_TIMEOUT") if own is None else own / 1000
        self._connections[name] = Connection(
            name,
            make,
            self._surroundings,
            protocol=config.protocol,
            fingerprint=config.fingerprint() if config.command else None,
            prepare=self._prepare,
            on_notification=self._notified,
        )

    def _understand(self, name: ServerName, given: object) -> tuple[ServerConfig, MakeTransport]:
        if isinstance(given, Mapping):
            entry = cast("Mapping[str, Any]", given)
            given = parse_entry(name, expand_entry(name, entry, os.environ))
        if isinstance(given, ServerConfig):
            return given, transport_maker(name, given, self._settings)
        return ServerConfig(type=IN_PROCESS), inprocess_maker(name, given)

    async def _prepare(self, connection: Connection, session: Session, seconds: float) -> None:
        await self._refresher.load(ServerName(connection.name), session, seconds)

    def _notified(self, connection: Connection, session: Session, method: str) -> None:
        if method == "notifications/tools/list_changed":
            self._refresher.schedule(ServerName(connection.name), session)

    def _session_of(self, name: ServerName) -> Session:
        if self._stage != "open":
            raise HostClosed
        return self._connections[name].session()

    def _view(self, name: ServerName, connection: Connection) -> ServerView:
        return ServerView.of(connection, self._configs[name], self._catalog)

"""The servers of a host: one connection per configured entry, and access to them for calls.

Policy is checked each time a transport is made. A changed configuration replaces the connections it concerns.
The host reads the configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec import structs

from dragoman.calls.recovery import is_harmless
from dragoman.catalog import memory
from dragoman.catalog.listing import covered
from dragoman.catalog.lists import Lists, offers
from dragoman.catalog.naming import prefix
from dragoman.catalog.pool import Catalog
from dragoman.catalog.refresh import Refresher
from dragoman.catalog.tools import ServerTool, Tool
from dragoman.clock import Clock
from dragoman.config.connector_entries import check_token_target
from dragoman.config.connectors import bearer_origins
from dragoman.config.load import Configuration
from dragoman.config.masking import secrets_of
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import IN_PROCESS, UNUSABLE, ServerConfig
from dragoman.config.plan import Plan
from dragoman.connections.connect_limiter import ConnectLimiter
from dragoman.connections.connection import Connection
from dragoman.connections.connector import ConnectionContext
from dragoman.connections.eras import EraMemory
from dragoman.connections.factory import (
    IDE_TYPES,
    MakeTransport,
    TransportDependencies,
    inprocess_maker,
    kind_of,
    network_of,
    older_maker,
    refusing_maker,
    transport_maker,
)
from dragoman.connections.failures import list_failed
from dragoman.connections.reachability import TcpProbe
from dragoman.connections.resource_subscriptions import Watching
from dragoman.connections.server_requests import Inbound
from dragoman.connections.session import Session
from dragoman.connections.state import Disable, Hold
from dragoman.connections.supervisor import Supervisor, close_all
from dragoman.content.redact import Redactor
from dragoman.errors import ConfigError, DragomanError, HostClosed, NotConnected, PolicyRefused, reworded
from dragoman.events import Event, EventBus, ServerEvent
from dragoman.hooks.forms import HookedForms
from dragoman.interaction import ElicitsUrls
from dragoman.names import ServerName
from dragoman.transports.base import Transport
from dragoman.version import VERSION
from dragoman.view import ServerView

IDE_TOOLS = ("executeCode", "getDiagnostics")
"""Of an editor's tools only these are for models; the others drive the editor."""


Make = Callable[[ServerName, ServerConfig], Transport]


class ServerRegistry:
    def __init__(
        self,
        configuration: Configuration,
        *,
        catalog: Catalog,
        bus: EventBus,
        clock: Clock,
        forms: HookedForms,
        pages: ElicitsUrls | None,
        dependencies: TransportDependencies,
    ) -> None:
        self.configuration = configuration
        self._latest = configuration
        """The same, or what the files said at the last start of a server."""
        self._settings = configuration.settings
        self._catalog = catalog
        self._forms = forms
        self._pages = pages
        self._dependencies = dependencies
        dependencies.learned = self._learn
        bus.cover = self._covered
        self._refresher = Refresher(catalog, bus, clock, self.request_seconds, self.redactor_of)
        self.lists = Lists(clock, bus, self.request_seconds, self.redactor_of, catalog.admit)
        """What servers offer besides tools."""
        self._servers: dict[ServerName, ConfiguredServer] = {}
        self._timeouts: dict[ServerName, float] = {}
        self._redactors: dict[ServerName, Redactor] = {}
        self._connections: dict[ServerName, Connection] = {}
        self._replaced: Mapping[str, ServerView] = {}
        """Servers that are being closed because their entry has changed, as they were before."""
        self._is_open = True
        self._around = ConnectionContext(
            self._settings,
            clock,
            bus,
            EraMemory(clock),
            {"name": "dragoman", "version": VERSION},
            ConnectLimiter(
                self._settings["MCP_SERVER_CONNECTION_BATCH_SIZE"],
                self._settings["MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"],
            ),
        )
        catalog.expect(self.naming_servers())
        for server in configuration.servers.values():
            self._add(server)
        self._supervisor = Supervisor(self._connections, clock)

    # Life.

    def start(self) -> None:
        self._supervisor.start()

    async def settled(self, only: Collection[str] | None = None) -> None:
        await self._supervisor.settled(only)

    def hurry(self) -> None:
        """No process gets time to finish its work when it is closed."""
        for connection in self._connections.values():
            connection.hurry()

    async def close(self) -> None:
        self._is_open = False
        self._refresher.close()
        self.lists.close()
        await self._supervisor.close()

    async def adopt(self, new: Configuration, plan: Plan) -> None:
        """Makes the difference: what left or changed is closed, what is new is started."""
        self.configuration = self._latest = new
        self._catalog.expect(self.naming_servers())
        self._settings.adopt(new.settings)
        self._replaced = {name: view for name, view in self.views().items() if name in plan.changed}
        leaving = [self._connections.pop(ServerName(name)) for name in (*plan.removed, *plan.changed)]
        for connection in leaving:
            self._catalog.forget(ServerName(connection.name))
            self._servers.pop(ServerName(connection.name), None)
        await close_all(leaving)
        for connection in leaving:
            # What was being read while it closed is not to stay.
            self._refresher.forget(ServerName(connection.name))
            self._catalog.forget(ServerName(connection.name))
            self.lists.forget(ServerName(connection.name))
        self._replaced = {}
        if not self._is_open:
            return
        for name in (*plan.added, *plan.changed):
            self._add(new.servers[name]).start()
        for name in plan.unchanged:
            server = new.servers[name]
            self._servers[ServerName(name)] = server
            self._timeouts[ServerName(name)] = self._timeout_for(server.config or ServerConfig())

    # What there is.

    @property
    def servers(self) -> Collection[ConfiguredServer]:
        return self._servers.values()

    def views(self) -> Mapping[str, ServerView]:
        replaced = {name: _being_replaced(view) for name, view in self._replaced.items()}
        here = {name: self._view(name, connection) for name, connection in self._connections.items()}
        return {**replaced, **here}

    def _view(self, name: ServerName, connection: Connection) -> ServerView:
        view = ServerView.of(connection, self._servers[name], self._catalog)
        redact = self.redactor_of(name)
        if redact is None:
            return view
        return structs.replace(
            view,
            reason=view.reason and redact.text(view.reason),
            instructions=view.instructions and redact.text(view.instructions),
            server_info=redact.value(view.server_info),
            problems=tuple(map(redact.text, view.problems)),
            stderr_tail=redact.text(view.stderr_tail),
            noise=tuple(redact.text(line) for line in view.noise),
            error=view.error and reworded(view.error, redact.text),
        )

    def _covered(self, event: Event) -> Event:
        """Secrets of a server's entry that it says back are in no event."""
        redact = self.redactor_of(ServerName(event.server)) if isinstance(event, ServerEvent) else None
        if redact is None:
            return event
        texts = {name: value for name, value in structs.asdict(event).items() if isinstance(value, str)}
        changed = {name: redact.text(text) for name, text in texts.items() if name not in ("server", "tool")}
        return structs.replace(event, **changed)

    def tools(self) -> list[ServerTool]:
        """The tools that can be called now, or as soon as a server that is on its way back is there."""
        offering = {name for name, connection in self._connections.items() if connection.offers_tools}
        self._freshen(offering)
        return [tool for tool in self._catalog.tools() if tool.server in offering]

    def _freshen(self, servers: Collection[ServerName]) -> None:
        """What is used past its time is read again in the background."""
        for name in servers:
            session = self.session_of(name)
            if session is not None:
                self._refresher.freshen(name, session)

    # What can be wanted of one server.

    async def reconnect(self, name: str) -> None:
        connection = self._startable(name)
        connection.reconnect()
        await connection.settled()

    async def enable(self, name: str) -> None:
        connection = self._startable(name)
        if connection.is_lazy and not self._catalog.count(ServerName(name)):
            connection.reconnect()  # one that shows no tools would never be used
        else:
            connection.enable()
        await connection.settled()

    async def disable(self, name: str) -> None:
        connection = self._startable(name)
        connection.disable()
        await connection.settled()
        if connection.state.status == "disabled":
            self._refresher.forget(ServerName(name))
            self._catalog.clear(ServerName(name))
            self.lists.forget(ServerName(name))

    def _startable(self, name: str) -> Connection:
        connection = self._connections.get(ServerName(name))
        if connection is None:
            raise ConfigError(
                f"there is no server {name!r}", hint=f"There are: {', '.join(self._connections) or 'none'}."
            )
        if connection.is_held:
            raise connection.error or ConfigError(
                f"server {name!r} cannot be started: {connection.state.reason}",
                hint="`dragoman mcp get` shows what to do.",
            )
        return connection

    # The way of a call.

    def session_of(self, server: ServerName) -> Session | None:
        connection = self._connections.get(server)
        return None if connection is None or not self._is_open else connection.session()

    async def awaited_session(self, server: ServerName, seconds: float) -> Session:
        if not self._is_open:
            raise HostClosed
        return await self._connection(server).awaited_session(seconds)

    def _connection(self, server: ServerName) -> Connection:
        """It may have been removed while a caller waited for it."""
        connection = self._connections.get(server)
        if connection is None:
            raise NotConnected(server, "removed", "it is no longer configured")
        return connection

    def names(self) -> Collection[ServerName]:
        return self._connections.keys()

    def naming_servers(self) -> Collection[str]:
        """The servers on which names of tools and prompts depend."""
        return [name for name, server in self.configuration.servers.items() if _takes_part_in_naming(server)]

    def server_in(self, name: str) -> ServerName | None:
        """The server that the name of a tool begins with, if there is one."""
        named = [each for each in self._connections if name.startswith(prefix(each))]
        return max(named, key=len, default=None)

    def capabilities_of(self, server: ServerName) -> Mapping[str, Any]:
        connection = self._connections.get(server)
        said = connection.introduction if connection is not None else None
        return said.capabilities if said is not None else {}

    def absence_of(self, server: ServerName) -> str | None:
        """Why a server that is wanted cannot be asked now; None if it is there, or not wanted."""
        connection = self._connections.get(server)
        if connection is None or connection.is_held or connection.state.status in ("connected", "disabled"):
            return None
        state = connection.state
        return (state.reason or f"it is {state.phase or state.status}").removeprefix(f"{server}: ")

    def watching_of(self, server: ServerName) -> Watching:
        return self._connection(server).watching

    @property
    def request_seconds(self) -> float:
        """How long a request that is no call may take."""
        return self._settings.seconds("MCP_REQUEST_TIMEOUT_MS")

    def timeout_of(self, server: ServerName) -> float:
        return self._timeouts[server]

    def link_of(self, server: ServerName) -> Connection | None:
        """The connection of the server's entry as it is now; another entry has another one."""
        return self._connections.get(server)

    def redactor_of(self, server: ServerName) -> Redactor | None:
        """What covers the secrets of a server's entry; None if it has none."""
        return self._redactors.get(server) or None

    def _learn(self, server: str, secrets: Iterable[str]) -> None:
        """Credentials that are sent to a server are redacted in its answers, too."""
        known = self._redactors.get(ServerName(server))
        if known is not None:
            known.learn(secrets)

    def is_trusted(self, server: str) -> bool:
        """Whether the person takes the server at its word."""
        known = self._servers.get(ServerName(server))
        return known is not None and known.config is not None and known.config.trusted

    def answerer_of(self, server: ServerName) -> Inbound:
        return self._connection(server).inbound

    def is_harmless(self, tool: Tool) -> bool:
        """Whether a call may be repeated on the word of its server."""
        if not self._settings["DRAGOMAN_REPEAT_SAFE_CALLS"]:
            return False
        return self.is_trusted(tool.server) and is_harmless(tool.annotations)

    async def list_again(self, server: ServerName, session: Session, seconds: float) -> None:
        await self._refresher.load(server, session, seconds)

    # From entries to connections.

    def _add(self, server: ConfiguredServer) -> Connection:
        name, config = ServerName(server.name), server.config or ServerConfig(type=UNUSABLE)
        self._servers[name] = server
        self._timeouts[name] = self._timeout_for(config)
        self._redactors[name] = Redactor(
            secrets_of(config, server.candidate.given, self.configuration.environ)
        )
        self._limit(name, config)
        held, error = _held(server)
        is_lazy = config.lazy and config.type == "stdio" and held is None
        connection = self._connections[name] = Connection(
            name,
            self._maker(name, server, self._make_transport)
            if held is None
            else refusing_maker(ConfigError("it cannot be started")),
            self._around,
            protocol=config.protocol,
            fingerprint=config.fingerprint() if config.command or config.url else None,
            prepare=self._prepare,
            on_notification=self._notified,
            kind=kind_of(config),
            held=held,
            error=error,
            older_transport=self._maker(name, server, self._make_older) if config.type == "http" else None,
            forms=self._forms if self._forms.can_answer(name) else None,
            pages=self._pages,
            knock=_knocker(config),
            idle_seconds=self._settings.seconds("DRAGOMAN_IDLE_STOP_MS") if is_lazy else None,
            rests_first=is_lazy and self._recall(name, config),
        )
        return connection

    def _limit(self, name: ServerName, config: ServerConfig) -> None:
        if config.type in IDE_TYPES:
            self._catalog.limit(name, lambda tool: tool in IDE_TOOLS and config.offers(tool))
        elif config.enabled_tools is not None or config.disabled_tools:
            self._catalog.limit(name, config.offers)

    def _recall(self, name: ServerName, config: ServerConfig) -> bool:
        """Shows what a lazy server offered last time; whether anything is known."""
        known = memory.recall(config.fingerprint())
        if known is not None:
            redact = self.redactor_of(name)
            self._catalog.set_list(name, covered(known, redact) if redact else known)
        return known is not None

    def _timeout_for(self, config: ServerConfig) -> float:
        own = config.timeout
        return self._settings.seconds("MCP_TOOL_TIMEOUT") if own is None else own / 1000

    def _maker(self, name: ServerName, server: ConfiguredServer, make: Make) -> MakeTransport:
        """Makes transports, and judges the server each time: a start can come long after configuration was
        read."""

        def ask_and_make() -> Transport:
            self._check_start(name, server)
            # What cannot be used is said of this server, when it is to be connected.
            if server.config is None:
                raise server.error or ConfigError(f"server {name!r} cannot be used")
            check_token_target(name, server.config, server.scope, self._bearer_origins())
            if server.config.type == IN_PROCESS:
                return inprocess_maker(name, server.candidate.given)()
            return make(name, self._latest.as_started(server, server.config))

        return ask_and_make

    def _check_start(self, name: ServerName, server: ConfiguredServer) -> None:
        """Raises `ConfigError` if the files, as they are now, do not let the server start."""
        self._latest = self._latest.with_current_policy()
        now = self._latest.judged(server)
        if now.standing == "refused":
            raise PolicyRefused(name, now.reason or "")
        if now.standing not in ("ready", "broken"):
            raise ConfigError(
                f"server {name!r} cannot be started: {now.reason}",
                hint="`dragoman mcp get` shows what to do.",
            )

    def _bearer_origins(self) -> Collection[str]:
        named = self.configuration
        return bearer_origins(named.connectors, named.environ) | self._dependencies.bearer_origins

    def _make_transport(self, name: ServerName, config: ServerConfig) -> Transport:
        return transport_maker(name, config, self._settings, self._dependencies)()

    def _make_older(self, name: ServerName, config: ServerConfig) -> Transport:
        make = older_maker(name, config, self._settings, self._dependencies)
        assert make is not None
        return make()

    async def _prepare(self, connection: Connection, session: Session, seconds: float) -> None:
        name = ServerName(connection.name)
        self.lists.opened(name, session, self.capabilities_of(name))
        failure = await self._refresher.load(name, session, seconds)
        # Where the link itself is gone, whoever connects says so in more detail.
        if failure is not None and session.lost_cause is None and offers(self.capabilities_of(name), "tools"):
            raise list_failed(name, failure)
        config = self._servers[name].config if name in self._servers else None
        if config is not None and config.lazy:
            await asyncio.to_thread(memory.remember, config.fingerprint(), self._catalog.listed(name))

    def _notified(self, connection: Connection, session: Session, method: str) -> None:
        name = ServerName(connection.name)
        if method == "notifications/tools/list_changed":
            self._refresher.schedule(name, session)
        else:
            self.lists.noticed(name, session, method, self.capabilities_of(name))


def _being_replaced(view: ServerView) -> ServerView:
    return structs.replace(
        view,
        status="pending",
        phase=None,
        reason="its configuration has changed: it is being replaced",
        error=None,
        tool_count=0,
        pid=None,
    )


def _knocker(config: ServerConfig) -> TcpProbe | None:
    """How to find out that a remote server can be reached again."""
    if config.url is None or kind_of(config) != "remote":
        return None

    async def knock() -> bool:
        from dragoman.transports import web

        return await web.knock(network_of(config))

    return knock


def _takes_part_in_naming(server: ConfiguredServer) -> bool:
    """An entry that is not approved renames no tool: rules and hooks are written for names.

    A disabled server that is approved, or needs no approval, takes part: otherwise a look-alike would inherit
    its allow rules.
    """
    if server.standing == "disabled":
        return server.approval is None or server.approval.state == "approved"
    return server.standing == "ready"


def _held(server: ConfiguredServer) -> tuple[Hold | Disable | None, DragomanError | None]:
    """In which state a server is listed that is not to be started."""
    reason = server.reason or ""
    match server.standing:
        case "pending":
            return Hold(f"needs approval: {reason}"), None
        case "refused":
            return Disable(f"not admitted: {reason}"), PolicyRefused(server.name, reason)
        case "rejected" | "disabled":
            return Disable(reason), None
        case _:
            return None, None

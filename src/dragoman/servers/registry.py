"""The registry: the servers of a host by name, applied from the configuration.

A changed configuration replaces the servers it concerns. Policy is checked each time a server is started. The
host reads the configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from dragoman.catalog.catalog import Catalog
from dragoman.catalog.naming import prefix
from dragoman.catalog.overview import enumerated
from dragoman.catalog.tools import ServerTool
from dragoman.clock import Clock
from dragoman.config.connector_entries import check_token_target
from dragoman.config.connectors import bearer_origins
from dragoman.config.load import Configuration
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import ServerConfig
from dragoman.config.plan import Plan
from dragoman.connections.connect_limiter import ConnectLimiter
from dragoman.connections.connection import Connection
from dragoman.connections.eras import EraMemory
from dragoman.connections.factory import TransportDependencies
from dragoman.connections.server_log import ServerLogs
from dragoman.connections.server_requests import RequestHandler
from dragoman.connections.supervisor import Supervisor, close_all
from dragoman.connections.target import ConnectionContext
from dragoman.content.redact import Redactor
from dragoman.errors import ConfigError, HostClosed, NotConnected, PolicyRefused
from dragoman.events import Event, EventBus, ServerEvent
from dragoman.servers.server import Server, ServerContext
from dragoman.servers.status import ServerStatus, being_replaced
from dragoman.transport_types import IN_PROCESS
from dragoman.version import VERSION


class ServerRegistry(Mapping[str, Server]):
    def __init__(
        self,
        configuration: Configuration,
        catalog: Catalog,
        bus: EventBus,
        clock: Clock,
        dependencies: TransportDependencies,
        handlers_of: Callable[[ConfiguredServer], Sequence[RequestHandler]],
        logs: ServerLogs | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> None:
        """`handlers_of`: those for the requests that a server may send."""
        self.configuration = configuration
        self.catalog = catalog
        self.bus = bus
        self.clock = clock
        self._latest = configuration
        """The same, or what the files said at the last start of a server."""
        self._settings = settings = configuration.settings
        self._dependencies = dependencies
        dependencies.learned = self._learn
        dependencies.identity_provider = lambda: self.configuration.xaa_idp
        bus.cover = self._covered
        limiter = ConnectLimiter(
            settings["MCP_SERVER_CONNECTION_BATCH_SIZE"], settings["MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"]
        )
        client_info = {"name": "dragoman", "version": VERSION}
        self._context = ServerContext(
            ConnectionContext(settings, clock, bus, EraMemory(clock), client_info, limiter, extensions or {}),
            catalog,
            dependencies,
            handlers_of,
            lambda: self.configuration.environ,
            self._start_checked,
            logs,
        )
        self._servers: dict[str, Server] = {}
        self._replaced: Mapping[str, ServerStatus] = {}
        """The last status of servers that are being closed because their entry has changed."""
        self._closing: Mapping[str, Server] = {}
        """Servers that are being closed because their entry was removed or has changed."""
        self._is_open = True
        catalog.set_servers(self.naming_servers())
        for entry in configuration.servers.values():
            self._add(entry)
        self._supervisor = Supervisor(self._connections, clock)

    def __getitem__(self, name: str) -> Server:
        return self._servers[name]

    def find(self, name: str) -> Server | None:
        """Like `get`, and faster: it raises nothing inside."""
        return self._servers.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    # Life.

    def start(self) -> None:
        self._supervisor.start()

    async def settled(self, only: Collection[str] | None = None) -> None:
        await self._supervisor.settled(only)

    def skip_stop_wait(self) -> None:
        """No process gets time to finish its work when it is closed."""
        for server in (*self._servers.values(), *self._closing.values()):
            server.connection.skip_stop_wait()

    async def close(self) -> None:
        self._is_open = False
        for server in self._servers.values():
            server.retire(HostClosed())
        await self._supervisor.close()
        everyone = (*self._servers.values(), *self._closing.values())
        await asyncio.gather(*(server.close_credentials() for server in everyone))

    async def apply(self, new: Configuration, plan: Plan) -> None:
        """Applies the difference: what was removed or has changed is closed, what is new is started."""
        is_provider_changed = new.xaa_idp != self.configuration.xaa_idp
        self.configuration = self._latest = new
        self.catalog.set_servers(self.naming_servers())
        self._settings.adopt(new.settings)
        self._replaced = {name: self._servers[name].status() for name in plan.changed}
        self._closing = {name: self._servers.pop(name) for name in (*plan.removed, *plan.changed)}
        for name, server in self._closing.items():
            server.retire(
                NotConnected(name, "removed", "it is no longer configured")
                if name in plan.removed
                else NotConnected(name, "replaced", "its entry has changed: it is being replaced")
            )
        await close_all(server.connection for server in self._closing.values())
        self._closing, self._replaced = {}, {}
        if not self._is_open:
            return
        for name in (*plan.added, *plan.changed):
            self._add(new.servers[name]).connection.start()
        for name in plan.unchanged:
            self._servers[name].update(new.servers[name])
            if is_provider_changed:
                self._servers[name].renew_credentials()

    # What there is.

    def statuses(self) -> Mapping[str, ServerStatus]:
        replaced = {name: being_replaced(status) for name, status in self._replaced.items()}
        return {**replaced, **{name: server.status() for name, server in self._servers.items()}}

    def tools(self) -> list[ServerTool]:
        """The tools that can be called now, or as soon as a server that is reconnecting is there."""
        offering = {name for name, server in self._servers.items() if server.connection.offers_tools}
        for name in offering:
            self._servers[name].refresh_tools_if_expired()
        return [tool for tool in self.catalog.tools() if tool.server in offering]

    def named(self, name: str) -> Server:
        """The server of this name; `ConfigError` if there is none."""
        server = self._servers.get(name)
        if server is None:
            known = enumerated(list(self._servers)) or "none"
            raise ConfigError(f"there is no server {name!r}", hint=f"There are: {known}.")
        return server

    def naming_servers(self) -> Collection[str]:
        """The servers on which names of tools and prompts depend."""
        entries = {**self.configuration.servers, **self.configuration.set_aside}
        return [name for name, entry in entries.items() if _takes_part_in_naming(entry)]

    def server_in(self, name: str) -> Server | None:
        """The server that the name of a tool begins with, if there is one."""
        known = {**self._closing, **self._servers}
        found = [each for each in known if name.startswith(prefix(each))]
        return known[max(found, key=len)] if found else None

    def redactor_of(self, server: str) -> Redactor | None:
        known = self.find(server) or self._closing.get(server)
        return None if known is None else known.redactor

    def is_trusted(self, server: str) -> bool:
        known = self.find(server)
        if known is not None:
            return known.is_trusted
        aside = self.configuration.set_aside.get(server)
        return aside is not None and aside.config is not None and aside.config.trusted

    def announce_roots(self) -> None:
        """Notifies servers that were offered roots that these have changed."""
        for server in self._servers.values():
            server.announce_roots()

    def _connections(self) -> Mapping[str, Connection]:
        return {name: server.connection for name, server in self._servers.items()}

    def _learn(self, server: str, secrets: Iterable[str]) -> None:
        known = self.find(server)
        if known is not None:
            known.learn_secrets(tuple(secrets))

    def _covered(self, event: Event) -> Event:
        """Secrets of a server's entry that the server repeats are in no event."""
        redact = self.redactor_of(event.server) if isinstance(event, ServerEvent) else None
        if not redact:
            return event
        fields = structs.asdict(event)
        changed: dict[str, Any] = {
            name: redact.text(value)
            for name, value in fields.items()
            if name not in ("server", "tool") and isinstance(value, str)
        }
        if "problems" in fields:
            changed["problems"] = tuple(map(redact.text, fields["problems"]))
        return structs.replace(event, **changed)

    # From entries to servers.

    def _add(self, entry: ConfiguredServer) -> Server:
        server = self._servers[entry.name] = Server(entry, self._context)
        self.catalog.add(server.tools)
        return server

    def _start_checked(self, entry: ConfiguredServer) -> ServerConfig:
        """The entry as it is started; `ConfigError` if the files, as they are now, do not allow the start."""
        self._latest = self._latest.with_current_policy()
        now = self._latest.recheck(entry)
        if now.eligibility == "refused":
            raise PolicyRefused(entry.name, now.reason or "")
        if now.eligibility not in ("ready", "broken"):
            raise ConfigError(
                f"server {entry.name!r} cannot be started: {now.reason}",
                hint="`dragoman mcp get` shows what to do.",
            )
        if entry.config is None:
            raise entry.error or ConfigError(f"server {entry.name!r} cannot be used")
        check_token_target(entry.name, entry.config, entry.scope, self._bearer_origins())
        if entry.config.type == IN_PROCESS:
            return entry.config
        return self._latest.as_started(entry, entry.config)

    def _bearer_origins(self) -> Collection[str]:
        named = self.configuration
        return bearer_origins(named.connectors, named.environ) | self._dependencies.bearer_origins


def _takes_part_in_naming(entry: ConfiguredServer) -> bool:
    """An entry that is not approved renames no tool: rules and hooks are written for names.

    A disabled server that is approved, or needs no approval, takes part: otherwise a look-alike would inherit
    its allow rules.
    """
    if entry.eligibility == "disabled":
        return entry.approval is None or entry.approval.state == "approved"
    return entry.eligibility == "ready"

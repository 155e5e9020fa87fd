"""The registry: the servers of a host by name, applied from the configuration.

A changed configuration replaces the servers it concerns. Policy is checked each time a server is started. The
host reads the configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from dragoman.catalog.catalog import Catalog
from dragoman.catalog.naming import prefix
from dragoman.catalog.overview import enumerated
from dragoman.catalog.tools import ServerTool
from dragoman.config.connector_entries import check_token_target
from dragoman.config.connectors import bearer_origins
from dragoman.config.load import Configuration
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import ServerConfig
from dragoman.config.plan import Plan
from dragoman.connections.connection import Connection
from dragoman.connections.factory import TransportDependencies
from dragoman.connections.server_log import ServerLogs
from dragoman.connections.server_requests import RequestHandler
from dragoman.connections.supervisor import Supervisor, close_all
from dragoman.connections.target import ConnectionContext
from dragoman.content.redact import Redactor
from dragoman.errors import ConfigError, HostClosed, NotConnected, PolicyRefused
from dragoman.events import Event, ServerEvent
from dragoman.servers.server import Server, ServerContext
from dragoman.servers.status import ServerStatus, being_replaced
from dragoman.transport_types import IN_PROCESS


class ServerRegistry(Mapping[str, Server]):
    def __init__(
        self,
        configuration: Configuration,
        catalog: Catalog,
        connections: ConnectionContext,
        dependencies: TransportDependencies,
        handlers_of: Callable[[ConfiguredServer], Sequence[RequestHandler]],
        logs: ServerLogs | None = None,
    ) -> None:
        """`handlers_of`: those for the requests that a server may send."""
        self.configuration = configuration
        self.catalog = catalog
        self.bus = connections.bus
        self.clock = connections.clock
        self._latest = configuration
        """The same, or the configuration that was read at the last start of a server."""
        self._settings = connections.settings
        self._dependencies = dependencies
        dependencies.learned = self._learn
        dependencies.identity_provider = lambda: self.configuration.xaa_idp
        self.bus.cover = self._covered
        self._context = ServerContext(
            connections,
            catalog,
            dependencies,
            handlers_of,
            lambda: self.configuration.environ,
            self._start_checked,
            logs,
        )
        self._servers: dict[str, Server] = {}
        self._closing: dict[str, Server] = {}
        """Servers that are being closed because their entry was removed or has changed."""
        self._last_status: dict[str, ServerStatus] = {}
        """Their status before."""
        self._ends: dict[str, asyncio.Event] = {}
        """Set when they are closed, and what replaces them is started."""
        self._closes: set[asyncio.Task[None]] = set()
        self._is_open = True
        catalog.set_servers(self.naming_servers())
        for entry in configuration.servers.values():
            self._add(entry)
        self._supervisor = Supervisor(self._connections, self.clock)

    def __getitem__(self, name: str) -> Server:
        return self._servers[name]

    def find(self, name: str) -> Server | None:
        """Like `get`, and faster: it raises nothing inside."""
        return self._servers.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __len__(self) -> int:
        return len(self._servers)

    # Start, end and changes.

    def start(self) -> None:
        self._supervisor.start()

    async def settled(self, only: Collection[str] | None = None) -> None:
        for name in list(self._ends):
            if only is None or name in only:
                await self.replaced(name)
        await self._supervisor.settled(only)

    async def successor_of(self, server: Server, seconds: float) -> Server:
        """The server that replaces a closing one, once that is closed; otherwise the server itself."""
        if self._closing.get(server.name) is server:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.replaced(server.name)
        return self.find(server.name) or server

    async def replaced(self, name: str) -> None:
        """Returns when the server is there whose entry has changed; at once if it has not."""
        if name in self._replaced():
            await self._ends[name].wait()

    def skip_stop_wait(self) -> None:
        """No process gets time to finish its work when it is closed."""
        for server in (*self._servers.values(), *self._closing.values()):
            server.connection.skip_stop_wait()

    async def close(self) -> None:
        self._is_open = False
        for server in self._servers.values():
            server.retire(HostClosed())
        await self._supervisor.close()
        servers = (*self._servers.values(), *self._closing.values())
        await self.ended()
        await asyncio.gather(*(server.close_credentials() for server in servers))

    async def ended(self) -> None:
        """Returns when every server is closed whose entry was removed or has changed."""
        if self._closes:
            await asyncio.wait(list(self._closes))

    def apply(self, new: Configuration, plan: Plan) -> None:
        """Applies the difference: what was removed or has changed is closed, what is new is started. What has
        changed is started when the old server is closed, which may take long; `ended` waits for that."""
        is_provider_changed = new.xaa_idp != self.configuration.xaa_idp
        self.configuration = self._latest = new
        self.catalog.set_servers(self.naming_servers())
        self._settings.adopt(new.settings)
        ending = {name: self._servers.pop(name) for name in (*plan.removed, *plan.changed) if name in self}
        for name, server in ending.items():
            self._retire(server, is_removed=name in plan.removed)
        if ending:
            closes = [self._replace(name, server) for name, server in ending.items()]
            self._closes.add(task := asyncio.create_task(close_all(closes), name="dragoman closing servers"))
            task.add_done_callback(self._closes.discard)
        if not self._is_open:
            return
        for name in plan.added:
            if name not in self._closing:  # otherwise it is started as soon as the old one is closed
                self._add(new.servers[name]).connection.start()
        for name in plan.unchanged:
            if (server := self.find(name)) is not None:
                server.update(new.servers[name])
                if is_provider_changed:
                    server.renew_credentials()

    def _retire(self, server: Server, *, is_removed: bool) -> None:
        name = server.name
        self._closing[name], self._ends[name] = server, asyncio.Event()
        self._last_status[name] = server.status()
        server.retire(
            NotConnected(name, "removed", "it is no longer configured")
            if is_removed
            else NotConnected(name, "replaced", "its entry has changed: it is being replaced")
        )

    async def _replace(self, name: str, server: Server) -> None:
        """Closes a server, and starts the one that is configured by its name then."""
        try:
            await server.connection.close()
        finally:
            del self._closing[name], self._last_status[name]
            self._ends.pop(name).set()
        entry = self.configuration.servers.get(name)
        if self._is_open and entry is not None:
            self._add(entry).connection.start()

    # Questions about the servers.

    def statuses(self) -> Mapping[str, ServerStatus]:
        replaced = {name: being_replaced(self._last_status[name]) for name in self._replaced()}
        return {**replaced, **{name: server.status() for name, server in self._servers.items()}}

    def status_of(self, name: str) -> ServerStatus | None:
        """The status of one server, without computing those of the others; None if there is none."""
        server = self._servers.get(name)
        if server is not None:
            return server.status()
        return being_replaced(self._last_status[name]) if name in self._replaced() else None

    def _replaced(self) -> Collection[str]:
        """The servers that are being closed and will be started again."""
        return self._closing.keys() & self.configuration.servers.keys()

    def tools(self) -> list[ServerTool]:
        """The tools that can be called now, or as soon as a server that is reconnecting is there."""
        offering = {name for name, server in self._servers.items() if server.connection.offers_tools}
        for name in offering:
            self._servers[name].refresh_tools_if_expired()
        return [tool for tool in self.catalog.tools() if tool.server in offering]

    def named(self, name: str) -> Server:
        """The server of this name; `ConfigError` if there is none."""
        server = self._servers.get(name)
        if server is None and name in self._replaced():
            raise ConfigError(
                f"server {name!r} is being replaced: its entry has changed, and the old process still ends",
                hint="Try it again when that has ended.",
            )
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
        known = self.find(server) or self._closing.get(server)
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

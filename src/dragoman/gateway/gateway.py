"""The clients of the gateway: their connections, and the notifications about changes at servers."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping
from functools import partial
from time import monotonic
from typing import Any, Final, get_args

from dragoman.catalog.naming import prefix, qualify
from dragoman.catalog.tools import ServerTool, may_have_argument
from dragoman.cleaning import one_line
from dragoman.events import (
    ConfigurationChanged,
    Event,
    EventsDropped,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ServerEvent,
    ServerLogged,
    ServerLost,
    ServerStateChanged,
    ToolsChanged,
)
from dragoman.gateway.access import KnownCaller
from dragoman.gateway.callers import (
    HOSTS_LIMIT,
    HOSTS_LIMIT_REACHED,
    REPORTED,
    CallerHosts,
    CallerServers,
    offers,
)
from dragoman.gateway.exposed import PREFIX, Owners, exposed
from dragoman.gateway.handlers import ClientHandlers
from dragoman.gateway.metrics import Metrics
from dragoman.gateway.questions import ClientQuestions, RunningRequest
from dragoman.gateway.replicas import Replicas, shared_reads
from dragoman.gateway.result_limit import ResultLimit
from dragoman.gateway.settings import SEARCH_NAMES, View
from dragoman.gateway.shared_audit import SharedAudit
from dragoman.gateway.store.accounts import SharedAccounts
from dragoman.gateway.store.base import GatewayStore
from dragoman.gateway.store.redis import RedisStore
from dragoman.gateway.store.sqlite import SqliteStore
from dragoman.gateway.tool_search import FoundTools
from dragoman.gateway.view_cache import Key, ViewCache
from dragoman.host import Host
from dragoman.interaction import Caller
from dragoman.version import VERSION
from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.request import Send
from dragoman.wire.server.service import Client, ListKind, Service

REPORT_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.05
"""Changes of lists within this time are reported together."""
_KINDS: Final[Mapping[type[Event], tuple[ListKind, ...]]] = {
    ToolsChanged: ("tools",),
    ResourcesChanged: ("resources",),
    PromptsChanged: ("prompts",),
    ServerStateChanged: ("tools", "resources", "prompts"),
}
"""The lists that may have changed after an event."""


class Gateway:
    """Serves the tools, resources and prompts of one host to many clients."""

    def __init__(
        self,
        host: Host,
        questions: ClientQuestions,
        *,
        plain_names: bool = False,
        views: Mapping[str, View] | None = None,
        store: GatewayStore | None = None,
        callers: CallerHosts | None = None,
    ) -> None:
        """`questions`: the host's interaction and sampler. `plain_names`: see `exposed.py`. `store`: without
        one, everything ends with the process. `callers`: where these have servers of their own."""
        self.host = host
        self.questions = questions
        self.plain_names = plain_names
        self.views = {"": View(), **(views or {})}
        self.limits = {
            name: ResultLimit(view.result_tokens) for name, view in self.views.items() if view.result_tokens
        }
        """By view, of the results of calls."""
        self.store: GatewayStore = store or SqliteStore()
        if isinstance(self.store, SqliteStore):
            self.store.report = lambda problem: self.report(problem)
        if isinstance(store, RedisStore):
            host.share_reads(shared_reads(store))
        self.replicas = Replicas(self, store) if isinstance(store, RedisStore) else None
        """The other replicas, where there can be any."""
        if self.replicas is not None:
            questions.replica = self.replicas.name
            if isinstance(host.accounts, SharedAccounts):
                self.replicas.on_account = host.accounts.changed
        log = host.audit_log()
        self._audit = SharedAudit(store, log) if isinstance(store, RedisStore) and log is not None else None
        self.metrics = Metrics()
        self.report: Callable[[str], None] = lambda text: None
        """Called with messages for the operator of the gateway."""
        self.callers = callers
        if callers is not None:
            callers.on_open = self._own_opened
            callers.report = lambda problem: self.report(problem)
            if self.replicas is not None:
                callers.share_with(self.replicas)
        self._reported_until = 0.0
        """The time until which a refused host of a caller is not reported again."""
        self._connections: dict[ClientConnection, KnownCaller] = {}
        self._running: dict[tuple[Host, str], list[RunningRequest]] = {}
        """By server, the requests of clients that it is answering."""
        self._tool_owners: Owners = {}
        self.prompt_owners: dict[Key, Owners] = {}
        """The prompts that a client sees depend on its rights and its view."""
        self._cache = ViewCache()
        self._is_current = False
        """Whether it is that of now."""

    def view(self, name: str) -> View:
        return self.views[name]

    def name_of(self, tool: ServerTool) -> str:
        """The name of a tool with which patterns in the gateway's settings are compared."""
        return tool.name.removeprefix(PREFIX)

    def tools(self, view: str = "", own: CallerServers | None = None) -> Mapping[str, ServerTool]:
        """The tools by the name that clients of the view use, without those for which a rule denies every
        call. `own`: the caller's own servers."""
        chosen = self.views[view]
        taken = SEARCH_NAMES if chosen.tool_search else ()
        every = self.host.tools()
        if own is not None:
            every = sorted([*every, *own.tools()], key=lambda tool: tool.name)
        offered = {
            name: tool
            for name, tool in exposed(
                every,
                plain=self.plain_names,
                taken=taken,
                owners=self._tool_owners,
                servers=self.host.configuration.servers,
            ).items()
            if offers(chosen, tool, self.name_of(tool))
        }
        # A whole name means one server's tool, also where clients use plain names.
        new_names = {
            name: chosen.rename[known]
            for name, tool in offered.items()
            for known in (name, self.name_of(tool))
            if known in chosen.rename
        }
        renamed = {new: offered[name] for name, new in new_names.items()}
        # A name that the view gives is never another tool's, also while the tool that it is for is missing.
        given = {*chosen.rename, *chosen.rename.values(), *new_names}
        kept = {name: tool for name, tool in offered.items() if name not in given}
        found = {**renamed, **kept}
        self._cache_for(own).names[view] = {name: tool.name for name, tool in found.items()}
        return found

    def tool(self, name: str, view: str = "", own: CallerServers | None = None) -> ServerTool | None:
        """The tool that clients of the view call so; None if `tools` does not have it."""
        self._update()
        names = self._cache_for(own).names
        if view not in names:
            self.tools(view, own)
        qualified = names[view].get(name)
        if qualified is None:
            return None
        return self.host.tool(qualified) or (None if own is None else own.tool(qualified))

    async def find_tool(self, name: str, view: str, own: CallerServers | None) -> ServerTool | None:
        """Like `tool`, after waiting for servers of the caller that are connecting."""
        tool = self.tool(name, view, own)
        is_own_name = self.views[view].tool_search and name in SEARCH_NAMES
        if tool is None and own is not None and not is_own_name:
            await own.connected()
            tool = self.tool(name, view, own)
        return tool

    def _cache_for(self, own: CallerServers | None) -> ViewCache:
        if own is None:
            return self._cache
        if own.cache.version != self._cache.version:
            own.cache.version = self._cache.version
            own.cache.clear()
        return own.cache

    def _update(self) -> None:
        if not self._is_current:
            self._is_current = True
            self._cache.version += 1
            self._cache.clear()

    def instructions(self, handlers: ClientHandlers) -> str | None:
        """The instructions of the servers of which the client may use something."""
        self._update()
        own, key = handlers.own, (handlers.rights, handlers.view)
        known = self._cache_for(own).instructions
        if key not in known:
            tools = self.tools(handlers.view, own).values()
            servers = {tool.server for tool in tools if handlers.may_call(tool)}
            found = {**self.host.instructions(), **({} if own is None else own.host.instructions())}
            texts = [
                f"## {name}\n{text}"
                for name, text in found.items()
                if name in servers or handlers.may_use(name)
            ]
            known[key] = "\n\n".join(texts) or None
        return known[key]

    def found_tools(self, handlers: ClientHandlers, tools: Mapping[str, ServerTool]) -> FoundTools:
        """These tools, which are all that the client may use, for searching."""
        own, key, view = handlers.own, (handlers.rights, handlers.view), handlers.view
        known = self._cache_for(own).found
        found = known.get(key)
        if found is None or not found.are_of(tools):
            fixed = partial(self.fixed_arguments, view=view)
            found = known[key] = FoundTools(tools, self.views[view], fixed)
        return found

    def fixed_arguments(self, tool: ServerTool, view: str) -> Mapping[str, Any]:
        """The arguments that a view fixes for a tool, by every name that the tool has or could have there:
        which of them it has depends on the tools of other servers."""
        chosen = self.views[view]
        if not chosen.arguments:
            return {}
        names = self._every_name_of(tool, chosen)
        return {
            key: value
            for name, fixed in chosen.arguments.items()
            if name in names
            for key, value in fixed.items()
        }

    def _every_name_of(self, tool: ServerTool, view: View) -> set[str]:
        names = {self.name_of(tool), qualify(tool.server, tool.wire_name).removeprefix(PREFIX)}
        names |= {tool.wire_name} if self.plain_names else set()
        names |= {view.rename[name] for name in names & view.rename.keys()}
        return {*names, tool.name}  # with the prefix it is a tool's name in rules

    def unused_arguments(self) -> list[str]:
        """Which views fix arguments of a tool that no server has, or that the tool does not have. Tools of
        servers to which callers sign in are not known."""
        unknown = tuple(prefix(name).removeprefix(PREFIX) for name in self.host.configuration.set_aside)
        return [
            problem
            for view, chosen in self.views.items()
            for name in chosen.arguments
            if not name.removeprefix(PREFIX).startswith(unknown)
            for problem in self._unused_arguments_of(view, name)
        ]

    def _unused_arguments_of(self, view: str, name: str) -> Iterator[str]:
        chosen = self.views[view]
        tools = [tool for tool in self.host.tools() if name in self._every_name_of(tool, chosen)]
        if not tools:
            reason = "but no server has this tool; they have no effect"
            yield f"view {view!r} fixes arguments of {name!r}, {reason}"
        for argument in chosen.arguments[name] if tools else ():
            if not any(may_have_argument(tool.input_schema, argument) for tool in tools):
                yield f"view {view!r} fixes the argument {argument!r} of {name!r}, which has no such argument"

    @contextlib.asynccontextmanager
    async def client(
        self, caller: KnownCaller, send: Send, view: str = "", session: Client | None = None
    ) -> AsyncGenerator[ClientConnection]:
        """One client's connection, for as long as the block lasts. `send`: takes its messages. `session`: a
        legacy client that has been initialized elsewhere."""
        handlers = ClientHandlers(self, caller, view)
        connection = ClientConnection(self._service(handlers), send, session, self._first_id())
        handlers.updated, handlers.ended = connection.resource_updated, connection.subscription_ended
        self._connections[connection] = caller
        try:
            yield connection
        finally:
            del self._connections[connection]
            await connection.close()
            await handlers.close()

    def _first_id(self) -> int:
        """Of the requests to a client. Several replicas may ask it something in the same session, and its
        answer may come to another one: no two use the same id."""
        return 1 if self.replicas is None else secrets.randbits(30) << 20

    def _service(self, handlers: ClientHandlers) -> Service:
        return Service(
            name="dragoman",
            version=VERSION,
            handlers=handlers.table(),
            instructions=self.instructions(handlers),
            list_changes=frozenset({"tools", "resources", "prompts"}),
        )

    def request_began(self, host: Host, server: str, request: RunningRequest) -> None:
        """Notes that a server is answering a client's request, until `request_ended`."""
        self._running.setdefault((host, server), []).append(request)

    def request_ended(self, host: Host, server: str, request: RunningRequest) -> None:
        requests = self._running[host, server]
        requests.remove(request)
        if not requests:
            del self._running[host, server]

    def hosts(self) -> list[Host]:
        """Its own, and those of callers that are open."""
        return [self.host, *(() if self.callers is None else self.callers.hosts())]

    @property
    def client_count(self) -> int:
        return len(self._connections)

    # What servers report.

    async def run(self) -> None:
        """Passes on what servers and other replicas report, until the host is closed."""
        events = self.host.events(*REPORTED)
        if self.replicas is None:
            return await self._report(self.host, events)
        sharing = [asyncio.create_task(self.replicas.run())]
        if self._audit is not None:
            sharing.append(asyncio.create_task(self._audit.run()))
        for task in sharing:
            task.add_done_callback(self._sharing_ended)
        try:
            await self._report(self.host, events)
        finally:
            for task in sharing:
                task.cancel()
            await asyncio.wait(sharing)

    def _sharing_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.report(f"replicas are not notified any more: unexpected error {type(error).__name__}")

    def _own_opened(self, own: CallerServers) -> asyncio.Task[None]:
        return asyncio.create_task(self._report(own.host, own.events, own))

    async def _report(
        self, host: Host, events: AsyncIterator[Event], own: CallerServers | None = None
    ) -> None:
        """Passes on what the servers of one host report; those of a caller, to its clients alone."""
        changed: set[ListKind] = set()
        timer: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()

        def report() -> None:
            kinds = sorted(changed)
            changed.clear()
            for connection, known in list(self._connections.items()):
                if own is None or known.caller == own.caller:
                    for kind in kinds:
                        connection.list_changed(kind)

        try:
            async for event in events:
                kinds = self._noted(host, event, own)
                if kinds and not changed:
                    timer = loop.call_later(PAUSE_SECONDS, report)
                changed.update(kinds)
        finally:
            if timer is not None:
                timer.cancel()

    def _noted(self, host: Host, event: Event, own: CallerServers | None) -> Collection[ListKind]:
        """Passes on an event of a host; returns the lists that may have changed."""
        if isinstance(event, ServerLost):
            self.metrics.lost[event.server] += 1
        if isinstance(event, ResourceUpdated | ResourcesChanged) and self.replicas is not None:
            self.replicas.resources_reported(host, event.server)
        if isinstance(event, ServerLogged):
            self._logged(host, event)
        kinds = _KINDS.get(type(event), ())
        if isinstance(event, EventsDropped):  # any list may have changed
            kinds = get_args(ListKind)
        if isinstance(event, ConfigurationChanged):
            kinds = get_args(ListKind) if event.rules_changed else ()
            for problem in event.problems if own is None else ():  # those of the shared host are the same
                self.report(problem)
        if kinds and own is None:
            self._is_current = False
            self._notify_replicas(event)
        elif kinds and own is not None:
            own.cache.clear()
        return kinds

    def _notify_replicas(self, event: Event) -> None:
        if self.replicas is None or not isinstance(event, ServerEvent):
            return
        if not isinstance(event, ServerStateChanged):
            self.replicas.list_read(event.server, _KINDS[type(event)][0])
        elif event.status != "connected":
            self.replicas.server_lost(event.server)

    def _logged(self, host: Host, event: ServerLogged) -> None:
        """Passes a log message to the client whose request the server is answering; if there are several, to
        none, because it may contain data of another client."""
        requests = self._running.get((host, event.server), ())
        if event.is_message and len(requests) == 1:
            requests[0].request.log(event.level, event.text, event.logger or event.server)

    def disconnected(self, caller: Caller, reason: str) -> None:
        """Reports that a client was disconnected, with the reason."""
        self.metrics.disconnected[reason] += 1
        self.report(f"a client of {one_line(caller.id, 200)} was disconnected: {reason}")

    def caller_host_refused(self, caller: Caller, servers: list[str]) -> None:
        """Reports, at most once a minute, that a request is answered without the caller's own servers."""
        self.metrics.caller_hosts_refused += 1
        if monotonic() >= self._reported_until:
            self._reported_until = monotonic() + REPORT_SECONDS
            names = ", ".join(servers)
            self.report(
                f"{one_line(caller.id, 200)} is served without {names}: {HOSTS_LIMIT_REACHED} ({HOSTS_LIMIT})"
            )

    async def close(self) -> None:
        """Ends subscriptions with their results, and calls that wait for answers."""
        for connection in list(self._connections):
            connection.end_subscriptions()
        self.questions.close()

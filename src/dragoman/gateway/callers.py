"""Callers with their own sign-ins: a host for each caller, with the servers to which it signs in itself.

The host of a caller is opened with its first request, is shared by all its clients, and is closed when it was
not used for a while. It has the entries, rules, hooks, policy and audit log of the gateway's own host, and
tokens that are stored for this caller alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Generator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final

from dragoman.catalog.naming import prefix
from dragoman.catalog.tools import ServerTool
from dragoman.cleaning import one_line
from dragoman.config.load import Configuration
from dragoman.connections.factory import AccountOptions, check_takes_accounts
from dragoman.errors import ConfigError
from dragoman.events import (
    ConfigurationChanged,
    Event,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ServerLogged,
    ServerLost,
    ServerStateChanged,
    ToolsChanged,
)
from dragoman.gateway.exposed import PREFIX
from dragoman.gateway.settings import Selection
from dragoman.gateway.sign_in_pages import CallerReturn, SignInPages
from dragoman.gateway.store.accounts import SharedAccounts
from dragoman.gateway.store.base import GatewayStore
from dragoman.gateway.store.redis import RedisStore
from dragoman.gateway.view_cache import ViewCache
from dragoman.host import Host
from dragoman.interaction import Caller
from dragoman.names import ServerName
from dragoman.sign_ins import SignInTool

if TYPE_CHECKING:
    from dragoman.gateway.access import KnownCaller
    from dragoman.gateway.replicas import Replicas

REPORTED: Final = (
    ConfigurationChanged,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ServerLogged,
    ServerLost,
    ServerStateChanged,
    ToolsChanged,
)
"""What clients, other replicas or the operator are notified of; see `Gateway`."""
IDLE_SECONDS: Final = 900.0
"""The idle time after which the host of a caller is closed."""
HOSTS_LIMIT: Final = 500
"""The maximum number of open hosts of callers; one more closes the least recently used."""
HOSTS_LIMIT_REACHED: Final = "too many callers use servers with accounts of their own"
FIRST_LIST_SECONDS: Final = 1.0
"""How long the first list of a caller waits for its servers; later changes are notified."""
CALL_SECONDS: Final = 30.0
"""How long a call waits for the servers of its caller to be connected, if its tool is not known yet."""


def identity_of(caller: Caller) -> str:
    """The identity under which the caller's tokens are stored: different for each caller."""
    digest = hashlib.sha256(caller.id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"gateway-caller-{digest}"


def check_names(configuration: Configuration, names: Collection[str]) -> None:
    """`ConfigError` unless callers can sign in to each of these servers."""
    for name in names:
        server = configuration.servers.get(name)
        if server is None:
            raise ConfigError(
                f"callerSignIn names the server {name!r}, which is not configured",
                hint=f"Add it with `dragoman mcp add {name} …`, or take it out of callerSignIn.",
            )
        if server.config is not None:
            check_takes_accounts(name, server.config)


def accounts_in(store: GatewayStore | None) -> SharedAccounts | None:
    """The store of accounts that replicas share; None: the secret store of this machine."""
    if not isinstance(store, RedisStore):
        return None
    from dragoman.auth.stores.base import Vault
    from dragoman.gateway.replicas import announcing

    return SharedAccounts(store, Vault(), announcing(store))


class SignInOffer(ServerTool):
    """The pseudo-tool by which a caller signs in to a server, as a tool of that server."""


def offers(selection: Selection, tool: ServerTool, name: str) -> bool:
    """Whether the tool is in the selection; a sign-in is if some tool of its server may be."""
    if isinstance(tool, SignInOffer):
        return selection.offers_some_tool(tool.server, prefix(tool.server).removeprefix(PREFIX))
    return selection.offers_tool(tool.server, name)


class CallerServers:
    """The servers of one caller, while its host is open."""

    def __init__(self, caller: Caller, host: Host) -> None:
        self.caller = caller
        self.host = host
        self.events: AsyncIterator[Event] = host.events(*REPORTED)
        self.cache = ViewCache()
        self.last_used = monotonic()
        self.use_count = 0
        self.tasks: list[asyncio.Task[None]] = []
        self._offers: dict[str, SignInOffer] = {}
        self._settled = asyncio.Event()
        self._opened_at = asyncio.get_running_loop().time()

    async def open(self) -> None:
        await self.host.__aenter__()
        self.tasks.append(asyncio.create_task(self._settle()))

    async def _settle(self) -> None:
        await self.host.ready()
        self._settled.set()

    async def first_settled(self) -> None:
        """Waits until the servers are connected or have failed, for a short time after the host was
        opened."""
        if not self._settled.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._opened_at + FIRST_LIST_SECONDS):
                    await self._settled.wait()

    async def connected(self) -> None:
        """Waits until no server is being connected."""
        await self.host.ready(CALL_SECONDS)

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        """Keeps the host open for as long as the block lasts."""
        self.use_count += 1
        try:
            yield
        finally:
            self.use_count -= 1
            self.last_used = monotonic()

    def tools(self) -> list[ServerTool]:
        """The tools that can be called, and those that start a sign-in."""
        return [*self.host.tools(), *self._sign_ins().values()]

    def tool(self, name: str) -> ServerTool | None:
        """By its qualified name."""
        return self.host.tool(name) or self._sign_ins().get(name)

    def _sign_ins(self) -> Mapping[str, ServerTool]:
        found = [self._offer_of(tool) for tool in self.host.sign_in_tools().values()]
        denied = self.host.denied(found)
        return {tool.name: tool for tool in found if tool.name not in denied}

    def _offer_of(self, tool: SignInTool) -> SignInOffer:
        """The same object for as long as the tool is the same."""
        known = self._offers.get(tool.name)
        if known is None or known.definition is not tool.definition:
            known = SignInOffer(ServerName(tool.signs_in_to), tool.name, tool.definition)
            self._offers[tool.name] = known
        return known

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.host.close()


class CallerHosts:
    """The hosts of all callers that are open."""

    def __init__(self, host: Host, pages: SignInPages) -> None:
        self._shared = host
        self.pages = pages
        self._open: dict[Caller, CallerServers] = {}
        """The open hosts of callers; the one that was used last is at the end."""
        self._closing: set[asyncio.Task[None]] = set()
        self.on_open: Callable[[CallerServers], asyncio.Task[None]] | None = None
        """Called before the servers are connected; the task ends before they are closed."""
        self.report: Callable[[str], None] = lambda text: None
        """Called with messages for the operator of the gateway."""

    def __len__(self) -> int:
        return len(self._open)

    def hosts(self) -> list[Host]:
        return [own.host for own in self._open.values()]

    def share_with(self, replicas: Replicas) -> None:
        """Sets the other replicas, at which sign-ins may continue."""
        self.pages.replica = replicas.name
        self.pages.pass_on = replicas.ask_page

    def find(self, caller: Caller) -> CallerServers | None:
        """The caller's servers, if they are open."""
        return self._open.get(caller)

    @contextlib.asynccontextmanager
    async def serving(self, known: KnownCaller) -> AsyncGenerator[CallerServers | None]:
        """The caller's servers, open for as long as the block lasts; None for a caller that may use none of
        them, and if too many callers use theirs at this moment."""
        own = await self._opened(known)
        if own is None:
            yield None
            return
        with own.used():
            yield own

    def missing(self, known: KnownCaller) -> list[str]:
        """The servers of a caller whose host cannot be opened now: the limit of hosts is reached."""
        return [] if known.caller in self._open else self._servers_of(known)

    def _servers_of(self, known: KnownCaller) -> list[str]:
        """Those of which the caller may use something."""
        return [
            name
            for name in self._shared.configuration.set_aside
            if any(
                each.offers_server(name) or each.offers_some_tool(name, prefix(name).removeprefix(PREFIX))
                for each in known.selections
            )
        ]

    async def _opened(self, known: KnownCaller) -> CallerServers | None:
        caller = known.caller
        if not self._servers_of(known):
            return None
        own = self._open.pop(caller, None)
        if own is None:
            if len(self._open) >= HOSTS_LIMIT and not self._close_longest_unused():
                return None
            own = CallerServers(caller, self._shared.for_account(self._options(caller)))
            if self.on_open is not None:
                own.tasks.append(self.on_open(own))
            self._open[caller] = own
            try:
                await own.open()
            except BaseException:
                self._close_soon(own)
                raise
        else:
            self._open[caller] = own
        return own

    def _options(self, caller: Caller) -> AccountOptions:
        def begin(server: str) -> CallerReturn:
            own = self._open.get(caller)  # None: it is being closed, and so is the sign-in
            return self.pages.begin(
                caller.id, server, contextlib.nullcontext() if own is None else own.used()
            )

        return AccountOptions(identity_of(caller), begin, _advice)

    def _close_longest_unused(self) -> bool:
        for own in self._open.values():
            if not own.use_count:
                self._close_soon(own)
                return True
        return False

    def _close_soon(self, own: CallerServers) -> None:
        self._open.pop(own.caller, None)
        task = asyncio.create_task(self._closed(own))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _closed(self, own: CallerServers) -> None:
        try:
            await own.close()
        except Exception as error:  # border: a failure of one caller's servers does not affect others
            caller, kind = one_line(own.caller.id, 200), type(error).__name__
            self.report(f"the servers of {caller} could not be closed: unexpected error {kind}")

    def close_idle(self) -> None:
        limit = monotonic() - IDLE_SECONDS
        for own in list(self._open.values()):
            if not own.use_count and own.last_used < limit:
                self._close_soon(own)

    async def close(self) -> None:
        for own in list(self._open.values()):
            self._close_soon(own)
        await asyncio.gather(*self._closing, return_exceptions=True)


def _advice(server: str) -> str:
    return f"Call the tool {server}__authenticate, and open the page that it names."

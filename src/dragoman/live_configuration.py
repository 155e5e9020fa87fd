"""The configuration of a running host: read again, applied, followed, and saved.

Configuration is read and applied to the parts of the host under one lock, so that an older version is never
applied after a newer one. A failure is published as `ConfigurationChanged` with a problem.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from dragoman.access_control import AccessControl
from dragoman.calls.resources import Resources
from dragoman.config import approval, connectors
from dragoman.config.all_files import is_current
from dragoman.config.file_watch import changes, stamps
from dragoman.config.load import Configuration, load, path_of
from dragoman.config.model import fingerprint
from dragoman.config.plan import Plan, compare, remember, snapshots_of
from dragoman.config.scopes import IN_PROJECT, Sources
from dragoman.content.prepare import Preparer, ResultLimits
from dragoman.errors import DragomanError
from dragoman.events import ConfigurationChanged, EventBus
from dragoman.servers.registry import ServerRegistry

SAVE_SECONDS: Final = 2.0
"""How long closing waits until the servers in use have been saved."""


class ConfigurationSource(NamedTuple):
    """Which configuration a host uses."""

    sources: Sources
    only: frozenset[str] | None = None
    """The servers to use, of all that are configured; None: all."""
    set_aside: frozenset[str] = frozenset()
    """Servers that are left to the hosts of single accounts."""
    parent: Callable[[], Configuration] | None = None
    """For the host of an account: the configuration from which it takes the servers that were set aside. It
    reads no files, so that the same rules apply to an entry here as in that configuration."""

    def load(
        self, *, running: Mapping[str, str] | None = None, before: Configuration | None = None
    ) -> Configuration:
        if self.parent is not None:
            return self.parent().of_set_aside()
        configuration = load(self.sources, running=running, before=before)
        if self.only is not None:
            configuration = configuration.narrowed(self.only)
        return configuration.setting_aside(self.set_aside) if self.set_aside else configuration


class ConfiguredParts(NamedTuple):
    """The parts of a host that follow the configuration."""

    servers: ServerRegistry
    access: AccessControl
    shares_access: bool
    """Whether `access` belongs to another host, which updates it."""
    preparer: Preparer
    resources: Resources
    bus: EventBus


class LiveConfiguration:
    def __init__(
        self, selection: ConfigurationSource, parts: ConfiguredParts, reloading: asyncio.Lock
    ) -> None:
        """`reloading`: held while configuration is read and applied."""
        self._selection = selection
        self._parts = parts
        self._reloading = reloading
        self.is_open = False
        self.connectors_known = asyncio.Event()
        """Set once the organisation's list of servers was fetched, or if it is not used."""
        self._background: list[asyncio.Task[None]] = []
        self._reloads: set[asyncio.Task[Plan]] = set()
        self._children: WeakSet[LiveConfiguration] = WeakSet()
        self._unsaved: Configuration | None = None
        """The newest configuration, until `_saving` has written which of its servers are in use."""
        self._saving: asyncio.Task[None] | None = None
        self._failure = ""
        """Why the last reload in the background failed."""

    @property
    def current(self) -> Configuration:
        return self._parts.servers.configuration

    @property
    def problems(self) -> tuple[str, ...]:
        """The configuration that cannot be used: files and entries, then rules and hooks."""
        return (*self.current.problems, *self._parts.access.problems)

    def add_child(self, child: LiveConfiguration) -> None:
        """Adds the configuration of an agent's own servers: it is reloaded after each change of this one."""
        child._parts.servers.catalog.set_other_servers(self._parts.servers.naming_servers())
        self._children.add(child)

    def start(self, *, watch: bool) -> None:
        """`watch`: changes of the files are applied until `close`."""
        self.is_open = True
        self._run(self._fetch_connectors())
        self._save_soon(self.current)
        if watch:
            self._run(self._follow())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.append(asyncio.create_task(work, name="dragoman configuration"))

    async def close(self) -> None:
        self.is_open = False
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, *self._reloads, return_exceptions=True)
        if self._saving is not None:
            await asyncio.wait([self._saving], timeout=SAVE_SECONDS)
            self._saving.cancel()

    async def plan(self) -> Plan:
        """The changes that `reload` would make now."""
        return compare(snapshots_of(self.current), snapshots_of(await self._read()))

    async def reload(self) -> Plan:
        plan = await self._reload_once()
        await self._ended()
        if self._saving is not None:
            await asyncio.wait([self._saving])
        return plan

    async def _ended(self) -> None:
        """Waits until servers whose entry was removed or has changed are closed. Not under the lock: what is
        changed meanwhile, perhaps a prohibition, has an effect at once."""
        await asyncio.gather(self._parts.servers.ended(), *(child._ended() for child in self._children))

    async def _reload_once(self) -> Plan:
        # A task of its own: a caller that is cancelled does not leave the change half done.
        task = asyncio.create_task(self._reload(), name="dragoman reload")
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)
        return await asyncio.shield(task)

    async def _reload(self) -> Plan:
        async with self._reloading:
            new = await self._read()
            plan = compare(snapshots_of(self.current), snapshots_of(new))
            await self._apply(new, plan)
        return plan

    async def _read(self) -> Configuration:
        running = {
            server.name: fingerprint(server.candidate.given)
            for server in (
                *(each.entry for each in self._parts.servers.values()),
                *self.current.set_aside.values(),
            )
            if server.scope in IN_PROJECT and server.eligibility == "ready"
        }
        return await asyncio.to_thread(self._selection.load, running=running, before=self.current)

    async def _apply(self, new: Configuration, plan: Plan) -> None:
        servers, access = self._parts.servers, self._parts.access
        known, rules = self.problems, access.permissions.rules
        for name in (*plan.removed, *plan.changed, *plan.added):
            access.permissions.forget(name)
        if not self._parts.shares_access:
            access.adopt(new)
        self._parts.preparer.limits = limits_of(new)
        self._parts.resources.end_denied()
        servers.apply(new, plan)
        if not self.is_open:
            return
        rules_changed = access.permissions.rules != rules
        is_new = not plan.is_empty or self.problems != known
        if is_new or rules_changed:
            self._parts.bus.publish(
                ConfigurationChanged(
                    added=plan.added,
                    removed=plan.removed,
                    changed=plan.changed,
                    rules_changed=rules_changed,
                    problems=self.problems if is_new else (),
                )
            )
        self._save_soon(new)
        children = list(self._children)
        for child in children:
            child._parts.servers.catalog.set_other_servers(servers.naming_servers())
        await asyncio.gather(*(child._reload_in_background() for child in children))

    async def _reload_in_background(self) -> None:
        """Reloads where no caller waits for the result."""
        failure = ""
        try:
            if self.is_open:
                await self._reload_once()
        except DragomanError as error:
            failure = str(error)
        except Exception as error:  # border: after any failure, later changes must still be noticed
            failure = f"configuration could not be applied: {type(error).__name__}"
        if failure and failure != self._failure:
            self._report(failure)
        self._failure = failure

    def _report(self, problem: str) -> None:
        self._parts.bus.publish(ConfigurationChanged(problems=(problem,)))

    async def _follow(self) -> None:
        sources = self._selection.sources
        since = stamps(sources)
        await self._reload_in_background()  # for changes since this host was made
        async for _ in changes(sources, since, self._is_behind):
            await self._reload_in_background()

    def _is_behind(self) -> bool:
        """Whether a change of files that can forbid something could not be read or applied, for example
        because no file descriptors or threads were left. Such a shortage ends without another change of the
        files."""
        reading = self.current.reading
        has_unread = any(content and content[0] == "error" for content in reading.contents.values())
        return (bool(self._failure) or has_unread) and not is_current(reading, self._selection.sources)

    async def _fetch_connectors(self) -> None:
        """Fetches the organisation's list if it is not fresh, and applies it."""
        wanted, sources = self.current.connectors, self._selection.sources
        cache = sources.connectors_cache
        try:
            if wanted is None or sources.only_given or self._selection.parent is not None:
                return
            if (await asyncio.to_thread(connectors.read_cache, cache, wanted)).is_fresh:
                return
            from dragoman.transports.web import proxy_for

            if await connectors.refresh(cache, wanted, self.current.environ, proxy_for=proxy_for):
                await self._reload_in_background()
        except DragomanError as error:
            self._report(str(error))
        finally:
            self.connectors_known.set()

    def _save_soon(self, configuration: Configuration) -> None:
        """Binds approvals by name to the entries that are started, and saves which servers are in use.
        Changes of files do not wait for it: another process may hold the lock of the file for a long time,
        for example while it is stopped."""
        if self._selection.sources.only_given:
            return
        self._unsaved = configuration
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save(), name="dragoman configuration in use")

    async def _save(self) -> None:
        while (configuration := self._unsaved) is not None:
            self._unsaved = None
            try:
                await asyncio.to_thread(self._write, configuration)
            except DragomanError as error:
                self._report(str(error))
            except OSError as error:
                self._report(f"the list of servers in use could not be saved: {error}")
            except RuntimeError:  # no thread can be started: what the caller needs one for reports it
                return

    def _write(self, configuration: Configuration) -> None:
        sources = self._selection.sources
        if self._selection.only is None and self._selection.parent is None:
            remember(sources, snapshots_of(configuration))
        for server in configuration.servers.values():
            path = path_of(configuration, server)
            if server.approval and server.approval.pin and server.eligibility == "ready" and path is not None:
                given: Any = server.candidate.given
                approval.remember(sources.approvals_file, path, server.name, given, "approved")


def limits_of(configuration: Configuration) -> ResultLimits:
    return ResultLimits(tokens=configuration.settings["MAX_MCP_OUTPUT_TOKENS"])

"""Servers' lists of resources, templates and prompts: read when needed, cached while valid.

A list is read once at a time, however many callers wait for it; it is read in advance when a server is
connected, and again when the server says that it changed. Unusable entries are dropped. The module of each
kind interprets the entries; `cache.py` decides how long they are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Raw, Struct

from dragoman.catalog.cache import Cache
from dragoman.catalog.paging import FetchPage, Steps, read_pages, undecoded
from dragoman.catalog.pool import Admit
from dragoman.catalog.prompts import PromptDefinition, read_prompt
from dragoman.catalog.resources import ReadReply, Resource, Template, read_resource, read_template
from dragoman.cleaning import one_line
from dragoman.clock import Clock
from dragoman.content.redact import Redactor, RedactorOf, no_redactor
from dragoman.events import EventBus, PromptsChanged, ResourcesChanged, ServerEvent
from dragoman.names import ServerName
from dragoman.wire.codec import Unreadable

UNPROMISED_SECONDS: Final = 60.0
"""How long a list keeps whose server promises neither a time nor to tell of changes."""
READS_KEPT_BYTES: Final = 16 * 1024 * 1024
"""Of resources that were read, with what it takes to keep each."""
PROBLEM_LIMIT: Final = 100
PAUSE_SECONDS: Final = 0.5
"""Between two readings of a list whose server says all the time that it changed."""

T = TypeVar("T", bound=Struct)


class ServerList(Struct, Generic[T], frozen=True):
    """One server's list, and what of it had to be left out."""

    items: tuple[T, ...] = ()
    problems: tuple[str, ...] = ()
    is_whole: bool = True


class Asker(Protocol):
    """Who can be asked for a page; a session is one."""

    async def request(
        self, method: str, params: Mapping[str, Any] | None, *, timeout_seconds: float
    ) -> Raw: ...


class KindOfList(Struct, Generic[T], frozen=True):
    method: str
    key: str
    """Where a page holds its items; what people call them, too."""
    capability: str
    read: Callable[[ServerName, Raw], T]
    identity: Callable[[T], str]
    """What no two entries of a list share."""
    what: str
    called: str = "address"
    """How people call what no two entries share."""


class ListsOf(Generic[T]):
    """All servers' lists of one kind."""

    def __init__(
        self,
        kind: KindOfList[T],
        clock: Clock,
        redactor_of: RedactorOf = no_redactor,
        admit: Callable[[T], str | None] | None = None,
    ) -> None:
        """`admit`: why an entry is left out, if it is."""
        self.kind = kind
        self._redactor_of = redactor_of
        self._admit = admit
        self._cache = Cache[ServerList[T]](clock)
        self._reading: dict[tuple[str, int], asyncio.Task[ServerList[T]]] = {}

    def known(self, server: ServerName, link: object) -> ServerList[T] | None:
        """What was read last, fresh or not; no request is sent."""
        return self._cache.last_known((server, ""), link)

    async def of(
        self, server: ServerName, link: object, fetch: FetchPage, *, promised: bool, fresh: bool = False
    ) -> ServerList[T]:
        """The list, from memory while it is fresh. `promised`: the server will tell if it changes."""
        if fresh:
            self.changed(server)  # nor what is being read: it may have been answered before now
        kept = self._cache.get((server, ""), link)
        if kept is not None:
            return kept
        key = (server, id(link))
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.create_task(self._read(server, link, fetch, promised))
            reading.add_done_callback(lambda done: self._read_to_its_end(key, done))
        # Whoever stops waiting does not stop it for the others.
        return await asyncio.shield(reading)

    def changed(self, server: ServerName) -> None:
        self._cache.changed(server)
        self._let_go(server)

    def forget(self, server: ServerName) -> None:
        self._cache.forget(server)
        self._let_go(server)

    def _read_to_its_end(self, key: tuple[str, int], reading: asyncio.Task[ServerList[T]]) -> None:
        if self._reading.get(key) is reading:
            del self._reading[key]

    def _let_go(self, server: ServerName) -> None:
        """Who asks from now on is not given what was asked for before."""
        for key in [key for key in self._reading if key[0] == server]:
            del self._reading[key]

    async def _read(
        self, server: ServerName, link: object, fetch: FetchPage, promised: bool
    ) -> ServerList[T]:
        ticket = self._cache.ticket((server, ""), link)
        pages = await read_pages(fetch, self.kind.key, self.kind.what, undecoded)
        items, problems = await self._usable(server, pages.items)
        told = (*_first(problems), *pages.problems)
        if pages.is_whole:
            listed = ServerList(items, told)
            ttl = pages.ttl_seconds
            self._cache.put(ticket, listed, UNPROMISED_SECONDS if ttl is None and not promised else ttl)
            return listed
        before = self._cache.last_known((server, ""), link)
        if before is not None and len(before.items) > len(items):
            return ServerList(before.items, (*told, "what was known before is shown"), is_whole=False)
        return ServerList(items, told, is_whole=False)

    async def _usable(self, server: ServerName, raws: list[Raw]) -> tuple[tuple[T, ...], list[str]]:
        found: dict[str, T] = {}
        problems: list[str] = []
        redact = self._redactor_of(server)
        steps = Steps()
        for number, raw in enumerate(raws, 1):
            await steps.after(raw)
            try:
                item = self.kind.read(server, raw)
                if redact:
                    item = self._covered(item, redact)
                if self.kind.identity(item) in found:
                    raise Unreadable("it is listed twice")
                if self._admit is not None and (reason := self._admit(item)) is not None:
                    raise Unreadable(f"{one_line(self.kind.identity(item), 80)!r}: {reason}")
                found[self.kind.identity(item)] = item
            except Unreadable as error:
                problems.append(f"number {number} of the {self.kind.what} is left out: {error.detail}")
        return tuple(found.values()), problems if not redact else list(map(redact.text, problems))

    def _covered(self, item: T, redact: Redactor) -> T:
        identity = self.kind.identity(item)
        if redact.text(identity) != identity:  # it could not be asked for without saying it
            raise Unreadable(f"its {self.kind.called} holds a secret of the server's entry")
        return redact.struct(item, _IDENTITIES)


def _first(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - PROBLEM_LIMIT
    return tuple(problems) if more <= 0 else (*problems[:PROBLEM_LIMIT], f"and {more} problems more")


RESOURCES: Final = KindOfList[Resource](
    "resources/list", "resources", "resources", read_resource, lambda item: item.uri, "resources"
)
TEMPLATES: Final = KindOfList[Template](
    "resources/templates/list",
    "resourceTemplates",
    "resources",
    read_template,
    lambda item: item.uri_template,
    "resource templates",
)
PROMPTS: Final = KindOfList[PromptDefinition](
    "prompts/list", "prompts", "prompts", read_prompt, lambda item: item.wire_name, "prompts", "name"
)
_IDENTITIES: Final = frozenset({"server", "uri", "uri_template", "wire_name"})


class Lists:
    """The lists of a host's servers besides their tools, and the resources that were read."""

    def __init__(
        self,
        clock: Clock,
        bus: EventBus,
        timeout_seconds: float,
        redactor_of: RedactorOf = no_redactor,
        admit: Admit | None = None,
    ) -> None:
        self.resources = ListsOf(RESOURCES, clock, redactor_of)
        self.templates = ListsOf(TEMPLATES, clock, redactor_of, admit)
        self.prompts = ListsOf(PROMPTS, clock, redactor_of, admit)
        self.reads = Cache[ReadReply](clock, READS_KEPT_BYTES)
        self._bus = bus
        self._timeout_seconds = timeout_seconds
        self._ahead: dict[tuple[ServerName, str], asyncio.Task[None]] = {}
        self._again: set[tuple[ServerName, str]] = set()

    @property
    def _all(self) -> tuple[ListsOf[Any], ...]:
        return (self.resources, self.templates, self.prompts)

    def opened(self, server: ServerName, asker: Asker, capabilities: Mapping[str, Any]) -> None:
        """A server is connected: its lists are read in the background."""
        self.forget(server)
        for capability in ("resources", "prompts"):
            if offers(capabilities, capability):
                self._read_ahead(server, asker, capability, capabilities)

    def noticed(self, server: ServerName, asker: Asker, method: str, capabilities: Mapping[str, Any]) -> None:
        """A server told of a change."""
        if method == "notifications/resources/updated":
            self.reads.changed(server)
        for capability in ("resources", "prompts"):
            if method == f"notifications/{capability}/list_changed" and offers(capabilities, capability):
                for lists in self._of(capability):
                    lists.changed(server)
                self.reads.changed(server)
                self._read_ahead(server, asker, capability, capabilities)

    def forget(self, server: ServerName) -> None:
        """A server has gone."""
        for lists in self._all:
            lists.forget(server)
        self.reads.forget(server)
        for key in [key for key in self._ahead if key[0] == server]:
            self._ahead.pop(key).cancel()

    def close(self) -> None:
        # A reading that a caller waits for ends with its session, with an error.
        for task in self._ahead.values():
            task.cancel()

    def _of(self, capability: str) -> list[ListsOf[Any]]:
        return [lists for lists in self._all if lists.kind.capability == capability]

    def _read_ahead(
        self, server: ServerName, asker: Asker, capability: str, capabilities: Mapping[str, Any]
    ) -> None:
        key = (server, capability)
        self._again.add(key)
        if key not in self._ahead:
            work = self._keep_up(key, asker, tells_of_changes(capabilities, capability))
            task = self._ahead[key] = asyncio.create_task(work, name=f"dragoman lists {server}")
            task.add_done_callback(lambda _: self._done(key, task))

    def _done(self, key: tuple[ServerName, str], task: asyncio.Task[None]) -> None:
        if self._ahead.get(key) is task:
            del self._ahead[key]

    async def _keep_up(self, key: tuple[ServerName, str], asker: Asker, promised: bool) -> None:
        server, capability = key
        had_nothing = all(not _has_something(each.known(server, asker)) for each in self._of(capability))
        while key in self._again:
            self._again.discard(key)
            found = await asyncio.gather(
                *(
                    lists.of(server, asker, self._fetcher(asker, lists.kind.method), promised=promised)
                    for lists in self._of(capability)
                )
            )
            # A server that has none of it, and never had, is no news.
            is_news = not had_nothing or any(map(_has_something, found))
            if is_news and self._bus.has_listeners:
                self._bus.publish(_event(capability, server, found))
            # One that changes its list all the time is not read all the time.
            await asyncio.sleep(PAUSE_SECONDS if key in self._again else 0)

    def _fetcher(self, asker: Asker, method: str) -> FetchPage:
        async def fetch(params: Mapping[str, Any]) -> Raw:
            return await asker.request(method, params, timeout_seconds=self._timeout_seconds)

        return fetch


def _has_something(found: ServerList[Any] | None) -> bool:
    return found is not None and bool(found.items or found.problems)


def _event(capability: str, server: ServerName, found: list[ServerList[Any]]) -> ServerEvent:
    problems = tuple(problem for each in found for problem in each.problems)
    if capability == "prompts":
        return PromptsChanged(server=server, prompt_count=len(found[0].items), problems=problems)
    return ResourcesChanged(
        server=server,
        resource_count=len(found[0].items),
        template_count=len(found[1].items),
        problems=problems,
    )


def offers(capabilities: Mapping[str, Any], capability: str) -> bool:
    """Whether a server has said that it has such a thing at all."""
    return isinstance(capabilities.get(capability), dict)


def tells_of_changes(capabilities: Mapping[str, Any], capability: str) -> bool:
    said: Any = capabilities.get(capability)
    return isinstance(said, dict) and said.get("listChanged") is True  # pyright: ignore[reportUnknownMemberType]

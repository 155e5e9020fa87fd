"""Reads and caches the lists of one server: tools, resources, resource templates and prompts.

Callers that want a list at the same time share one reading; it is read when the server is connected, and
again when the server reports a change or when its time (`ttlMs`) is over. When a reading fails, the last good
list stays in effect. Unusable entries are dropped; the modules in `catalog/` interpret them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Raw, Struct

from dragoman import tracing
from dragoman.catalog.catalog import Admit
from dragoman.catalog.listing import read_list
from dragoman.catalog.paging import FetchPage, Listing, Steps, read_pages, undecoded
from dragoman.catalog.prompts import PromptDefinition, read_prompt
from dragoman.catalog.resources import Resource, ResourceTemplate, read_resource, read_template
from dragoman.cleaning import one_line
from dragoman.clock import Clock
from dragoman.connections.session import Session
from dragoman.content.redact import Redactor
from dragoman.names import ServerName
from dragoman.settings import Settings
from dragoman.wire.codec import Unreadable
from dragoman.wire.messages import ToolDefinition

DEFAULT_TTL_SECONDS: Final = 60.0
"""How long a list is valid whose server promises neither a time nor to report changes."""
SHORTEST_TTL_SECONDS: Final = 30.0
"""The shortest time for which a list of tools is valid, even if `ttlMs` is shorter."""
PAUSE_SECONDS: Final = 0.5
"""The pause between two readings of a list whose server keeps sending `list_changed`."""
PROBLEM_LIMIT: Final = 100

T = TypeVar("T")
S = TypeVar("S", bound=Struct)


class ListContext(Struct, frozen=True):
    """What reading the lists of one server needs."""

    server: ServerName
    settings: Settings
    clock: Clock
    redactor: Redactor
    admit: Admit | None = None
    """Why an entry is left out, if it is."""


ReadAll = Callable[[ListContext, Session, FetchPage], Awaitable[Listing[T]]]


class ListKind(Struct, Generic[T], frozen=True):
    method: str
    capability: str
    what: str
    """What people call the entries of the list."""
    read_all: ReadAll[T]


class _Reading(NamedTuple, Generic[T]):
    task: asyncio.Task[Listing[T]]
    changes: int
    """How many changes had been reported when it began."""


class ListReader(Generic[T]):
    """One list of one server."""

    def __init__(
        self, kind: ListKind[T], context: ListContext, on_read: Callable[[Listing[T]], None] | None = None
    ) -> None:
        """`on_read` is called with each list that is stored."""
        self.kind = kind
        self._context = context
        self._on_read = on_read
        self.known: Listing[T] | None = None
        """What was read last, fresh or not."""
        self._changes = 0
        """How often the server reported a change."""
        self._known_at = 0
        """How many changes had been reported when `known` was requested."""
        self._fresh_until = -math.inf
        self._looked_at = -math.inf
        """When it was last decided whether to read again in the background."""
        self._reading: _Reading[T] | None = None
        self._numbers = count(1)
        self.is_late = False
        """Whether a list of all servers was made without it, and no reading has succeeded since."""
        self._newest = 0
        """The number of the newest reading whose result was used; the result of an earlier one is ignored."""

    async def get(
        self,
        session: Session,
        fetch: FetchPage | None = None,
        *,
        notifies_changes: bool = True,
        fresh: bool = False,
        within_seconds: float | None = None,
    ) -> Listing[T]:
        """The list: the cached one while it is fresh, otherwise one that is read now.

        `within_seconds`: at the deadline, the pages received so far are the list. `notifies_changes`:
        whether the server notifies the host when the list changes. `fresh`: read in any case.
        """
        if fresh:
            self.changed()
        elif self.known is not None and self._is_fresh:
            return self.known
        if self._reading is None or self._reading.changes != self._changes:
            fetch = fetch or self._fetcher(session, within_seconds)
            name = f"dragoman {self.kind.method} {self._context.server}"
            task = asyncio.create_task(self._read(session, fetch, notifies_changes), name=name)
            self._reading = _Reading(task, self._changes)
            task.add_done_callback(self._done)
        # A caller that is cancelled does not end the reading for the others.
        return await asyncio.shield(self._reading.task)

    def changed(self) -> None:
        """Marks the cached list, and a list that is being read, as out of date."""
        self._changes += 1

    def forget(self) -> None:
        """Drops the list, and ignores readings under way."""
        self.changed()
        self.known = None
        self._newest = next(self._numbers)

    def start_with(self, listing: Listing[T]) -> None:
        """Shows this until the list has been read."""
        self.known = listing
        self.changed()

    def is_overdue(self) -> bool:
        """Whether it is to be read again now in the background, because its time is over."""
        now = self._context.clock.monotonic()
        if self.known is None or now < max(self._fresh_until, self._looked_at + SHORTEST_TTL_SECONDS):
            return False
        self._looked_at = now
        return True

    async def finished(self) -> None:
        """Returns when the reading under way has ended, if there is one."""
        if self._reading is not None:
            await asyncio.wait([self._reading.task])

    @property
    def _is_fresh(self) -> bool:
        return self._known_at == self._changes and self._context.clock.monotonic() < self._fresh_until

    def _done(self, task: asyncio.Task[Listing[T]]) -> None:
        if self._reading is not None and self._reading.task is task:
            self._reading = None

    async def _read(self, session: Session, fetch: FetchPage, notifies_changes: bool) -> Listing[T]:
        changes, number = self._changes, next(self._numbers)
        with tracing.span(
            self.kind.method, mcp__method__name=self.kind.method, dragoman__server=session.server
        ):
            listing = await self.kind.read_all(self._context, session, fetch)
        if number < self._newest:
            return listing
        before = self.known
        if listing.is_whole:
            self._newest, self.is_late = number, False
        elif before is not None and before.items:
            problems = (*listing.problems, "what was known before is shown")
            listing = Listing(before.items, problems, is_whole=False)
        self.known, self._known_at = listing, changes
        self._looked_at = self._context.clock.monotonic()
        self._fresh_until = self._looked_at + _valid_seconds(listing, notifies_changes)
        if self._on_read is not None:
            self._on_read(listing)
        return listing

    def _fetcher(self, session: Session, within_seconds: float | None) -> FetchPage:
        loop = asyncio.get_running_loop()
        deadline = None if within_seconds is None else loop.time() + within_seconds

        async def fetch(params: Mapping[str, Any]) -> Raw:
            seconds = self._context.settings.seconds("MCP_REQUEST_TIMEOUT_MS")
            if deadline is not None:
                seconds = min(seconds, max(0.0, deadline - loop.time()))
            return await session.request(self.kind.method, params, timeout_seconds=seconds)

        return fetch


def _valid_seconds(listing: Listing[Any], notifies_changes: bool) -> float:
    if not listing.is_whole:
        return -math.inf
    if listing.ttl_seconds is not None:
        return listing.ttl_seconds
    return math.inf if notifies_changes else DEFAULT_TTL_SECONDS


class BackgroundReading:
    """Reads the lists of one capability in the background, after each change that the server reports.

    Changes that follow one another quickly cause one reading, and only one runs at a time.
    """

    def __init__(self, readers: Sequence[ListReader[Any]], on_news: Callable[[], None] | None = None) -> None:
        """`on_news` is called after a reading, unless the server has no such things and never had."""
        self._readers = readers
        self._on_news = on_news
        self._wanted: tuple[Session, bool] | None = None
        """The session to read over next, and whether the server reports changes."""
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None

    def start(self, session: Session, *, notifies_changes: bool = True) -> None:
        self._wanted = (session, notifies_changes)
        if self._task is None or self._task.done():  # one that has ended may not have been taken away yet
            self._task = asyncio.create_task(self._run(), name=f"dragoman lists {session.server}")
            self._task.add_done_callback(self._done)

    def changed(self, session: Session, *, notifies_changes: bool = True) -> None:
        for reader in self._readers:
            reader.changed()
        self.start(session, notifies_changes=notifies_changes)

    def stop(self) -> None:
        self._wanted = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _done(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None

    async def _run(self) -> None:
        had_something = any(map(_has_something, self._readers))
        while self._wanted is not None:
            for reader in self._readers:
                await reader.finished()
            session, notifies_changes = self._wanted
            self._wanted = None
            await asyncio.gather(
                *(reader.get(session, notifies_changes=notifies_changes) for reader in self._readers)
            )
            had_something = had_something or any(map(_has_something, self._readers))
            if had_something and self._on_news is not None:
                self._on_news()
            # One that changes its list all the time is not read all the time.
            await asyncio.sleep(PAUSE_SECONDS if self._wanted is not None else 0)


def _has_something(reader: ListReader[Any]) -> bool:
    return reader.known is not None and bool(reader.known.items or reader.known.problems)


# How each kind of list is read.


async def _read_tools(context: ListContext, session: Session, fetch: FetchPage) -> Listing[ToolDefinition]:
    return await read_list(fetch, mirrors=session.mirrors_arguments, redact=context.redactor or None)


class _ItemKind(Struct, Generic[S], frozen=True):
    key: str
    """The member of a page that contains its items."""
    what: str
    read: Callable[[ServerName, Raw], S]
    identity: Callable[[S], str]
    """The key of an entry; no two entries of a list have the same."""
    called: str = "address"
    """What people call that key."""

    async def __call__(self, context: ListContext, session: Session, fetch: FetchPage) -> Listing[S]:
        pages = await read_pages(fetch, self.key, self.what, undecoded)
        items, problems = await self._usable(context, pages.items)
        described = (*_first(problems), *pages.problems)
        if context.redactor:  # an error of the server may repeat a secret
            described = tuple(map(context.redactor.text, described))
        return Listing(items, described, pages.is_whole, pages.ttl_seconds)

    async def _usable(self, context: ListContext, raws: list[Raw]) -> tuple[tuple[S, ...], list[str]]:
        found: dict[str, S] = {}
        problems: list[str] = []
        redact, steps = context.redactor or None, Steps()
        for number, raw in enumerate(raws, 1):
            await steps.after(raw)
            try:
                item = self.read(context.server, raw)
                if redact:
                    item = self._covered(item, redact)
                if self.identity(item) in found:
                    raise Unreadable("it is listed twice")
                if (reason := self._refusal(context, item)) is not None:
                    raise Unreadable(f"{one_line(self.identity(item), 80)!r}: {reason}")
                found[self.identity(item)] = item
            except Unreadable as error:
                problems.append(f"number {number} of the {self.what} is left out: {error.detail}")
        return tuple(found.values()), problems

    def _refusal(self, context: ListContext, item: S) -> str | None:
        if context.admit is None or not isinstance(item, PromptDefinition | ResourceTemplate):
            return None
        return context.admit(item)

    def _covered(self, item: S, redact: Redactor) -> S:
        identity = self.identity(item)
        if redact.text(identity) != identity:  # a request would repeat the secret
            raise Unreadable(f"its {self.called} holds a secret of the server's entry")
        return redact.struct(item, _IDENTITIES)


def _first(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - PROBLEM_LIMIT
    return tuple(problems) if more <= 0 else (*problems[:PROBLEM_LIMIT], f"and {more} problems more")


_IDENTITIES: Final = frozenset({"server", "uri", "uri_template", "wire_name"})

TOOLS: Final = ListKind[ToolDefinition]("tools/list", "tools", "tools", _read_tools)
RESOURCES: Final = ListKind[Resource](
    "resources/list",
    "resources",
    "resources",
    _ItemKind[Resource]("resources", "resources", read_resource, lambda item: item.uri),
)
TEMPLATES: Final = ListKind[ResourceTemplate](
    "resources/templates/list",
    "resources",
    "resource templates",
    _ItemKind[ResourceTemplate](
        "resourceTemplates", "resource templates", read_template, lambda item: item.uri_template
    ),
)
PROMPTS: Final = ListKind[PromptDefinition](
    "prompts/list",
    "prompts",
    "prompts",
    _ItemKind[PromptDefinition]("prompts", "prompts", read_prompt, lambda item: item.wire_name, "name"),
)


def offers(capabilities: Mapping[str, Any], capability: str) -> bool:
    """Whether a server has declared the capability."""
    return isinstance(capabilities.get(capability), dict)


def notifies_changes(capabilities: Mapping[str, Any], capability: str) -> bool:
    declared: Any = capabilities.get(capability)
    return isinstance(declared, dict) and declared.get("listChanged") is True  # pyright: ignore[reportUnknownMemberType]

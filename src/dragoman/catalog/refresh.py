"""Decides when lists of tools are read: on connecting, after a change notification, and when they expire.

Change notifications that follow one another quickly cause one reading, and only one reading per server runs
at a time. When a reading fails, the last good list is kept.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from itertools import count
from typing import Any, Final, Protocol

from msgspec import Raw

from dragoman.catalog.listing import ToolList, read_list
from dragoman.catalog.pool import Catalog
from dragoman.clock import Clock
from dragoman.content.redact import RedactorOf, no_redactor
from dragoman.errors import DragomanError
from dragoman.events import EventBus, ToolsChanged
from dragoman.names import ServerName
from dragoman.wire.codec import Unreadable

PAUSE_SECONDS: Final = 0.5
SHORTEST_TTL_SECONDS: Final = 30.0
"""A server that gives its list less time, or none, is still not asked again each time it is looked at."""


class Asker(Protocol):
    """Who can be asked for a page; a session is one."""

    @property
    def mirrors_arguments(self) -> bool: ...

    async def request(
        self, method: str, params: Mapping[str, Any] | None, *, timeout_seconds: float
    ) -> Raw: ...


class Refresher:
    def __init__(
        self,
        catalog: Catalog,
        bus: EventBus,
        clock: Clock,
        timeout_seconds: float,
        redactor_of: RedactorOf = no_redactor,
    ) -> None:
        self._catalog = catalog
        self._redactor_of = redactor_of
        self._bus = bus
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._running: dict[ServerName, asyncio.Task[None]] = {}
        self._busy: set[ServerName] = set()
        """Servers whose list is being read."""
        self._again: set[ServerName] = set()
        """Servers that told of a change since their list was last asked for."""
        self._askers: dict[ServerName, Asker] = {}
        """The session to ask: the newest one of a server that was reconnected."""
        self._fresh_until: dict[ServerName, float] = {}
        """When a list is to be read again, if its server said how long it keeps."""
        self._numbers = count(1)
        self._newest: dict[ServerName, int] = {}
        """The number of the reading whose answer counts; one that was begun before comes too late."""

    async def load(
        self, server: ServerName, asker: Asker, within_seconds: float | None = None
    ) -> DragomanError | Unreadable | None:
        """Reads a server's tools and puts them into the catalogue; in time, with what came by then.

        Why there are none, if nothing could be read, and nothing is known from before.
        """
        deadline = None if within_seconds is None else asyncio.get_running_loop().time() + within_seconds
        number = next(self._numbers)
        self._askers[server] = asker
        self._busy.add(server)
        try:
            listed = await read_list(
                lambda params: self._fetch(asker, params, deadline),
                mirrors=asker.mirrors_arguments,
                redact=self._redactor_of(server),
            )
        finally:
            self._busy.discard(server)
        if number > self._newest.get(server, 0):
            if listed.is_whole:
                self._newest[server] = number
            self._put(server, listed)
        if server in self._again and server not in self._running:
            self._start(server)
        return None if self._catalog.count(server) else listed.failure

    def _put(self, server: ServerName, listed: ToolList) -> None:
        self._keep_until(server, listed.ttl_seconds)
        if not listed.is_whole and self._catalog.count(server):
            listed = ToolList(self._catalog.definitions(server), listed.problems)
        difference = self._catalog.set_list(server, listed)
        if self._bus.has_listeners:
            self._bus.publish(
                ToolsChanged(
                    server=server,
                    tool_count=len(listed.definitions),
                    problems=listed.problems,
                    changed=difference.changed,
                )
            )

    def schedule(self, server: ServerName, asker: Asker) -> None:
        """Reads again soon; a reading already under way is followed by one more, however many asked."""
        self._again.add(server)
        self._askers[server] = asker
        if server not in self._busy and server not in self._running:
            self._start(server)

    def freshen(self, server: ServerName, asker: Asker) -> None:
        """Reads again in the background what is being used past its time."""
        now = self._clock.monotonic()
        if now >= self._fresh_until.get(server, math.inf) and _is_on_a_loop():
            self._fresh_until[server] = now + SHORTEST_TTL_SECONDS
            self.schedule(server, asker)

    def forget(self, server: ServerName) -> None:
        """A server has gone, and what is being read of it counts no longer."""
        self._newest[server] = next(self._numbers)
        self._again.discard(server)
        self._askers.pop(server, None)
        self._fresh_until.pop(server, None)

    def close(self) -> None:
        for task in self._running.values():
            task.cancel()

    def _keep_until(self, server: ServerName, ttl_seconds: float | None) -> None:
        self._fresh_until.pop(server, None)
        if ttl_seconds is not None:
            seconds = max(ttl_seconds, SHORTEST_TTL_SECONDS)
            self._fresh_until[server] = self._clock.monotonic() + seconds

    def _start(self, server: ServerName) -> None:
        self._running[server] = asyncio.create_task(self._refresh(server))

    async def _refresh(self, server: ServerName) -> None:
        try:
            while server in self._again:
                self._again.discard(server)
                await self.load(server, self._askers[server])
                # One that changes its list all the time is not read all the time.
                await asyncio.sleep(PAUSE_SECONDS if server in self._again else 0)
        finally:
            del self._running[server]

    async def _fetch(self, asker: Asker, params: Mapping[str, Any], deadline: float | None) -> Raw:
        seconds = self._timeout_seconds
        if deadline is not None:
            seconds = min(seconds, max(0.0, deadline - asyncio.get_running_loop().time()))
        return await asker.request("tools/list", params, timeout_seconds=seconds)


def _is_on_a_loop() -> bool:
    """A program may look at tools from a thread that runs nothing in the background."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

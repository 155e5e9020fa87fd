"""Cache of what servers sent, for as long as the server says that it is valid (`ttlMs`).

Limits how much is stored, and drops the least recently used first. An entry belongs to one connection of one
server: after a reconnect, perhaps with other credentials, nothing of it is used, so `cacheScope` need not be
trusted. An expired entry can still be read by name (`last_known`) where it cannot be obtained again and the
caller says so.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic, TypeVar

from msgspec import Struct

from dragoman.catalog.paging import LONGEST_TTL_SECONDS
from dragoman.clock import Clock

SERVERS_KEPT: Final = 20
"""Of each kind of list, those of so many servers."""

V = TypeVar("V")
Key = tuple[str, str]
"""The server, and what of it."""


class _Kept(Struct, Generic[V], frozen=True):
    value: V
    link: object
    """The session it came over."""
    cost: int
    age: int
    """How many changes were told before it was asked for."""
    fresh_until: float | None
    """None: until a change is told."""


class Ticket(Struct, frozen=True):
    """Taken before asking: what was said to have changed since is not stored as fresh."""

    key: Key
    link: object
    age: int


class Cache(Generic[V]):
    """The least recently used goes first when the costs of all add up to more than there is room for."""

    def __init__(self, clock: Clock, room: int = SERVERS_KEPT) -> None:
        self._clock = clock
        self._room = room
        self._used = 0
        self._kept: OrderedDict[Key, _Kept[V]] = OrderedDict()
        self._changes: dict[str, int] = {}
        """How often each server's things were said to have changed."""

    def get(self, key: Key, link: object) -> V | None:
        """What is kept, if it is fresh and came over this link."""
        kept = self._kept.get(key)
        if kept is None or kept.link is not link or not self._is_fresh(key, kept):
            return None
        self._kept.move_to_end(key)
        return kept.value

    def last_known(self, key: Key, link: object) -> V | None:
        """The same, fresh or not."""
        kept = self._kept.get(key)
        return kept.value if kept is not None and kept.link is link else None

    def ticket(self, key: Key, link: object) -> Ticket:
        return Ticket(key, link, self._changes.get(key[0], 0))

    def put(self, ticket: Ticket, value: V, ttl_seconds: float | None = None, cost: int = 1) -> None:
        """Keeps what was asked for; without a time, until it is said to have changed."""
        known = self._kept.get(ticket.key)
        if known is not None and known.age > ticket.age:
            return  # asked for later, answered sooner
        self._drop(ticket.key)
        if cost > self._room:
            return
        until = None
        if ttl_seconds is not None:
            until = self._clock.monotonic() + min(ttl_seconds, LONGEST_TTL_SECONDS)
        self._kept[ticket.key] = _Kept(value, ticket.link, cost, ticket.age, until)
        self._used += cost
        while self._used > self._room:
            self._drop(next(iter(self._kept)))

    def changed(self, server: str) -> None:
        """Nothing of this server is fresh any more, what is being asked for now included.

        It costs the same however much is kept: a server may say so all the time.
        """
        self._changes[server] = self._changes.get(server, 0) + 1

    def forget(self, server: str) -> None:
        """Nothing of this server is kept."""
        self.changed(server)
        for key in [key for key in self._kept if key[0] == server]:
            self._drop(key)

    def _is_fresh(self, key: Key, kept: _Kept[V]) -> bool:
        if kept.age != self._changes.get(key[0], 0):
            return False
        return kept.fresh_until is None or self._clock.monotonic() < kept.fresh_until

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._used -= kept.cost

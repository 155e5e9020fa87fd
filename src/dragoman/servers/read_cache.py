"""Cache of resources that were read from one server, for as long as they are valid by the server's `ttlMs`.

Limits how much is stored, and drops the least recently used first. It is emptied when the connection is made
again, perhaps with other credentials, so `cacheScope` need not be trusted.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Final, NamedTuple

from dragoman.catalog.resources import ReadReply
from dragoman.clock import Clock

LIMIT_BYTES: Final = 4 * 1024 * 1024
"""The most bytes for the resources of one server, with `ENTRY_BYTES` for each."""
ENTRY_BYTES: Final = 1024
"""The memory that a cached resource takes besides its contents."""


class _CachedReply(NamedTuple):
    reply: ReadReply
    size_bytes: int
    fresh_until: float


class ReadCache:
    def __init__(self, clock: Clock, limit_bytes: int = LIMIT_BYTES) -> None:
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._cached: OrderedDict[str, _CachedReply] = OrderedDict()
        self.counts: Counter[str] = Counter()
        """How often a resource was cached and fresh (`hit`), not cached (`miss`), no longer fresh
        (`expired`), or dropped because resources changed (`invalidated`)."""
        self.shared_counts: Counter[str] = Counter()
        """The same for what several hosts share (`shared_reads.py`)."""
        self.reported = 0
        """How often the server has reported a change."""
        self.announced = 0
        """How many of these reports were announced to the other hosts."""
        self.version = 0
        """The number of changes. Read before a request, and passed to `put`."""

    def get(self, uri: str) -> ReadReply | None:
        """What is cached, if it is fresh."""
        cached = self._cached.get(uri)
        if cached is None or self._clock.monotonic() >= cached.fresh_until:
            self.counts["miss" if cached is None else "expired"] += 1
            return None
        self.counts["hit"] += 1
        self._cached.move_to_end(uri)
        return cached.reply

    def put(self, uri: str, reply: ReadReply, version: int) -> None:
        """Caches what was read, unless resources changed since it was requested."""
        if version != self.version or not reply.ttl_seconds:
            return
        self._drop(uri)
        size = reply.size_bytes + len(uri) + ENTRY_BYTES
        if size > self._limit_bytes:
            return
        self._cached[uri] = _CachedReply(reply, size, self._clock.monotonic() + reply.ttl_seconds)
        self._used_bytes += size
        while self._used_bytes > self._limit_bytes:
            self._drop(next(iter(self._cached)))

    def changed(self) -> None:
        """What is cached, and what is being read now, is no longer fresh."""
        self.version += 1
        self.counts["invalidated"] += len(self._cached)
        self._cached.clear()
        self._used_bytes = 0

    def _drop(self, uri: str) -> None:
        cached = self._cached.pop(uri, None)
        if cached is not None:
            self._used_bytes -= cached.size_bytes

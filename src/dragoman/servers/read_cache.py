"""Cache of resources that were read from one server, for as long as the server says that they are valid
(`ttlMs`).

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
"""What keeping a resource takes besides what it holds: very many small ones are not free."""


class _Kept(NamedTuple):
    reply: ReadReply
    size_bytes: int
    fresh_until: float


class ReadCache:
    def __init__(self, clock: Clock, limit_bytes: int = LIMIT_BYTES) -> None:
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self.counts: Counter[str] = Counter()
        """How often something was kept and fresh (`hit`), not kept (`miss`), no longer fresh (`expired`), or
        dropped because resources changed (`invalidated`)."""
        self.shared_counts: Counter[str] = Counter()
        """The same for what several hosts share (`shared_reads.py`)."""
        self.reported = 0
        """How often the server has reported a change."""
        self.announced = 0
        """How many of these reports the hosts that share know of."""
        self.version = 0
        """How often resources were said to have changed. Read before a request, and passed to `put`."""

    def get(self, uri: str) -> ReadReply | None:
        """What is kept, if it is fresh."""
        kept = self._kept.get(uri)
        if kept is None or self._clock.monotonic() >= kept.fresh_until:
            self.counts["miss" if kept is None else "expired"] += 1
            return None
        self.counts["hit"] += 1
        self._kept.move_to_end(uri)
        return kept.reply

    def put(self, uri: str, reply: ReadReply, version: int) -> None:
        """Keeps what was read, unless resources changed since it was requested."""
        if version != self.version or not reply.ttl_seconds:
            return
        self._drop(uri)
        size = reply.size_bytes + len(uri) + ENTRY_BYTES
        if size > self._limit_bytes:
            return
        self._kept[uri] = _Kept(reply, size, self._clock.monotonic() + reply.ttl_seconds)
        self._used_bytes += size
        while self._used_bytes > self._limit_bytes:
            self._drop(next(iter(self._kept)))

    def changed(self) -> None:
        """What is kept, and what is being read now, is no longer fresh."""
        self.version += 1
        self.counts["invalidated"] += len(self._kept)
        self._kept.clear()
        self._used_bytes = 0

    def _drop(self, uri: str) -> None:
        kept = self._kept.pop(uri, None)
        if kept is not None:
            self._used_bytes -= kept.size_bytes

"""The audit log that the replicas of a gateway share: a stream in Redis, besides the file of each.

Entries are sent in batches by a task, so that no call waits for Redis. While Redis is not reachable, a
bounded number of bytes waits; entries that do not fit are counted, reported, and noted in the stream. The
file has every entry.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.calls.audit import AuditEntry, AuditLog, line_of
from dragoman.cleaning import one_line
from dragoman.errors import StoreUnavailable
from dragoman.gateway.store.redis import RedisStore

BATCH_LINES: Final = 32
GATHER_SECONDS: Final = 0.2
"""Calls that end within this time are sent together."""
WAITING_BYTES: Final = 4 * 1024 * 1024
"""The maximum number of bytes that wait while Redis is not reachable."""
RETRY_SECONDS: Final = 1.0
LAST_SECONDS: Final = 2.0
"""How long the last entries may take when the gateway ends."""


class Batch(Struct, frozen=True):
    """One message of the stream."""

    replica: str
    number: int
    """Counts the batches of the replica: one that is sent twice is shown once."""
    lines: tuple[bytes, ...]
    missing: int = 0
    """How many entries before these did not fit."""


class SharedAudit:
    """Sends what a replica writes to its audit log."""

    def __init__(self, store: RedisStore, log: AuditLog) -> None:
        self._store = store
        self._report = log.report
        self._replica = f"{one_line(socket.gethostname(), 60)}-{store.replica}"
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._missing = 0
        self._count = 0
        self._unsent: Batch | None = None
        self._wake = asyncio.Event()
        log.copy_to = self.put

    def put(self, entry: AuditEntry) -> None:
        line = line_of(entry)
        self._lines.append(line)
        self._bytes += len(line)
        while self._bytes > WAITING_BYTES:
            self._bytes -= len(self._lines.popleft())
            self._missing += 1
        self._wake.set()

    async def run(self) -> None:
        """Sends entries until it is cancelled, and then those that wait."""
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(GATHER_SECONDS)
                self._wake.clear()
                if not await self._send_all():
                    self._wake.set()
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._send_all()

    async def _send_all(self) -> bool:
        """Sends all waiting entries; returns False if the store does not answer."""
        with contextlib.suppress(StoreUnavailable):
            while batch := self._next():
                await self._store.append(_encoder.encode(batch))
                self._unsent = None
                if batch.missing:
                    self._report(
                        f"{batch.missing} calls are missing in the audit log of all replicas: the store did "
                        "not answer. The audit log of this machine has them."
                    )
            return True
        return False

    def _next(self) -> Batch | None:
        """What is to be sent next: the batch that could not be sent, or a new one."""
        if self._unsent is None and self._lines:
            count = min(BATCH_LINES, len(self._lines))
            lines = tuple(self._lines.popleft() for _ in range(count))
            self._bytes -= sum(map(len, lines))
            self._unsent = Batch(self._replica, self._count, lines, self._missing)
            self._count, self._missing = self._count + 1, 0
        return self._unsent


class SharedEntries:
    """Reads the stream: entries with the names of their replicas, each once."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._position = "0"
        self._numbers: dict[str, int] = {}
        """The number of the last batch of each replica."""

    async def next(self, *, wait: bool = False) -> list[dict[str, Any]]:
        """The unread entries, in the order of their times. `wait`: waits up to a second if there are none."""
        found: list[dict[str, Any]] = []
        while batches := await self._store.appended(self._position, wait_seconds=1.0 if wait else 0.0):
            wait = False
            self._position = batches[-1][0]
            found += self._entries(message for _, message in batches)
        return sorted(found, key=lambda entry: str(entry.get("time", "")))

    def _entries(self, messages: Iterable[bytes | None]) -> Iterator[dict[str, Any]]:
        for message in messages:
            if message is None:  # of another key
                continue
            with contextlib.suppress(msgspec.MsgspecError):  # of another version
                batch = _decoder.decode(message)
                if batch.number > self._numbers.get(batch.replica, -1):
                    self._numbers[batch.replica] = batch.number
                    yield from _entries_of(batch)


def _entries_of(batch: Batch) -> Iterator[dict[str, Any]]:
    entries = [msgspec.json.decode(line, type=dict[str, Any]) for line in batch.lines]
    if batch.missing:
        yield {"time": entries[0].get("time", ""), "replica": batch.replica, "missing": batch.missing}
    yield from ({**entry, "replica": batch.replica} for entry in entries)


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Batch)

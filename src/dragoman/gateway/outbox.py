"""Messages that wait for a client to read them, bounded in bytes.

A reply, or a request to the client, is never left out. While much waits, progress and log messages are left
out, and a notification that waits already is not added again. If more than the limit waits, the outbox
overflows: the client is disconnected, and its call is cancelled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from dragoman.wire.codec import NOTIFICATION

WAITING_BYTES: Final = 64 * 1024 * 1024
"""The number of bytes that may wait before a further message, which may be of any size."""
WAITING_LIMIT: Final = 10_000
"""Messages that may wait before a further one."""
CROWDED_BYTES: Final = 1024 * 1024
CROWDED_LIMIT: Final = 1000
"""The number of waiting messages from which on notifications are left out."""
NOT_READING: Final = "it does not read what it is sent"
"""Why a client is disconnected."""
_PASSING: Final = (NOTIFICATION + b'"notifications/progress"', NOTIFICATION + b'"notifications/message"')


class NotReading(ConnectionError):
    """The client does not read what it is sent."""


class Outbox:
    """Messages in the order in which they were put. Those that were read stay, up to the limit, and can be
    read again; with `keeps_read` False they are dropped, so that a long connection does not hold them."""

    def __init__(self, *, keeps_read: bool = True, oldest_dropped_over: int | None = None) -> None:
        """`oldest_dropped_over`: for an outbox of notifications only: how many of the newest are kept."""
        self._keeps_read = keeps_read
        self._oldest_dropped_over = oldest_dropped_over
        self._messages: deque[bytes] = deque()
        self._count = 0
        self._waiting_bytes = 0
        self._read_bytes = 0
        """The size of messages that were read and are kept."""
        self._waiter: asyncio.Future[None] | None = None
        self._is_late = False
        self.is_ended = False
        self.has_overflowed = False
        self.read_count = 0
        """How many were read, those that were dropped included."""
        self.reader: asyncio.Task[object] | None = None
        """The response that is given the messages."""
        self.on_overflow: Callable[[], None] = lambda: None
        """Cancels the call that the messages belong to."""
        self.disconnect: Callable[[], None] = lambda: None
        """Disconnects the client that is given the messages."""

    @property
    def held_bytes(self) -> int:
        return self._waiting_bytes + self._read_bytes

    @property
    def waiting_count(self) -> int:
        return self._count - self.read_count

    def put(self, message: bytes) -> None:
        if self.has_overflowed or self._is_left_out(message):
            return
        waiting = self._count - self.read_count
        if waiting == self._oldest_dropped_over:
            self._drop_oldest()
        elif self._waiting_bytes >= WAITING_BYTES or waiting >= WAITING_LIMIT:
            self.overflow()
            return
        self._messages.append(message)
        self._waiting_bytes += len(message)
        self._count += 1
        self._wake()

    def _is_left_out(self, message: bytes) -> bool:
        waiting = self._count - self.read_count
        if self._waiting_bytes < CROWDED_BYTES and waiting < CROWDED_LIMIT:
            return False
        if message.startswith(_PASSING):
            return True
        return message.startswith(NOTIFICATION) and message in islice(reversed(self._messages), waiting)

    def _drop_oldest(self) -> None:
        size = len(self._messages[len(self._messages) - self._count + self.read_count])
        self._waiting_bytes -= size
        self._read_bytes += size
        self.read_count += 1
        self._forget_read(-1)

    def overflow(self) -> None:
        """Drops all messages, because the limit is exceeded and the client cannot continue without the lost
        ones."""
        self.has_overflowed = self.is_ended = True
        self._messages.clear()
        self._waiting_bytes = self._read_bytes = 0
        self._wake()
        self.disconnect()
        self.on_overflow()

    def end(self) -> None:
        """Marks the end: nothing more will be put."""
        self.is_ended = True
        self._wake()

    async def get(self) -> bytes | None:
        """The next message; None at the end, and an empty one after `set_late`. Raises `NotReading` after an
        overflow."""
        while self.read_count >= self._count and not self.has_overflowed:
            if self.is_ended:
                return None
            if self._is_late:
                self._is_late = False
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.has_overflowed:
            raise NotReading
        self._is_late = False
        message = self._messages[self.read_count - self._count + len(self._messages)]
        self.read_count += 1
        self._waiting_bytes -= len(message)
        self._read_bytes += len(message)
        self._forget_read(WAITING_BYTES if self._keeps_read else -1)
        return message

    def set_late(self) -> None:
        """Reports that no message has come in time."""
        self._is_late = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _forget_read(self, limit_bytes: int) -> None:
        """Drops those that were read, the oldest first, down to the limit; the newest stays unless the limit
        is negative."""
        read = len(self._messages) - self._count + self.read_count
        kept = 1 if limit_bytes >= 0 else 0
        while read > kept and (self._read_bytes > limit_bytes or read > CROWDED_LIMIT):
            self._read_bytes -= len(self._messages.popleft())
            read -= 1

    def rewind(self, number: int) -> bool:
        """Continues reading after the message with this number; returns False if those messages are no longer
        kept."""
        if self.has_overflowed or number < self._count - len(self._messages):
            return False
        if number < self.read_count:
            again = sum(map(len, islice(reversed(self._messages), self._count - number)))
            self._read_bytes -= again - self._waiting_bytes
            self.read_count, self._waiting_bytes = number, again
        return True

"""The one seam every way of reaching a server fits.

I own: the `Transport` face and the `Sink` it delivers to. A transport moves whole messages and knows
nothing of their meaning. `open` either succeeds or raises `ConnectError`; after that, exactly one
`lost` tells of an end that nobody asked for, and none follows a `close`.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Details(Struct, frozen=True):
    """What a person wants to know of the far end, as far as the transport can tell."""

    pid: int | None = None
    exit_code: int | None = None
    stderr_tail: str = ""
    left_behind: tuple[int, ...] = ()
    """Processes that survived the end because they had made themselves independent."""


class Sink(Protocol):
    def received(self, message: bytes) -> None:
        """One whole message."""
        ...

    def oversized(self, head: bytes, tail: bytes) -> bool:
        """A message over the limit: its head, and its tail once it came (empty until then).

        Returns whether it is clear whom the message concerns; if so, it is not told again.
        """
        ...

    def lost(self, cause: str) -> None:
        """The far end went away by itself."""
        ...


class Transport(Protocol):
    async def open(self, sink: Sink) -> None: ...

    def send(self, message: bytes) -> None:
        """Hands a message over without waiting. Raises ConnectionError once the far end is gone."""
        ...

    @property
    def congested(self) -> bool:
        """Whether the far end reads more slowly than we write; then await `drained` before more."""
        ...

    async def drained(self) -> None: ...

    async def close(self) -> None:
        """Ends it, bounded in time whatever the far end does. May be called twice."""
        ...

    def details(self) -> Details: ...

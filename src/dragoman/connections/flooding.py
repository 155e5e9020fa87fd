"""Decides when a server sends so many messages that answer no request that its connection is ended. Pure."""

from __future__ import annotations

from typing import Final

BURST_SECONDS: Final = 10
"""So many seconds' worth of messages may come at once."""


class FloodGauge:
    """A leaky bucket of messages that answer no request."""

    def __init__(self, messages_per_second: int) -> None:
        self._per_second = messages_per_second
        self._limit = BURST_SECONDS * messages_per_second
        self._level = 0.0
        self._at = 0.0

    def is_flooded(self, messages: int, now: float) -> bool:
        """Counts further messages; whether there are too many by now."""
        self._level = max(0.0, self._level - (now - self._at) * self._per_second) + messages
        self._at = now
        return self._level > self._limit

    @property
    def cause(self) -> str:
        return (
            f"it sends too many messages: more than {self._limit} that answer no request, "
            f"faster than {self._per_second} a second; if that is normal for this server, "
            "raise DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND"
        )

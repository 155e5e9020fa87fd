"""Many deadlines with one timer.

Most requests end long before their deadline, so setting one must be very cheap: a single timer is set for the
earliest deadline, and checks the others when it fires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    def __init__(self, loop: asyncio.AbstractEventLoop, on_expiry: Callable[[K], None]) -> None:
        self._loop = loop
        self._time = loop.time
        self._on_expiry = on_expiry
        self._open: dict[K, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._armed_for = 0.0

    def set(self, key: K, seconds: float) -> None:
        """Unless cleared in time, the key is given to `on_expiry`."""
        self._open[key] = when = self._time() + seconds
        if self._timer is None or when < self._armed_for:
            self._arm(when)

    def clear(self, key: K) -> None:
        self._open.pop(key, None)

    def close(self) -> None:
        self._open.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._fire)
        self._armed_for = when

    def _fire(self) -> None:
        self._timer = None
        now = self._time()
        for key, when in list(self._open.items()):
            # One expiry may have cleared another.
            if when <= now and self._open.pop(key, None) is not None:
                self._on_expiry(key)
        if self._open and self._timer is None:
            self._arm(min(self._open.values()))

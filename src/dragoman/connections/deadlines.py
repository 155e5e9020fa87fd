"""Many deadlines on one timer.

I own: ending what takes too long. Most requests end long before their deadline, so setting one must
cost next to nothing: a single timer is armed for the earliest, and looks at the rest when it fires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadlines:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: dict[str, tuple[float, Callable[[], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, key: str, seconds: float, on_expiry: Callable[[], None]) -> None:
        when = self._loop.time() + seconds
        self._open[key] = (when, on_expiry)
        if self._timer is None or when < self._timer.when():
            self._arm(when)

    def clear(self, key: str) -> None:
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

    def _fire(self) -> None:
        self._timer = None
        now = self._loop.time()
        due = [(key, on_expiry) for key, (when, on_expiry) in self._open.items() if when <= now]
        for key, on_expiry in due:
            if self._open.pop(key, None) is not None:  # one expiry may have cleared another
                on_expiry()
        if self._open and self._timer is None:
            self._arm(min(when for when, _ in self._open.values()))

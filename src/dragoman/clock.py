"""The clock, as an interface that tests replace (`dragoman.testing.FakeClock`)."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for people and files."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, for durations and deadlines."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    monotonic = staticmethod(time.monotonic)

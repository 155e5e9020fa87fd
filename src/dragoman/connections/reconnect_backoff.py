"""How often, and after which waits, a connection to a lost server is attempted.

Waits double up to a limit. Attempts are counted; time spent connected resets the count, so a server that dies
right after each start is soon given up. A local server that has answered a caller's request since it was
started is started again at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from dragoman.settings import Settings

REFILL_SECONDS: Final = 2.0
"""Time connected that gives one attempt back."""
SPREAD: Final = 0.2
"""Waits are shortened at random by up to this share, so that many hosts do not come back all at once."""
DOUBLINGS_LIMIT: Final = 60
"""From this attempt on every wait has its full length; larger powers of two are not computed."""


class ReconnectBackoff:
    def __init__(
        self,
        attempts: int,
        wait_seconds: float,
        longest_seconds: float,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._attempts = attempts
        self._wait_seconds = wait_seconds
        self._longest_seconds = longest_seconds
        self._chance = chance
        self._used = 0.0

    @classmethod
    def of(cls, settings: Settings) -> ReconnectBackoff:
        return cls(
            settings["DRAGOMAN_RECONNECT_ATTEMPTS"],
            settings.seconds("DRAGOMAN_RECONNECT_WAIT_MS"),
            settings.seconds("DRAGOMAN_RECONNECT_LONGEST_WAIT_MS"),
        )

    @property
    def attempt(self) -> int:
        """Which attempt the next one, or the one under way, is."""
        return round(self._used)

    def next_wait(
        self, *, at_once: bool = False, was_healthy: bool = False, at_least: float = 0.0
    ) -> float | None:
        """How long to wait before the next attempt; None if there is none left.

        `at_once`: the first attempt needs no wait. `was_healthy`: no attempt needs one; they are counted.
        """
        if self._used + 1 > self._attempts:
            return None
        # Whole attempts only in the exponent: a short time connected gives back only a part of an attempt.
        before = self.attempt
        self._used += 1
        if was_healthy or (at_once and before == 0):
            return 0.0
        wait = min(self._wait_seconds * 2 ** min(before, DOUBLINGS_LIMIT), self._longest_seconds)
        return max(wait * (1 - SPREAD * self._chance()), at_least)

    def was_connected(self, seconds: float) -> None:
        """A connection lasted this long."""
        self._used = max(0.0, self._used - seconds / REFILL_SECONDS)

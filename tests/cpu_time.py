"""Processor time that tests compare with a bound, independent of other processes and of the machine."""

import time
from collections.abc import Callable

import msgspec

_WORK = msgspec.json.encode([{"number": n, "text": "x" * 20} for n in range(20_000)])
_REFERENCE_SECONDS = 0.008
"""What `_WORK` takes on an idle machine of the kind that the bounds were chosen on."""


class CpuTimer:
    """Starts when it is made."""

    def __init__(self) -> None:
        self._started = time.process_time()

    def seconds(self) -> float:
        """Processor time since the start, divided by how much slower `_WORK` runs than on an idle machine."""
        spent = time.process_time() - self._started
        return spent * _REFERENCE_SECONDS / max(_REFERENCE_SECONDS, _seconds_for_work())


def _seconds_for_work() -> float:
    started = time.process_time()
    msgspec.json.decode(_WORK)
    return time.process_time() - started


def shortest(measure: Callable[[], float], *, below: float = 0.0, tries: int = 3) -> float:
    """The shortest of so many measurements. After one below the bound no other is made: it could not change
    the verdict."""
    best = float("inf")
    for _ in range(tries):
        best = min(best, measure())
        if best < below:
            break
    return best

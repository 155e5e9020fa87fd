"""When which signal is due, and what becomes of results."""

import asyncio
from typing import Any

import pytest

from dragoman.transports.reaper import RESULTS_A_TURN, SIGNAL_STEPS, _deliver_some, due_signals


@pytest.mark.parametrize(
    ("elapsed", "due"), [(0, 0), (0.079, 0), (0.08, 1), (0.179, 1), (0.18, 2), (0.57, 2), (0.581, 3), (60, 3)]
)
def test_how_many_signals_are_due(elapsed: float, due: int):
    assert due_signals(elapsed) == due


def test_the_last_signal_cannot_be_ignored():
    assert SIGNAL_STEPS[-1][1].name == "SIGKILL"


async def test_many_results_are_delivered_over_several_turns():
    delivered: list[int] = []
    loop = asyncio.get_running_loop()

    class Job:
        def __init__(self, number: int) -> None:
            self.number = number

        def deliver(self) -> None:
            delivered.append(self.number)

    jobs: list[Any] = [Job(number) for number in range(3 * RESULTS_A_TURN)]
    _deliver_some(loop, jobs)
    counts = [len(delivered)]
    for _ in range(3):
        await asyncio.sleep(0)
        counts.append(len(delivered))

    assert counts == [RESULTS_A_TURN, 2 * RESULTS_A_TURN, 3 * RESULTS_A_TURN, 3 * RESULTS_A_TURN]
    assert delivered == list(range(3 * RESULTS_A_TURN))

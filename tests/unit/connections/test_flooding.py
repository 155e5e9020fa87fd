"""When messages that answer no request are a flood."""

import pytest

from dragoman.connections.flooding import BURST_SECONDS, FloodGauge

RATE = 100
LIMIT = BURST_SECONDS * RATE

CASES = {
    "a burst up to the limit": ([(0, LIMIT)], False),
    "a burst over the limit": ([(0, LIMIT + 1)], True),
    "the allowed rate for a long time": ([(second, RATE) for second in range(1, 1000)], False),
    "a little more for a long time": ([(second, RATE + 10) for second in range(1, 1000)], True),
    "a little more for a short time": ([(second, RATE + 10) for second in range(1, 90)], False),
    "a burst, a pause, a burst": ([(0, LIMIT), (BURST_SECONDS, LIMIT)], False),
    "a burst, a short pause, a burst": ([(0, LIMIT), (BURST_SECONDS / 2, LIMIT)], True),
    "after a long silence no more than at first": ([(1000, LIMIT + 1)], True),
}


@pytest.mark.parametrize(("messages", "flooded"), CASES.values(), ids=CASES.keys())
def test_which_rates_count_as_a_flood(messages: list[tuple[float, int]], flooded: bool):
    gauge = FloodGauge(RATE)

    assert any(gauge.is_flooded(count, now) for now, count in messages) is flooded


def test_the_cause_names_the_limit_and_the_setting():
    assert FloodGauge(RATE).cause == (
        "it sends too many messages: more than 1000 that answer no request, "
        "faster than 100 a second; if that is normal for this server, "
        "raise DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND"
    )

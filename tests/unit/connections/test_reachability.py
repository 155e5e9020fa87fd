"""The wait for a server that cannot be connected to."""

import asyncio

import pytest

from dragoman.connections import reachability
from dragoman.connections.reachability import pause

pytestmark = pytest.mark.requirement("LIF-5")

LONG_SECONDS = 60.0


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachability, "PROBE_INTERVAL_SECONDS", 0.001)
    monkeypatch.setattr(reachability, "QUICK_INTERVAL_SECONDS", 0.001)


class Port:
    """Answers probes in this order, then always with the last answer."""

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers)
        self.probes = 0

    async def __call__(self) -> bool:
        self.probes += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


async def ends_early(port: Port) -> bool:
    try:
        async with asyncio.timeout(0.5):
            await pause(LONG_SECONDS, port)
    except TimeoutError:
        return False
    return True


async def test_a_port_that_was_closed_and_opens_ends_the_wait():
    port = Port(False, False, True)
    assert await ends_early(port)
    assert port.probes == 3


async def test_a_port_that_was_open_all_the_time_does_not_end_the_wait():
    assert not await ends_early(Port(True))


async def test_without_a_probe_the_full_time_is_waited():
    await asyncio.wait_for(pause(0.001, None), 10)


async def test_a_server_that_is_unreachable_only_briefly_is_noticed():
    port = Port(True, True, False, True)
    async with asyncio.timeout(10):
        await pause(LONG_SECONDS, port)
    assert port.probes == 4

"""All connections of a host: settled and closed together, and a machine that slept is noticed."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.connections import supervisor
from dragoman.connections.supervisor import SLEPT_SECONDS, SleepWatch, Supervisor
from dragoman.names import ServerName
from dragoman.testing import FakeClock


class SleepyClock(FakeClock):
    """Counts like the machine's own: while it sleeps, only wall time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self._asleep = 0.0

    def now(self) -> float:
        return super().now() + self._asleep

    def sleep(self, seconds: float) -> None:
        self._asleep += seconds


@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize(
    ("awake", "asleep", "noticed"),
    [
        (0, 0, False),
        (5, 0, False),
        (100_000, 0, False),
        (5, SLEPT_SECONDS, False),
        (5, SLEPT_SECONDS + 0.1, True),
        (5, 8 * 3600, True),
        (5, -3600, False),  # the clock was set back
    ],
)
def test_a_system_sleep_is_distinguished_from_elapsed_time(awake: float, asleep: float, noticed: bool):
    clock = SleepyClock()
    watch = SleepWatch(clock)
    clock.advance(awake)
    clock.sleep(asleep)

    assert watch.noticed() is noticed


def test_a_system_sleep_is_noticed_once():
    clock = SleepyClock()
    watch = SleepWatch(clock)
    clock.sleep(3600)

    assert [watch.noticed() for _ in range(3)] == [True, False, False]
    clock.sleep(3600)
    assert watch.noticed()


def test_a_system_sleep_after_the_clock_was_set_back_is_noticed():
    clock = SleepyClock()
    watch = SleepWatch(clock)
    clock.sleep(-3600)
    assert not watch.noticed()
    clock.sleep(60)

    assert watch.noticed()


@given(st.lists(st.floats(0, SLEPT_SECONDS - 1), max_size=50))
def test_small_clock_corrections_are_not_a_system_sleep(steps: list[float]):
    clock = SleepyClock()
    watch = SleepWatch(clock)
    for step in steps:
        clock.sleep(step)
        assert not watch.noticed()


class Link:
    """A connection as far as the supervisor knows it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.may_settle = asyncio.Event()
        self.checked = asyncio.Event()

    def start(self) -> None:
        self.told.append("start")

    async def settled(self) -> None:
        await self.may_settle.wait()

    async def check(self, seconds: float) -> None:
        self.told.append("check")
        self.checked.set()

    async def close(self) -> None:
        self.told.append("close")


@pytest.fixture
async def links() -> dict[ServerName, Link]:
    return {ServerName(name): Link() for name in ("a", "b")}


def watching(links: dict[ServerName, Link], clock: FakeClock) -> Supervisor:
    return Supervisor(lambda: links, clock)  # type: ignore[arg-type]


async def test_all_are_started_and_closed(links: dict[ServerName, Link]):
    watched = watching(links, FakeClock())
    watched.start()
    await watched.close()

    assert [link.told for link in links.values()] == [["start", "close"]] * 2


async def test_a_selection_of_servers_can_be_waited_for(links: dict[ServerName, Link]):
    watched = watching(links, FakeClock())
    links[ServerName("a")].may_settle.set()
    async with asyncio.timeout(5):
        await watched.settled(["a"])
        everyone = asyncio.create_task(watched.settled())
        await asyncio.sleep(0)
        assert not everyone.done()
        links[ServerName("b")].may_settle.set()
        await everyone


async def test_without_servers_the_wait_ends_at_once():
    async with asyncio.timeout(5):
        await watching({}, FakeClock()).settled()


@pytest.mark.requirement("LIF-5")
async def test_after_a_system_sleep_every_connection_is_pinged(
    links: dict[ServerName, Link], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(supervisor, "TICK_SECONDS", 0.001)
    clock = SleepyClock()
    watched = watching(links, clock)
    watched.start()
    await asyncio.sleep(0)  # the watch has begun
    clock.sleep(3600)
    async with asyncio.timeout(5):
        for link in links.values():
            await link.checked.wait()
    await watched.close()

    assert [link.told.count("check") for link in links.values()] == [1, 1]

"""Many deadlines on one timer, on a loop whose time moves only when told to."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.deadlines import Deadlines


class Timer:
    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self._when = when
        self.callback = callback
        self.cancelled = False

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self.cancelled = True


class StillLoop(asyncio.AbstractEventLoop):
    def __init__(self) -> None:
        self._now = 0.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self._now

    def call_at(
        self, when: float, callback: Callable[[], None], *args: object, context: object = None
    ) -> Timer:  # type: ignore[override]
        self.timers.append(Timer(when, callback))
        return self.timers[-1]

    @property
    def armed(self) -> list[Timer]:
        return [timer for timer in self.timers if not timer.cancelled]

    def advance(self, to: float) -> None:
        while due := [timer for timer in self.armed if timer.when() <= to]:
            timer = min(due, key=Timer.when)
            self.timers.remove(timer)
            self._now = max(self._now, timer.when())
            timer.callback()
        self._now = to


class Watch:
    def __init__(self) -> None:
        self.loop = StillLoop()
        self.expired: list[str] = []
        self.actions: dict[str, Callable[[], None]] = {}
        """By key, what is done at its expiry besides noting it."""
        self.deadlines = Deadlines[str](self.loop, self.expire)

    def set(self, key: str, seconds: float, action: Callable[[], None] = lambda: None) -> None:
        self.actions[key] = action
        self.deadlines.set(key, seconds)

    def expire(self, key: str) -> None:
        self.expired.append(key)
        self.actions[key]()


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_a_deadline_expires_once_and_not_early(watch: Watch):
    watch.set("a", 5)
    watch.loop.advance(4.9)
    assert watch.expired == []

    watch.loop.advance(5)
    watch.loop.advance(100)
    assert watch.expired == ["a"]


def test_a_cleared_deadline_never_expires(watch: Watch):
    watch.set("a", 5)
    watch.deadlines.clear("a")
    watch.deadlines.clear("never set")
    watch.loop.advance(100)

    assert watch.expired == []


def test_an_earlier_deadline_is_not_kept_waiting_by_a_later_one(watch: Watch):
    watch.set("late", 50)
    watch.set("early", 1)
    watch.loop.advance(1)
    assert watch.expired == ["early"]

    watch.loop.advance(50)
    assert watch.expired == ["early", "late"]


def test_setting_a_key_again_replaces_its_deadline(watch: Watch):
    watch.set("a", 1)
    watch.set("a", 10)
    watch.loop.advance(9)
    assert watch.expired == []

    watch.loop.advance(10)
    assert watch.expired == ["a"]


def test_thousands_of_deadlines_need_one_timer(watch: Watch):
    for number in range(5_000):
        watch.set(str(number), 60)
        watch.deadlines.clear(str(number))

    assert len(watch.loop.timers) == 1


def test_after_closing_nothing_expires_and_no_timer_is_left(watch: Watch):
    watch.set("a", 1)
    watch.deadlines.close()
    watch.loop.advance(100)

    assert watch.expired == []
    assert watch.loop.armed == []


def test_an_expiry_may_set_another_deadline(watch: Watch):
    watch.set("a", 1, lambda: watch.set("b", 1))
    watch.loop.advance(1)
    assert watch.expired == ["a"]

    watch.loop.advance(2)
    assert watch.expired == ["a", "b"]


def test_an_expiry_may_clear_another_that_is_due_at_the_same_moment(watch: Watch):
    watch.set("a", 1, lambda: watch.deadlines.clear("b"))
    watch.set("b", 1)
    watch.set("c", 1)
    watch.loop.advance(1)

    assert watch.expired == ["a", "c"]


def test_an_expiry_may_close_everything(watch: Watch):
    watch.set("a", 1, watch.deadlines.close)
    watch.set("b", 1)
    watch.loop.advance(100)

    assert watch.expired == ["a"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 3), st.booleans())))
def test_deadlines_against_a_simple_model(steps: list[tuple[str, int, int, bool]]):
    watch, model, now = Watch(), {}, 0
    expected: list[str] = []
    for key, seconds, passing, clears in steps:
        if clears:
            watch.deadlines.clear(key)
            model.pop(key, None)
        else:
            watch.set(key, seconds)
            model[key] = now + seconds
        now += passing
        watch.loop.advance(now)
        expected += sorted((k for k, when in model.items() if when <= now), key=lambda k: model.pop(k))

    assert sorted(watch.expired) == sorted(expected)

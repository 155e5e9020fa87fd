"""How often, and after which waits, a server that went away is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.connections.reconnect_backoff import REFILL_SECONDS, SPREAD, ReconnectBackoff
from dragoman.settings import Settings

pytestmark = pytest.mark.requirement("LIF-5")


def ladder(attempts: int = 5, *, chance: float = 0.0) -> ReconnectBackoff:
    return ReconnectBackoff(attempts, 1.0, 30.0, lambda: chance)


def waits(of: ReconnectBackoff, number: int = 20) -> list[float | None]:
    return [of.next_wait() for _ in range(number)]


def test_waits_double_and_attempts_end():
    assert waits(ladder(), 7) == [1, 2, 4, 8, 16, None, None]


def test_waits_have_a_limit():
    assert waits(ladder(9), 9) == [1, 2, 4, 8, 16, 30, 30, 30, 30]


def test_without_attempts_there_is_no_wait():
    assert ladder(0).next_wait() is None
    assert ladder(0).next_wait(at_once=True) is None


def test_the_numbers_are_those_of_the_settings():
    settings = Settings(
        {
            "DRAGOMAN_RECONNECT_ATTEMPTS": 2,
            "DRAGOMAN_RECONNECT_WAIT_MS": 100,
            "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 150,
        },
        {},
    )
    first, second, third = waits(ReconnectBackoff.of(settings), 3)

    assert first == pytest.approx(0.09, abs=0.0101)
    assert second == pytest.approx(0.135, abs=0.0151)
    assert third is None


@given(st.floats(0, 1), st.integers(1, 12))
def test_jitter_only_shortens_waits_and_by_a_limited_share(chance: float, number: int):
    full, spread = waits(ladder(12), number)[-1], waits(ladder(12, chance=chance), number)[-1]

    assert full is not None
    assert spread is not None
    assert full * (1 - SPREAD) <= spread <= full


def test_only_the_first_lost_session_is_reconnected_at_once():
    one = ladder()

    assert [one.next_wait(at_once=True) for _ in range(6)] == [0.0, 2, 4, 8, 16, None]


@pytest.mark.parametrize(("asked", "wait"), [(0.0, 1), (0.5, 1), (7.0, 7), (300.0, 300)])
def test_a_servers_retry_after_is_the_minimum_wait(asked: float, wait: float):
    assert ladder(chance=0.0).next_wait(at_least=asked) == wait


def test_the_attempt_is_counted():
    one = ladder()
    counted = [one.attempt]
    for _ in range(3):
        one.next_wait()
        counted.append(one.attempt)

    assert counted == [0, 1, 2, 3]


def test_a_long_connection_restores_all_attempts():
    one = ladder()
    waits(one, 5)
    one.was_connected(5 * REFILL_SECONDS)

    assert waits(one, 6) == [1, 2, 4, 8, 16, None]


def test_a_short_connection_restores_some_attempts():
    one = ladder()
    waits(one, 5)
    one.was_connected(2 * REFILL_SECONDS)

    assert waits(one, 3) == [8, 16, None]


def test_connected_time_never_restores_more_attempts_than_the_limit():
    one = ladder()
    one.was_connected(1e9)

    assert waits(one, 6) == [1, 2, 4, 8, 16, None]


@pytest.mark.parametrize("lasted", [0.0, 0.001, 0.1, 0.5, 1.0])
def test_a_server_that_exits_right_after_each_start_is_soon_not_started_again(lasted: float):
    one = ladder()
    tried = 0
    while one.next_wait() is not None and tried < 100:
        tried += 1
        one.was_connected(lasted)

    assert 5 <= tried <= 15


def test_a_server_that_stays_connected_for_a_while_is_always_retried():
    one = ladder()
    for _ in range(1000):
        assert one.next_wait() is not None
        one.was_connected(2 * REFILL_SECONDS)


def test_the_number_of_attempts_may_be_unlimited():
    assert waits(ladder(100_000), 5000)[-1] == 30


@given(st.lists(st.one_of(st.none(), st.floats(0, 100)), max_size=60), st.integers(0, 10))
def test_waits_are_between_zero_and_the_limit(story: list[float | None], attempts: int):
    one = ladder(attempts, chance=0.5)
    for lasted in story:
        if lasted is not None:
            one.was_connected(lasted)
        elif (wait := one.next_wait()) is not None:
            assert 0 <= wait <= 30
            assert attempts > 0

"""What servers said, kept for as long as they say it keeps."""

import pytest

from dragoman.catalog.cache import SERVERS_KEPT, Cache
from dragoman.catalog.paging import lifetime_seconds
from dragoman.testing import FakeClock

pytestmark = pytest.mark.requirement("CAT-5")
LINK = object()
DAY = 24 * 3600.0


class Kept:
    def __init__(self, room: int = SERVERS_KEPT) -> None:
        self.clock = FakeClock()
        self.cache = Cache[str](self.clock, room)

    def put(self, server: str, value: str = "list", ttl: float | None = None, cost: int = 1) -> None:
        self.cache.put(self.cache.ticket((server, ""), LINK), value, ttl, cost)

    def get(self, server: str, link: object = LINK) -> str | None:
        return self.cache.get((server, ""), link)


@pytest.mark.parametrize(
    ("ttl_ms", "seconds"),
    [
        (1500, 1.5),
        (0, 0.0),
        (-1, 0.0),
        (True, 0.0),
        ("60000", 0.0),
        ([], 0.0),
        (DAY * 1000, DAY),
        (DAY * 1000 + 1, DAY),
        (10**400, DAY),
        (float("inf"), DAY),
        (float("nan"), 0.0),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_time_is_taken_at_its_word_within_a_day(ttl_ms: object, seconds: float):
    assert lifetime_seconds(ttl_ms) == seconds


@pytest.mark.parametrize(
    ("ttl", "later", "is_fresh"),
    [
        (None, 1e9, True),
        (10.0, 9.9, True),
        (10.0, 10.0, False),
        (0.0, 0.0, False),
        (10 * DAY, DAY - 1, True),
        (10 * DAY, DAY, False),
    ],
)
def test_what_is_kept_is_fresh_until_its_time(ttl: float | None, later: float, is_fresh: bool):
    kept = Kept()
    kept.put("a", ttl=ttl)
    kept.clock.advance(later)

    assert (kept.get("a") is not None) is is_fresh
    assert kept.cache.last_known(("a", ""), LINK) == "list"


def test_a_change_makes_one_servers_things_stale_and_nobody_elses():
    kept = Kept()
    kept.put("a")
    kept.put("b")
    kept.cache.changed("a")

    assert (kept.get("a"), kept.get("b")) == (None, "list")


def test_a_change_told_while_asking_makes_the_answer_stale():
    kept = Kept()
    ticket = kept.cache.ticket(("a", ""), LINK)
    kept.cache.changed("a")
    kept.cache.put(ticket, "already old")

    assert kept.get("a") is None
    kept.put("a", "new")
    assert kept.get("a") == "new"


def test_an_answer_that_took_longer_does_not_replace_one_that_was_asked_for_later():
    kept = Kept()
    slow = kept.cache.ticket(("a", ""), LINK)
    kept.cache.changed("a")
    kept.put("a", "new")
    kept.cache.put(slow, "old")

    assert kept.get("a") == "new"


def test_a_late_answer_of_an_old_link_takes_nothing_from_the_new_one():
    kept = Kept()
    late = kept.cache.ticket(("a", ""), object())
    kept.cache.forget("a")
    kept.put("a", "new")
    kept.cache.put(late, "old")

    assert kept.get("a") == "new"


def test_while_changes_are_told_all_the_time_the_newest_answer_is_known():
    kept = Kept()
    for value in ("first", "second", "third"):
        ticket = kept.cache.ticket(("a", ""), LINK)
        kept.cache.changed("a")
        kept.cache.put(ticket, value)

    assert kept.get("a") is None
    assert kept.cache.last_known(("a", ""), LINK) == "third"


def test_what_came_over_one_link_is_not_given_out_over_another():
    kept = Kept()
    kept.put("a")

    assert kept.get("a", object()) is None
    assert kept.cache.last_known(("a", ""), object()) is None


def test_nothing_is_left_of_a_server_that_has_gone_not_even_what_was_being_asked_for():
    kept = Kept()
    kept.put("a")
    ticket = kept.cache.ticket(("a", ""), LINK)
    kept.cache.forget("a")

    assert kept.cache.last_known(("a", ""), LINK) is None
    kept.cache.put(ticket, "late")
    assert kept.get("a") is None


def test_of_more_servers_than_there_is_room_for_the_least_recently_used_goes():
    kept = Kept()
    for number in range(SERVERS_KEPT):
        kept.put(str(number))
    assert kept.get("0") == "list"
    kept.put("one more")

    assert kept.get("1") is None
    assert kept.get("0") == kept.get("one more") == "list"


def test_room_is_counted_by_cost_and_given_back():
    kept = Kept(room=10)
    kept.put("a", cost=6)
    kept.put("b", cost=4)
    kept.put("a", cost=2)
    kept.put("c", cost=4)
    assert [kept.get(name) for name in "abc"] == ["list"] * 3
    kept.put("large", cost=11)
    assert kept.get("large") is None
    assert kept.get("a") == "list", "what does not fit at all pushes nothing out"


def test_the_lists_of_twenty_servers_are_kept():
    clock = FakeClock()
    cache = Cache[str](clock)
    for number in range(21):
        cache.put(cache.ticket((f"server{number}", ""), LINK), "list", None)
    kept = [number for number in range(21) if cache.get((f"server{number}", ""), LINK) is not None]
    assert kept == list(range(1, 21))

"""Resources that were read are kept for as long as their server says."""

import pytest

from dragoman.catalog.paging import lifetime_seconds
from dragoman.catalog.resources import ReadReply
from dragoman.servers.read_cache import ENTRY_BYTES, ReadCache
from dragoman.testing import FakeClock

pytestmark = pytest.mark.requirement("CAT-5")
DAY = 24 * 3600.0


class Kept:
    def __init__(self, limit_bytes: int = 1_000_000) -> None:
        self.clock = FakeClock()
        self.cache = ReadCache(self.clock, limit_bytes)

    def put(
        self, uri: str, ttl: float | None = 60.0, size: int = 10, version: int | None = None
    ) -> ReadReply:
        reply = ReadReply((), (), ttl, size)
        self.cache.put(uri, reply, self.cache.version if version is None else version)
        return reply


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
def test_a_ttl_is_used_as_sent_up_to_one_day(ttl_ms: object, seconds: float):
    assert lifetime_seconds(ttl_ms) == seconds


@pytest.mark.parametrize(
    ("ttl", "later", "is_fresh"),
    [(None, 0.0, False), (10.0, 9.9, True), (10.0, 10.0, False), (0.0, 0.0, False)],
)
def test_a_cached_value_is_valid_until_its_ttl(ttl: float | None, later: float, is_fresh: bool):
    kept = Kept()
    reply = kept.put("x:a", ttl)
    kept.clock.advance(later)

    assert kept.cache.get("x:a") is (reply if is_fresh else None)


def test_a_value_that_was_never_read_is_not_cached():
    assert Kept().cache.get("x:a") is None


def test_a_change_clears_the_cache():
    kept = Kept()
    kept.put("x:a")
    kept.cache.changed()

    assert kept.cache.get("x:a") is None


def test_a_value_requested_before_a_change_is_not_cached():
    kept = Kept()
    before = kept.cache.version
    kept.cache.changed()
    kept.put("x:a", version=before)

    assert kept.cache.get("x:a") is None


def test_the_least_recently_used_is_dropped_first():
    kept = Kept(3 * (ENTRY_BYTES + 13))
    first, _, third = (kept.put(uri) for uri in ("x:a", "x:b", "x:c"))
    assert kept.cache.get("x:a") is first
    fourth = kept.put("x:d")

    assert [kept.cache.get(uri) for uri in ("x:a", "x:b", "x:c", "x:d")] == [first, None, third, fourth]


def test_a_resource_is_cached_once():
    kept = Kept(2 * (ENTRY_BYTES + 13))
    other = kept.put("x:b")
    for _ in range(5):
        newest = kept.put("x:a")

    assert kept.cache.get("x:b") is other
    assert kept.cache.get("x:a") is newest


def test_a_value_over_the_limit_is_not_cached_and_drops_no_other():
    kept = Kept(5_000)
    small = kept.put("x:a")
    kept.put("x:b", size=6_000)

    assert kept.cache.get("x:a") is small
    assert kept.cache.get("x:b") is None

"""The calls of one turn: who runs beside whom."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.calls.outcome import CallOutcome
from dragoman.calls.turn import AT_ONCE, call_in_turn
from dragoman.content.blocks import TextBlock
from dragoman.errors import ConnectionLost, HostClosed

pytestmark = pytest.mark.requirement("CAL-4")


class Workshop:
    """Tools whose names begin with `read` only read; notes who runs at the same time."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.seen: list[tuple[str, ...]] = []
        self.order: list[str] = []

    async def make(self, name: str) -> CallOutcome:
        self.running.append(name)
        self.order.append(name)
        self.seen.append(tuple(sorted(self.running)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.running.remove(name)
        if name.endswith("lost"):
            raise ConnectionLost("box", "gone", may_have_run=True)
        if name.endswith("closed"):
            raise HostClosed
        return CallOutcome(server="box", tool=name, content=(TextBlock(name),))

    async def turn(self, *names: str) -> list[CallOutcome]:
        return await call_in_turn(
            names, lambda number: self.make(names[number]), lambda name: name.startswith("read")
        )


async def test_read_only_calls_run_concurrently():
    shop = Workshop()
    outcomes = await shop.turn("read1", "read2", "read3")

    assert [outcome.text for outcome in outcomes] == ["read1", "read2", "read3"]
    assert max(map(len, shop.seen)) == 3


async def test_a_writing_call_runs_alone_in_its_order():
    shop = Workshop()
    await shop.turn("read1", "write1", "read2", "read3", "write2", "write3")

    assert all(len(running) == 1 for running in shop.seen if any("write" in name for name in running))
    assert shop.order.index("write1") == 1
    assert shop.order[-2:] == ["write2", "write3"]


@given(st.lists(st.sampled_from(["read", "write"]), max_size=12))
def test_every_writer_runs_alone_after_all_before_it(kinds: list[str]):
    shop = Workshop()
    names = [f"{kind}{number}" for number, kind in enumerate(kinds)]
    outcomes = asyncio.run(shop.turn(*names))

    assert [outcome.tool for outcome in outcomes] == names
    for name in (name for name in names if name.startswith("write")):
        place = names.index(name)
        assert set(shop.order[:place]) == set(names[:place])
    assert all(len(running) == 1 for running in shop.seen if running and "write" in "".join(running))


async def test_one_failed_call_does_not_affect_the_others():
    outcomes = await Workshop().turn("read1", "read_lost", "write_lost", "write2")

    assert [outcome.is_error for outcome in outcomes] == [False, True, True, False]
    assert isinstance(outcomes[1].error, ConnectionLost)


async def test_a_host_that_is_closed_ends_the_turn():
    with pytest.raises(HostClosed):
        await Workshop().turn("read1", "read_closed")


async def test_the_number_of_concurrent_calls_is_limited():
    shop = Workshop()
    await shop.turn(*(f"read{number}" for number in range(3 * AT_ONCE)))

    assert max(map(len, shop.seen)) == AT_ONCE

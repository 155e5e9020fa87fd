"""The budget of one server in one turn of the loop."""

import asyncio

from dragoman.transports.pacing import TURN_SECONDS, Pacer, clock


def long_ago() -> float:
    return clock() - 2 * TURN_SECONDS


async def test_little_work_uses_little_of_the_budget():
    pacer = Pacer()
    pacer.spend(clock())

    assert not pacer.is_spent


async def test_many_messages_use_up_the_budget_however_fast_they_are_handled():
    pacer = Pacer()
    pacer.spend(clock(), messages=2000)

    assert pacer.is_spent


async def test_the_budget_is_restored_in_the_next_loop_turn():
    pacer = Pacer()
    pacer.spend(long_ago())
    assert pacer.is_spent
    await pacer.next_turn()

    assert not pacer.is_spent


async def test_without_work_there_is_no_wait():
    turned: list[bool] = []
    asyncio.get_running_loop().call_soon(turned.append, True)
    await Pacer().next_turn()

    assert turned == []


async def test_streams_of_one_server_share_the_budget_and_other_servers_continue():
    pacer, turns, work = Pacer(), 0, 0

    async def stream() -> None:
        nonlocal work
        for _ in range(5):
            await pacer.next_turn()
            work += 1
            pacer.spend(long_ago())

    async def count() -> None:
        nonlocal turns
        while work < 20:
            turns += 1
            await asyncio.sleep(0)

    await asyncio.gather(count(), *(stream() for _ in range(4)))
    assert turns >= 20, "one piece of work a turn, whichever stream it belongs to"


async def test_a_cancelled_wait_does_not_affect_others():
    pacer = Pacer()
    pacer.spend(long_ago())
    impatient = asyncio.ensure_future(pacer.next_turn())
    patient = asyncio.ensure_future(pacer.next_turn())
    await asyncio.sleep(0)
    impatient.cancel()
    await patient

    assert impatient.cancelled() or impatient.done()

"""T65: cancelling one call ends that call, tells the server once, and touches no other."""

import asyncio

import pytest

from dragoman import CallTimeout
from tests.servers import zoo
from tests.torture.arena import at_once


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_t65_one_of_two_calls_is_given_up_and_the_other_finishes(arena, era, how):
    async with arena(zoo("holds_replies.py", protocol=era)) as a:
        kept = asyncio.create_task(a.call("hold"))
        await a.serves_still()  # the server has the first call by now
        given_up = asyncio.create_task(a.call("hold", seconds=0.3 if how == "timeout" else 20))
        await a.serves_still()
        if how == "cancel":
            given_up.cancel()
        async with at_once():
            with pytest.raises(asyncio.CancelledError if how == "cancel" else CallTimeout):
                await given_up
        async with at_once():
            assert await a.call("cancelled") == "1", "exactly the second call, exactly once"
        assert not kept.done()
        async with at_once():
            assert await a.call("release") == "2"
            assert await kept == "released"
        assert a.view.ignored == {"reply nobody waits for": 1}, "the late reply is dropped"
        await a.serves_still()


async def test_t65_a_call_that_was_answered_is_not_cancelled_afterwards(arena, era):
    async with arena(zoo("holds_replies.py", protocol=era)) as a:
        for _ in range(5):
            await a.serves_still()
        call = asyncio.create_task(a.call("hold"))
        await a.serves_still()
        await a.call("release")
        call.cancel()  # the reply is here already
        await asyncio.wait([call])
        async with at_once():
            assert await a.call("cancelled") == ""


async def test_t65_a_hundred_calls_cancelled_together_leave_the_rest_alone(arena, era):
    async with arena(zoo("holds_replies.py", protocol=era)) as a:
        calls = [asyncio.create_task(a.call("hold")) for _ in range(200)]
        await a.serves_still()
        for call in calls[::2]:
            call.cancel()
        await asyncio.wait(calls[::2])
        async with at_once():
            cancelled = (await a.call("cancelled")).split()
            assert sorted(map(int, cancelled)) == list(range(0, 200, 2))
            await a.call("release")
            assert await asyncio.gather(*calls[1::2]) == ["released"] * 100


async def test_t65_a_call_cancelled_before_it_was_sent_is_not_mentioned_to_the_server(arena, era):
    async with arena(zoo("holds_replies.py", protocol=era)) as a:
        call = asyncio.create_task(a.call("hold"))
        call.cancel()
        await asyncio.wait([call])
        assert await a.call("cancelled") == ""
        assert await a.call("release") == "0"

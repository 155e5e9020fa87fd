"""T60: a line without an end is refused at the limit, in linear time and bounded memory."""

import time

import pytest

from dragoman import ConnectionLost, MessageTooLarge
from tests.servers import zoo
from tests.torture.arena import MEGABYTE, at_once, until

LIMIT = {"DRAGOMAN_MESSAGE_LIMIT_BYTES": 8 * MEGABYTE}
ALLOWANCE = 64 * MEGABYTE
GIGABYTE = 1000  # in megabytes


@pytest.mark.parametrize("kind", ["id_first", "id_last", "noise"])
async def test_t60_a_gigabyte_without_a_line_end_is_refused_at_the_limit(arena, era, kind):
    async with arena(zoo("never_ends_a_line.py", protocol=era), settings=LIMIT) as a:
        with pytest.raises((MessageTooLarge, ConnectionLost), match="hostile"):
            async with at_once(5):
                await a.call("pour", kind=kind, megabytes=GIGABYTE)
        await until(lambda: a.view.status == "failed")
        assert "floods its output" in (a.view.reason or "")
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE


async def test_t60_a_gigabyte_is_refused_at_the_usual_limit_too(arena):
    async with arena(zoo("never_ends_a_line.py")) as a:
        with pytest.raises(MessageTooLarge, match=r"hostile.*67108864 bytes"):
            async with at_once(10):
                await a.call("pour", kind="id_first", megabytes=GIGABYTE)
        await until(lambda: a.view.status == "failed")
        assert a.pulse.growth_bytes < 64 * MEGABYTE + ALLOWANCE


@pytest.mark.parametrize("kind", ["reply", "id_last"])
async def test_t60_a_reply_over_the_limit_fails_its_call_and_the_session_goes_on(arena, era, kind):
    async with arena(zoo("never_ends_a_line.py", protocol=era), settings=LIMIT) as a:
        for _ in range(3):
            with pytest.raises(MessageTooLarge, match="hostile"):
                async with at_once():
                    await a.call("pour", kind=kind, megabytes=12)
            await a.serves_still()
        assert a.pulse.growth_bytes < LIMIT["DRAGOMAN_MESSAGE_LIMIT_BYTES"] + ALLOWANCE


async def test_t60_time_grows_with_size_and_not_with_its_square(arena):
    async with arena(zoo("never_ends_a_line.py")) as a:
        seconds = {}
        for megabytes in (4, 32):
            await a.call("pour", kind="reply", megabytes=megabytes)  # the first one warms up
            started = time.thread_time()
            assert len(await a.call("pour", kind="reply", megabytes=megabytes)) == megabytes * 1_000_000
            seconds[megabytes] = time.thread_time() - started
        assert seconds[32] < 8 * 3 * seconds[4], (
            "eight times the size, with room for noise; squared: 64 times"
        )


async def test_t60_a_million_tiny_messages_neither_block_nor_pile_up(arena):
    async with arena(zoo("floods_logs.py")) as a:
        async with at_once(50):
            assert await a.call("chatter", count=1_000_000, seconds=60) == "said 1000000"
        assert a.pulse.growth_bytes < ALLOWANCE
        await a.serves_still()

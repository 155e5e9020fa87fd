"""T17: A connection of which one direction is closed is reported as lost within bounded time."""

import pytest

from dragoman.errors import CallTimeout, ConnectionLost
from tests.servers import stdio_server
from tests.torture.bystander_host import MEGABYTE, at_once, until

STALL = {"DRAGOMAN_WRITE_STALL_MS": 500}


async def test_t17_a_closed_stdout_ends_the_call_though_the_process_still_runs(bystander_host, era):
    async with bystander_host(stdio_server("half_open.py", "closes_output", protocol=era)) as a:
        with pytest.raises(ConnectionLost, match=r"hostile.*closed its stdout"):
            async with at_once():
                await a.call("act")
        await until(lambda: a.view.status == "failed")


async def test_t17_a_closed_stdin_is_noticed_by_the_next_call(bystander_host, era):
    async with bystander_host(stdio_server("half_open.py", "closes_input", protocol=era)) as a:
        with pytest.raises(CallTimeout):
            await a.call("act", seconds=0.3)
        with pytest.raises(ConnectionLost, match="hostile"):
            async with at_once():
                await a.call("echo", message="anybody?")


async def test_t17_if_the_server_does_not_read_its_input_the_write_deadline_applies(bystander_host, era):
    async with bystander_host(
        stdio_server("half_open.py", "stops_reading", protocol=era), settings=STALL
    ) as a:
        with pytest.raises(CallTimeout):
            await a.call("act", seconds=0.2)
        with pytest.raises(ConnectionLost, match=r"hostile.*not read its stdin for 0.5 s"):
            async with at_once(0.5 + 2):
                await a.call("echo", message="x" * 20 * MEGABYTE, seconds=60)
        await until(lambda: a.view.status == "failed")
    assert a.close_seconds < 3


async def test_t17_the_deadline_of_a_call_applies_while_its_arguments_cannot_be_sent(bystander_host):
    async with bystander_host(stdio_server("half_open.py", "stops_reading")) as a:
        with pytest.raises(CallTimeout):
            await a.call("act", seconds=0.2)
        for _ in range(3):  # for the second and third, the pipe is full before they start
            with pytest.raises(CallTimeout, match="hostile"):
                async with at_once(0.5 + 1):
                    await a.call("echo", message="x" * 20 * MEGABYTE, seconds=0.5)
    assert a.close_seconds < 3


async def test_t17_large_arguments_and_large_replies_do_not_deadlock(bystander_host, era):
    load = "0123456789" * (2 * MEGABYTE)
    async with bystander_host(stdio_server("half_open.py", "drains_first", protocol=era)) as a:
        async with at_once(10):
            assert await a.call("act", load=load, raw=True) == load[::-1]
        await a.serves_still()

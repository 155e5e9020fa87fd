"""T105: Closing very many servers does not block the event loop, and takes linear time."""

import asyncio
import time

import pytest

from dragoman import Host
from tests.servers import SERVER_PROGRAMS
from tests.torture.bystander_host import Pulse

STALL_SECONDS = 0.05
STALL_UNITS = 20
"""Or this many times as long as a fixed amount of work takes on this machine, whichever is more; see
`Pulse`."""
TINY = {"command": "/bin/sh", "args": [str(SERVER_PROGRAMS / "tiny.sh")], "protocol": "2025-11-25"}


class Closing:
    """Opens a host with this many servers, closes it, and measures the load on the event loop."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def run(self) -> None:
        servers = {f"tiny_{number}": TINY for number in range(self.count)}
        settings = {"MCP_SERVER_CONNECTION_BATCH_SIZE": 50, "MCP_TIMEOUT": 120_000}
        host = Host(servers, settings=settings)
        async with host:
            views = await host.ready(timeout=240)
            assert {view.status for view in views.values()} == {"connected"}
            self.pulse = Pulse()
            beating = asyncio.create_task(self.pulse.beat())
            await asyncio.sleep(0)
            began, worked = time.monotonic(), time.thread_time()
            await host.close()
            self.seconds = time.monotonic() - began
            self.work_seconds = time.thread_time() - worked
            beating.cancel()
        assert {view.status for view in host.servers.values()} == {"disabled"}


@pytest.mark.requirement("LIF-10")
@pytest.mark.usefixtures("light_heap")
@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
async def test_t105_closing_many_servers_does_not_block_the_loop(count):
    closing = Closing(count)
    await closing.run()
    allowed = max(STALL_SECONDS, STALL_UNITS * closing.pulse.unit_seconds)
    assert closing.pulse.longest_work_seconds < allowed
    assert closing.seconds < 30


@pytest.mark.slow
@pytest.mark.requirement("LIF-10")
@pytest.mark.usefixtures("light_heap")
async def test_t105_closing_takes_linear_time_in_the_number_of_servers():
    few, many = Closing(50), Closing(400)
    await few.run()
    await many.run()
    assert many.work_seconds < 8 * 2.5 * few.work_seconds, "squared: 64 times"

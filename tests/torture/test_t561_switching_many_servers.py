"""T561: enabling or disabling very many servers takes linear time."""

import asyncio
import time

import pytest

from dragoman import Host

ENTRY = {"command": "/bin/true"}


async def work_seconds(count: int) -> float:
    """Processor time of disabling this many servers at once, which are disabled already."""
    async with Host({f"s{number}": ENTRY for number in range(count)}) as host:
        await asyncio.gather(*(host.disable(name) for name in host.servers))
        began = time.thread_time()
        views = await asyncio.gather(*(host.disable(name) for name in host.servers))
        worked = time.thread_time() - began
        assert {view.status for view in views} == {"disabled"}
        return worked


@pytest.mark.requirement("LIF-10")
@pytest.mark.usefixtures("light_heap")
async def test_t561_disabling_servers_takes_linear_time():
    few = min([await work_seconds(50) for _ in range(3)])
    many = min([await work_seconds(400) for _ in range(2)])
    assert many < 8 * 3 * few, "squared: 64 times"

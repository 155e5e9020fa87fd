"""T16: A flood on stderr neither blocks the server nor fills the memory of the host."""

import pytest

from tests.servers import stdio_server
from tests.torture.bystander_host import MEGABYTE, at_once


@pytest.mark.parametrize("kind", ["text", "binary", "one_line"])
async def test_t16_a_call_completes_while_stderr_is_flooded(bystander_host, era, kind):
    async with bystander_host(stdio_server("floods_stderr.py", protocol=era)) as a:
        async with at_once(5):
            assert await a.call("flood", kind=kind, megabytes=10) == "done"
        tail = a.view.stderr_tail
        assert len(tail.encode()) <= 64 * 1024
        assert tail.endswith("and that was all")
        assert not any(ord(c) < 32 and c not in "\n\t" for c in tail), "made visible"
        assert a.pulse.growth_bytes < 64 * MEGABYTE
        await a.serves_still()


@pytest.mark.requirement("TRN-1")
async def test_t16_memory_stays_bounded_over_a_longer_flood(bystander_host):
    async with bystander_host(stdio_server("floods_stderr.py")) as a:
        async with at_once(15):
            for _ in range(10):
                await a.call("flood", kind="one_line", megabytes=10)
        assert a.pulse.growth_bytes < 64 * MEGABYTE

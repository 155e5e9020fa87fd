"""T386: a call is cancelled at the same moment at which its time limit passes."""

import asyncio
import time

import pytest

from dragoman import Host
from tests.servers.office import Office
from tests.torture.bystander_host import until

SECONDS = 0.5
CALL = "mcp__office__hold"


@pytest.mark.requirement("CAL-2")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_t386_the_server_is_notified_of_the_cancellation(revision: str):
    office = Office((revision,))
    async with Host({"office": office}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        call = asyncio.create_task(host.call(CALL, timeout_seconds=SECONDS))
        await until(lambda: "hold" in office.ledger)
        asyncio.get_running_loop().call_later(SECONDS, call.cancel)
        time.sleep(2 * SECONDS)  # blocks the loop: both timers are due when it continues
        await asyncio.wait([call])
        await until(lambda: office.ledger == ["hold", "cancelled"])

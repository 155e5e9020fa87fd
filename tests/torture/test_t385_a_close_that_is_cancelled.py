"""T385: closing a connection is cancelled at any time, as when a program ends without closing its host."""

import asyncio
import contextlib
from typing import Any

import pytest

from dragoman.transports.stdio import Program, StdioTransport
from tests.servers import stdio_server

TURNS = 6


class Ignoring:
    """Ignores what a transport delivers."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


async def opened() -> StdioTransport:
    entry = stdio_server("well_behaved.py")
    program = Program((entry["command"], *entry["args"]), {}, None, "calm")
    transport = StdioTransport("calm", program, limit_bytes=1000, stall_seconds=10)
    await transport.open(Ignoring())
    return transport


@pytest.mark.requirement("LIF-10")
@pytest.mark.parametrize("turns", range(TURNS))
async def test_t385_a_cancelled_close_leaves_no_asyncio_error(turns: int):
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
    transport = await opened()
    closing = asyncio.create_task(transport.close())
    for _ in range(turns):
        await asyncio.sleep(0)
    closing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await closing
    await transport.close()
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert reported == []

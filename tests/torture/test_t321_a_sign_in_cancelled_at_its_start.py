"""T321: a sign-in is cancelled while its listener is being opened. The port is free for the next
sign-in."""

import asyncio
import contextlib

import pytest

from dragoman.auth.callback import CallbackListener, is_free

TURNS = 12
"""More turns of the event loop than opening a listener takes."""


@pytest.mark.requirement("AUT-2")
async def test_t321_the_port_is_free_after_the_listener_is_cancelled_at_any_time():
    async with CallbackListener() as first:
        port = first._port
    entered, in_use = list[int](), list[int]()
    for turns in range(TURNS):
        listener = CallbackListener(port)
        opening = asyncio.create_task(listener.__aenter__())
        for _ in range(turns):
            await asyncio.sleep(0)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await opening
            entered.append(turns)
            await listener.__aexit__()
        if not is_free(port):
            in_use.append(turns)
            break
    assert in_use == []
    assert entered[-1] == TURNS - 1

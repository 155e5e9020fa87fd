"""T827: a program writes its requests to a gateway over stdio and closes the pipe at once, as a script does
(`printf … | dragoman serve --stdio`). They are answered; one that takes long keeps nothing running."""

import asyncio

import pytest

from dragoman.gateway import stdio
from tests.torture.test_t260_a_stdio_client_that_does_not_read import messages, over_stdio

pytestmark = pytest.mark.requirement("GWY-2")


async def test_t827_calls_that_were_sent_before_the_input_ends_are_answered():
    async with over_stdio() as over:
        over.call(1, "small")
        over.stream.shut()
        async with asyncio.timeout(20):
            await over.serving
        assert [each["id"] for each in await messages(over.output, 2)] == [0, 1]


async def test_t827_a_call_without_an_end_does_not_keep_the_gateway_running(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stdio, "END_SECONDS", 0.05)
    async with over_stdio() as over:
        over.call(1, "endless")
        over.stream.shut()
        async with asyncio.timeout(20):
            await over.serving
        assert over.calls == ["endless", "cancelled"]

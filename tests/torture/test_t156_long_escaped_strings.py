"""T156: long strings with escapes are read in linear time, and a call's time limit holds while they are."""

import asyncio
import threading

import pytest
from msgspec import Raw

from dragoman.calls import invoke
from dragoman.content.result import read_large_now
from dragoman.errors import CallTimeout
from tests.cpu_time import CpuTimer
from tests.servers.web import answers, streamable
from tests.torture.conftest import MODERN

pytestmark = pytest.mark.requirement("CAL-7")

MEGABYTE = 1024 * 1024
STRINGS = {
    "long ones": '"' + "x" * 2500 + "\\n" * 2500 + '",',
    "shorter ones": '"' + "\\n" * 300 + '",',
    "very short ones": '"\\n\\n\\n\\n\\n\\n\\n",',
    "quotes": '"' + '\\"' * 3000 + '",',
}


@pytest.mark.parametrize("what", STRINGS)
def test_t156_strings_with_escapes_are_read_in_linear_time(what: str):
    piece = STRINGS[what]
    data = '{"content":[],"structuredContent":[' + piece * (4 * MEGABYTE // len(piece)) + "1]}"

    timer = CpuTimer()
    result, _ = read_large_now(Raw(data.encode()))
    assert timer.seconds() < 1.0
    assert result.structured.size_bytes > 4 * MEGABYTE - len(piece)


async def test_t156_the_time_limit_applies_while_a_result_is_read(bystander_host, monkeypatch):
    begun, over = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def read_slowly(raw: Raw):
        loop.call_soon(begun.set)
        return await asyncio.to_thread(lambda: (over.wait(30), read_large_now(raw))[1])

    monkeypatch.setattr(invoke, "read_large", read_slowly)
    async with (
        streamable(revisions=(MODERN,)) as server,
        bystander_host({"url": server.url, "protocol": MODERN}) as a,
    ):
        server.on["tools/call"] = answers.first(
            1, answers.body(lambda ask: answers.reply_to(ask, "x" * MEGABYTE))
        )
        try:
            with pytest.raises(CallTimeout, match="hostile did not answer"):
                await a.outcome("echo", text="x", seconds=1)
            assert begun.is_set()
        finally:
            over.set()
        assert await a.call("echo", text="still there") == "still there"

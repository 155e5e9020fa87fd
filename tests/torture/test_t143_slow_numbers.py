"""T143: numbers that take long to decode do not block the event loop."""

import time

import pytest

from dragoman.content.result import decoded
from dragoman.errors import RemoteError
from tests.servers.web import answers, streamable
from tests.torture.bystander_host import at_once
from tests.torture.conftest import MODERN
from tests.torture.test_t141_costly_checks import WORK_UNITS

COUNT = 150_000
SLOW = b"[" + b"1e308," * (COUNT - 1) + b"1e308]"
START = b'{"jsonrpc":"2.0","id":%d,'
TOOL = b'{"content":[],"resultType":"complete","structuredContent":{"value":%b}}}' % SLOW


def reply_with(rest: bytes):
    return answers.body(lambda ask: START % ask.message["id"] + rest)


@pytest.mark.requirement("CAL-1")
async def test_t143_a_result_of_slow_numbers_is_decoded_quickly(bystander_host):
    async with (
        streamable(revisions=(MODERN,)) as server,
        bystander_host({"url": server.url, "protocol": MODERN}) as a,
    ):
        server.on["tools/call"] = answers.first(1, reply_with(b'"result":' + TOOL))
        began = time.process_time()
        async with at_once(10):
            outcome = await a.outcome("echo", text="x", raw=True)
        assert decoded(outcome.structured_content) == {"value": [1e308] * COUNT}
        assert time.process_time() - began < WORK_UNITS * a.pulse.unit_seconds


@pytest.mark.requirement("CAL-1")
async def test_t143_an_error_of_slow_numbers_is_decoded_quickly(bystander_host):
    async with (
        streamable(revisions=(MODERN,)) as server,
        bystander_host({"url": server.url, "protocol": MODERN}) as a,
    ):
        error = b'"error":{"code":-32000,"message":"no","data":%b}}' % SLOW
        server.on["tools/call"] = answers.first(1, reply_with(error))
        began = time.process_time()
        async with at_once(10):
            outcome = await a.outcome("echo", text="x")
        assert isinstance(outcome.error, RemoteError)
        assert outcome.error.remote_data == [1e308] * COUNT
        assert time.process_time() - began < WORK_UNITS * a.pulse.unit_seconds


async def test_t143_text_that_resembles_slow_numbers_is_decoded_as_before(bystander_host):
    texts = {f"1e{number}": {"type": "string"} for number in range(100, 1_500)}
    async with streamable(revisions=(MODERN,)) as server:
        server.in_memory.add_tool("odd", lambda *_: "ran", properties=texts)
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            assert await a.call("odd") == "ran"

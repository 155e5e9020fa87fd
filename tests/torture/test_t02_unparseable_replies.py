"""T02: A reply that cannot be parsed fails its own call at once, and nothing else."""

import asyncio
from contextlib import suppress

import pytest

from dragoman.errors import MalformedReply
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.lines import ID, VERSION, message, reply, result

DEEP = 10_000

VALUES = {
    "deep arrays": "[" * DEEP + "]" * DEEP,
    "deep objects": '{"a":' * DEEP + "1" + "}" * DEEP,
    "a bad escape": r'"\q"',
    "a raw control character": '"\x01"',
}
STRUCTURED = '"result":{"resultType":"complete","content":[],"structuredContent":%s}'
SHAPES = {
    "id first": message(VERSION, ID, STRUCTURED),
    "id last": message(VERSION, STRUCTURED, ID),
}
COMPLETE_LINES = {
    "a byte order mark": "\xef\xbb\xbf" + reply(),
    "a batch of one": "[" + reply().strip() + "]\n",
    "cut off": '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"te\n',
    "cut off after the id": '{"jsonrpc":"2.0","id":$ID\n',
    "two in one line": reply().strip() + reply(),
    "single quotes": reply().replace('"', "'").replace("'id':", '"id":'),
    "content is a text": '{"jsonrpc":"2.0","id":$ID,"result":{"content":"hello"}}\n',
    "the result is a list": '{"jsonrpc":"2.0","id":$ID,"result":[]}\n',
    "the result is null": '{"jsonrpc":"2.0","id":$ID,"result":null}\n',
    "resultType is a list": '{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"resultType":[]}}\n',
    "the error is a text": '{"jsonrpc":"2.0","id":$ID,"error":"bad"}\n',
    "the error has no code": '{"jsonrpc":"2.0","id":$ID,"error":{"message":"bad"}}\n',
}
CASES = {
    **{
        f"{what}, {where}": shape % value for what, value in VALUES.items() for where, shape in SHAPES.items()
    },
    **COMPLETE_LINES,
}


@pytest.mark.requirement("CAL-6")
@pytest.mark.parametrize("line", CASES.values(), ids=CASES.keys())
async def test_t02_a_reply_that_cannot_be_parsed_fails_that_call_only(bystander_host, era, line):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        other = asyncio.create_task(a.call("say", writes=[], seconds=20))
        await a.serves_still()
        with pytest.raises(MalformedReply, match="malformed reply from hostile"):
            async with at_once():
                await a.call("say", writes=[line])
        await a.serves_still()
        assert not other.done(), "a call that was not addressed waits on"
        other.cancel()


LOST_IDS = {
    "cut off before the id": '{"jsonrpc":"2.0","result":{"content":[{"type":"te\n',
    "a list as the id": f'{{"jsonrpc":"2.0","id":["d"],"result":{result()}}}\n',
    "an object as the id": f'{{"jsonrpc":"2.0","id":{{}},"result":{result()}}}\n',
}


@pytest.mark.parametrize("line", LOST_IDS.values(), ids=LOST_IDS.keys())
async def test_t02_a_malformed_line_without_a_request_id_is_unparsed_output_and_fails_no_call(
    bystander_host, era, line
):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once():
            assert await a.call("say", writes=[line, reply()]) == "right"
        assert a.view.unparsed_lines == 1
        await a.serves_still()


LENIENT = {
    "not a number": "NaN",
    "infinity": "Infinity",
    "too large for a float": "1e999",
    "minus zero": "-0",
    "an integer of 100 000 digits": "9" * 100_000,
    "an integer of 200 000 digits": "9" * 200_000,
}


@pytest.mark.parametrize("value", LENIENT.values(), ids=LENIENT.keys())
async def test_t02_numbers_at_the_limits_of_json_end_the_call_with_a_result_or_an_error(
    bystander_host, value
):
    async with bystander_host(stdio_server("writes_given_bytes.py")) as a:
        async with at_once():
            with suppress(MalformedReply):
                await a.call("say", writes=[SHAPES["id first"] % value])
        await a.serves_still()

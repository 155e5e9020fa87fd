"""T04: Only a reply with exactly the id of the request counts, and only once."""

import asyncio

import pytest

from dragoman.errors import MalformedReply
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.lines import ID, VERSION, message, reply, result

WRONG = {
    "an id nobody used": [reply("wrong", "99999")],
    "another number": [reply("wrong", str(number)) for number in range(1, 9)],
    "our number as text": [reply("wrong", '"$ID"')],
    "our number as a float": [reply("wrong", "$ID.0")],
    "a number as text": [reply("wrong", f'"{number}"') for number in range(1, 9)],
    "true": [reply("wrong", "true")],
    "a float": [reply("wrong", f"{number}.0") for number in range(1, 9)],
    "null": [reply("wrong", "null")],
    "no id": [f'{{"jsonrpc":"2.0","result":{result("wrong")}}}\n'],
    "an error for null": [
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what \\u001b[2J?"}}\n'
    ],
    "an error without an id": ['{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}\n'],
    "our id as text with blanks": [reply("wrong", '" $ID "')],
}


@pytest.mark.parametrize("lines", WRONG.values(), ids=WRONG.keys())
async def test_t04_a_reply_with_another_id_is_dropped_and_counted(bystander_host, era, lines):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once():
            assert await a.call("say", writes=[*lines, reply()]) == "right"
        assert sum(a.view.ignored.values()) == len(lines)
        assert len([text for text in a.log() if "ignored" in text]) == 1
        assert not any("\x1b" in text for text in a.log())
        await a.serves_still()


async def test_t04_an_error_without_an_id_is_reported_as_an_error_of_the_server(bystander_host, era):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        fault = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot parse this"}}\n'
        await a.call("say", writes=[fault + reply()])
        assert any("cannot parse this" in text and "-32700" in text for text in a.log())


async def test_t04_the_first_reply_counts_and_duplicates_are_dropped(bystander_host, era):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        for _ in range(5):
            async with at_once():
                assert await a.call("say", writes=[reply() + reply("second") + reply("third")]) == "right"
        await a.serves_still()
        assert sum(a.view.ignored.values()) == 10


NEITHER_NOR = {
    "both a result and an error": message(
        VERSION, ID, f'"result":{result()}', '"error":{"code":1,"message":"x"}'
    ),
    "neither": message(VERSION, ID),
}


@pytest.mark.parametrize("line", NEITHER_NOR.values(), ids=NEITHER_NOR.keys())
async def test_t04_a_reply_must_be_either_a_result_or_an_error(bystander_host, era, line):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        with pytest.raises(MalformedReply, match="malformed reply from hostile"):
            async with at_once():
                await a.call("say", writes=[line])
        await a.serves_still()


async def test_t04_many_calls_answered_out_of_order_each_get_their_own_reply(bystander_host, era):
    async with bystander_host(stdio_server("answers_all_at_once.py", protocol=era)) as a:
        for _ in range(5):
            async with at_once():
                texts = await asyncio.gather(*(a.call("collect", together=30, number=n) for n in range(30)))
            assert texts == [f"reply to {n}" for n in range(30)]


async def test_t04_a_reply_to_a_cancelled_request_is_dropped(bystander_host, era):
    """Cancelling sends a notification; this server answers the cancelled request all the same."""
    async with bystander_host(stdio_server("holds_replies.py", protocol=era)) as a:
        call = asyncio.create_task(a.call("hold"))
        await a.serves_still()
        call.cancel()
        await asyncio.wait([call])
        async with at_once():
            assert await a.call("release") == "1"
        assert a.view.ignored == {"reply to no pending request": 1}

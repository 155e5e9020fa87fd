"""T108: Output that is not a message of the protocol never fails a call, whatever it resembles."""

import asyncio

import pytest

from dragoman.errors import MalformedReply
from tests.servers import stdio_server
from tests.servers.web import http_sse, streamable, websocket
from tests.torture.bystander_host import at_once, until
from tests.torture.conftest import LEGACY, MODERN
from tests.torture.lines import ID, VERSION, message, reply, result

TOGETHER = 50

STRAY = {
    "a log record that names the protocol": '{"level":"info","jsonrpc":"2.0 message"}',
    "a log record with the protocol's version": '{"jsonrpc":"2.0","level":"info"}',
    "another version": '{"jsonrpc":"1.0","result":{}}',
    "a result without an id": f'{{"jsonrpc":"2.0","result":{result()}}}',
    "a result with a list as its id": f'{{"jsonrpc":"2.0","id":["d"],"result":{result()}}}',
    "cut off before the id": '{"jsonrpc":"2.0","result":{"content":[{"type":"te',
    "a log record that is cut off": '{"level":"info","jsonrpc":"2.0","msg":"half of a lin',
    "a log record with a request's id": '{"level":"debug","id":$ID,"msg":"begins"}',
    "a log record with a request in it": '{"got":{"jsonrpc":"2.0","id":$ID,"method":"tools/call"}}',
    "a log record with a reply in it": '{"sent":{"jsonrpc":"2.0","id":$ID,"result":{}}}',
    "a log line with a request in it": '[12:00:01] {"jsonrpc":"2.0","id":$ID,"method":"tools/call"}',
    "a log line with a reply in it": '[12:00:01] -> {"jsonrpc":"2.0","id":$ID,"result":{}}',
    "a log record with a reply as text": r'{"sent":"{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":1}", bad}',
    "a list of numbers": "[1,2,3]",
}


@pytest.mark.requirement("CAL-6")
@pytest.mark.parametrize("stray", STRAY.values(), ids=STRAY.keys())
async def test_t108_an_unparsed_line_fails_no_call_in_progress(bystander_host, era, stray):
    async with bystander_host(stdio_server("answers_all_at_once.py", protocol=era)) as a:
        async with at_once():
            texts = await asyncio.gather(
                *(
                    a.call("collect", together=TOGETHER, number=number, stray=stray + "\n")
                    for number in range(TOGETHER)
                )
            )
        assert texts == [f"reply to {number}" for number in range(TOGETHER)]
        assert sum(a.view.ignored.values()) == 1
        await a.serves_still()


async def test_t108_unparsed_lines_are_counted_and_the_newest_are_shown(bystander_host, era):
    stray = "".join(f'{{"jsonrpc":"2.0 message","number":{number}}}\n' for number in range(100))
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        assert await a.call("say", writes=[stray, reply()]) == "right"
        assert a.view.unparsed_lines == 100
        assert a.view.unparsed_output == tuple(
            f'{{"jsonrpc":"2.0 message","number":{n}}}' for n in range(92, 100)
        )


@pytest.mark.parametrize(
    "line",
    [
        message(ID, f'"result":{result()}'),
        message('"jsonrpc":"2.0 message"', ID, f'"result":{result()}'),
        '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"te\n',
        message(VERSION, '"result":{"a":tru}', ID),
    ],
)
async def test_t108_a_malformed_reply_with_the_id_of_its_request_fails_that_call_at_once(
    bystander_host, era, line
):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        with pytest.raises(MalformedReply, match="malformed reply from hostile"):
            async with at_once():
                await a.call("say", writes=[line])
        await a.serves_still()


SITES = {"http": streamable, "sse": http_sse, "ws": websocket}


@pytest.mark.parametrize(
    ("kind", "revision"), [("http", LEGACY), ("http", MODERN), ("sse", "2024-11-05"), ("ws", MODERN)]
)
async def test_t108_an_unparsed_message_over_the_network_fails_no_call_in_progress(
    bystander_host, kind, revision
):
    released = asyncio.Event()

    async def wait(arguments, _):
        server.ledger.enter("wait")
        await released.wait()
        return arguments["number"]

    async with SITES[kind](revisions=(revision,)) as server:
        server.in_memory.add_tool("wait", wait, properties={"number": {"type": "string"}})
        async with bystander_host({"type": kind, "url": server.url, "protocol": revision}) as a:
            await until(lambda: (kind, revision) != ("http", LEGACY) or server.asked("GET"))
            calls = [asyncio.create_task(a.call("wait", number=str(n))) for n in range(TOGETHER)]
            await until(lambda: server.ledger.counts["wait"] == TOGETHER)
            server.push({"level": "info", "jsonrpc": "2.0 message"})
            if (kind, revision) != ("http", MODERN):  # where the client receives only what it requested
                await until(lambda: a.view.unparsed_lines == 1)
            released.set()
            async with at_once():
                assert await asyncio.gather(*calls) == [str(number) for number in range(TOGETHER)]

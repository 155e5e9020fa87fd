"""T131: a large message that is not a result does not block the event loop longer than reading it once."""

import time

import pytest

from dragoman.config.jsonc import locate
from dragoman.events import ServerLogged
from dragoman.surrogates import replace_lone_surrogates
from tests.servers import stdio_server
from tests.torture.bystander_host import until

SIZE = 24 * 1024 * 1024
LOG = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":'
LARGE = {
    "a log line of numbers": (LOG + "[", "1,", "1]}}"),
    "a log line of objects": (LOG + "[", '{"a":1},', "1]}}"),
    "emoji and half of one": ('{"jsonrpc":"2.0","method":"x","params":"', "\\ud83d\\ude00", '\\ud83d"}'),
    "lists without end": ('{"jsonrpc":"2.0","method":"x","params":', "[", ""),
    "quotes": ("{", '"', ""),
}


@pytest.mark.slow
@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("what", LARGE)
async def test_t131_a_large_line_does_not_block_the_event_loop(bystander_host, what):
    head, part, tail = LARGE[what]
    async with bystander_host(stdio_server("writes_long_lines.py", protocol="2025-11-25")) as a:
        text = await a.call("say", head=head, part=part, times=SIZE // len(part), tail=tail)
        assert text == "right"  # the bystander_host fails the test if the event loop was blocked


@pytest.mark.slow
async def test_t131_only_the_beginning_of_a_large_log_line_is_shown(bystander_host):
    async with bystander_host(stdio_server("writes_long_lines.py", protocol="2025-11-25")) as a:
        await a.call("say", head=LOG + "[", part="1,", times=100_000, tail="1]}}")
        await until(lambda: any(isinstance(event, ServerLogged) for event in a.events))
        logged = next(event for event in a.events if isinstance(event, ServerLogged))
        assert logged.text.startswith('{"level":"info","data":[1,1,1,')
        assert logged.text.endswith(" more characters]")


@pytest.mark.slow
async def test_t131_a_large_error_is_returned_without_its_data(bystander_host):
    async with bystander_host(stdio_server("writes_long_lines.py", protocol="2025-11-25")) as a:
        head = '{"jsonrpc":"2.0","id":$ID,"error":{"code":7,"message":"no","data":['
        text = await a.call("say", head=head, part="1,", times=SIZE // 2, tail="1]}}")
        assert text == "hostile answered error 7: no"


def test_t131_text_with_too_many_surrogate_pairs_is_left_unchanged():
    pair = b"\\ud83d\\ude00"
    assert replace_lone_surrogates(pair * 1000 + b"\\ud83d") == pair * 1000 + b"\\ufffd"
    assert replace_lone_surrogates(pair * 100_001 + b"\\ud83d") is None


def test_t131_positions_in_one_long_line_are_found_in_linear_time():
    def seconds(count: int) -> float:
        text = "{" + ",".join(f'"{number:06}":1' for number in range(count)) + "}"
        began = time.thread_time()
        assert locate(text, ["000001"]) == (1, 13)
        return time.thread_time() - began

    assert seconds(320_000) < 24 * max(seconds(40_000), 0.01)

"""T01: Every message arrives exactly once and in order, despite unparsed output and unusual framing."""

import asyncio

import pytest

from dragoman.events import ServerLogged
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once, until
from tests.torture.lines import log, reply

UNPARSED = {
    "a banner": ["Welcome to the server v1.0\n*** listening ***\n"],
    "blank lines": ["\n\n  \n\t\n\r\n"],
    "an ANSI log": ["\x1b[32mINFO\x1b[0m started \x1b]0;title\x07\n"],
    "JSON that is no message": ['{"level":"info","msg":"started"}\n[1,2,3]\n42\n"text"\nnull\n'],
    "binary": ["\x00\x01\xfe\xff\xc3(\n"],
    "a stack trace": ['Traceback (most recent call last):\n  File "x"\nValueError: {no} [json]\n'],
}

FRAMING = {
    "line by line": [reply()],
    "CRLF": [reply().rstrip("\n") + "\r\n"],
    "spaces around": ["  \t" + reply().rstrip("\n") + "  \n"],
    "between noises": ["noise\n" + reply() + "noise\n"],
}

TEXTS = {
    "separators that are no line ends": "a\u2028b\u2029c\u0085d",
    "many bytes a character": "né€𝄞" * 50,
    "nothing": "",
}


@pytest.mark.parametrize("noise", UNPARSED.values(), ids=UNPARSED.keys())
async def test_t01_unparsed_output_between_messages_has_no_effect_and_is_reported_once(
    bystander_host, era, noise
):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        for _ in range(3):
            async with at_once():
                assert await a.call("say", writes=[*noise, reply()]) == "right"
        words = [text for text in a.log() if "ignored" in text]
        lines = sum(bool(line.strip()) for line in "".join(noise).split("\n"))
        assert sum(a.view.ignored.values()) == 3 * lines
        assert a.view.unparsed_lines == 3 * lines
        assert len(words) == min(lines, 1), "told once, however often it happens"
        assert not any("\x1b" in text or "\x07" in text for text in words)


@pytest.mark.parametrize("writes", FRAMING.values(), ids=FRAMING.keys())
async def test_t01_framing_does_not_matter(bystander_host, era, writes):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once():
            assert await a.call("say", writes=writes) == "right"
        await a.serves_still()


@pytest.mark.parametrize("chunk", [1, 7, 100_000])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
async def test_t01_text_arrives_unchanged_however_its_bytes_are_split(bystander_host, text, chunk):
    async with bystander_host(stdio_server("writes_given_bytes.py")) as a, at_once():
        assert await a.call("say", writes=[reply(text)], chunk=chunk, raw=True) == text


async def test_t01_fifty_messages_in_one_write_arrive_once_and_in_order(bystander_host, era):
    async with bystander_host(stdio_server("writes_given_bytes.py", protocol=era)) as a:
        async with at_once():
            assert (
                await a.call("say", writes=["".join(log(f"log {n}") for n in range(50)) + reply()]) == "right"
            )
        await until(lambda: len(a.happened(ServerLogged)) >= 50)
        assert a.log() == [f"log {number}" for number in range(50)]


async def test_t01_fifty_replies_in_one_write_each_reach_their_caller(bystander_host, era):
    async with bystander_host(stdio_server("answers_all_at_once.py", protocol=era)) as a:
        async with at_once():
            replies = await asyncio.gather(*(a.call("collect", together=50, number=n) for n in range(50)))
        assert replies == [f"reply to {n}" for n in range(50)]


async def test_t01_unparsed_output_is_still_available_after_the_server_has_failed(bystander_host):
    """The unparsed output often contains the reason for which the server failed."""
    entry = {"command": "sh", "args": ["-c", "echo API_KEY is not set; echo giving up; exit 1"]}
    async with bystander_host(entry) as a:
        await until(lambda: a.view.status == "failed")
        assert a.view.unparsed_lines == 2
        assert any("API_KEY is not set" in text for text in a.log())


async def test_t01_a_last_reply_without_a_line_end_is_accepted(bystander_host, era):
    async with bystander_host(stdio_server("answers_and_exits.py", protocol=era)) as a:
        async with at_once():
            assert await a.call("act") == "the last words"
        await until(lambda: a.view.status == "failed")
        assert a.view.exit_code == 0

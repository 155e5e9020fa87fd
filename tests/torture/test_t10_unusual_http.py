"""T10: Unusual HTTP answers and streams end in a reply or a typed error at once, and affect no other call."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

import pytest

from dragoman import DragomanError
from tests.servers.web import Answer, Ask, Streamable, answers
from tests.servers.web.answers import EVENTS, JSON, reply_to
from tests.torture.bystander_host import BystanderHost, at_once
from tests.torture.network import Way, end_of, facts, serves

LOST, MALFORMED, STATUS, TIMEOUT = "connection-lost", "malformed-reply", "http-status", "timeout"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def typed(content_type: str) -> Answer:
    return answers.body(reply_to, headers={"Content-Type": content_type})


def spelled(spell: Callable[[Ask], bytes]) -> Answer:
    return answers.raw(spell)


def with_length(ask: Ask, head: bytes = HEAD, body: bytes | None = None) -> bytes:
    body = reply_to(ask) if body is None else body
    return head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


READABLE: Mapping[str, Answer] = {
    "charset": typed("application/json; charset=utf-8"),
    "charset, loud and close": typed("Application/JSON;charset=UTF-8"),
    "charset in quotes": typed('application/json; charset="utf-8"'),
    "a charset that lies": answers.body(
        lambda ask: reply_to(ask, "f\u00edne").replace(b"f\\u00edne", "fíne".encode()),
        headers={"Content-Type": "application/json; charset=latin-1"},
    ),
    "status 201": answers.body(reply_to, status=201),
    "spaces and line ends around it": answers.body(lambda ask: b" \r\n\t" + reply_to(ask) + b"\r\n \n"),
    "continue first": spelled(lambda ask: b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + with_length(ask)),
    "no length, ended by the connection": spelled(
        lambda ask: HEAD + b"Connection: close\r\n\r\n" + reply_to(ask)
    ),
    "HTTP/1.0": spelled(lambda ask: with_length(ask, HEAD.replace(b"1.1", b"1.0"))),
    "chunks of one byte": spelled(
        lambda ask: (
            HEAD
            + b"Transfer-Encoding: chunked\r\n\r\n"
            + b"".join(b"1\r\n%c\r\n" % byte for byte in reply_to(ask))
            + b"0\r\n\r\n"
        )
    ),
}
"""Unusual, but a valid reply."""

UNREADABLE: Mapping[str, tuple[Answer, set[str]]] = {
    "a page": (answers.html(), {MALFORMED}),
    "a page with status 500": (answers.html(500), {STATUS}),
    "204": (answers.empty(204), {MALFORMED}),
    "202 to a request": (answers.empty(202), {MALFORMED}),
    "200 with nothing": (answers.empty(200), {MALFORMED}),
    "JSON said to be text": (typed("text/plain"), {MALFORMED}),
    "no type": (spelled(lambda ask: with_length(ask, b"HTTP/1.1 200 OK\r\n")), {MALFORMED}),
    "a type that is none": (typed("nonsense"), {MALFORMED}),
    "somebody else's id": (answers.foreign_id(), {MALFORMED}),
    "a null id": (answers.foreign_id(None), {MALFORMED}),
    "a number as id": (answers.foreign_id(1), {MALFORMED}),
    "an empty object": (answers.body(lambda _: b"{}"), {MALFORMED}),
    "two replies in one body": (answers.body(lambda ask: reply_to(ask) + reply_to(ask)), {MALFORMED}),
    "UTF-16": (answers.body(lambda ask: reply_to(ask).decode().encode("utf-16")), {MALFORMED}),
    "half a reply": (answers.body(lambda ask: reply_to(ask)[:-20]), {MALFORMED}),
    "too short a length": (answers.wrong_length(-5), {MALFORMED}),
    "too long a length": (answers.wrong_length(5), {LOST}),
    "no HTTP": (spelled(lambda _: b"220 mail.example ESMTP\r\n"), {MALFORMED, LOST}),
    "binary": (spelled(lambda _: bytes(range(256))), {MALFORMED, LOST}),
    "two lengths": (
        spelled(lambda ask: with_length(ask, HEAD + b"Content-Length: 3\r\n")),
        {MALFORMED, LOST},
    ),
    "a length that is no number": (
        spelled(lambda ask: HEAD + b"Content-Length: some\r\n\r\n" + reply_to(ask)),
        {MALFORMED, LOST},
    ),
    "a chunk size that is no number": (
        spelled(lambda _: HEAD + b"Transfer-Encoding: chunked\r\n\r\nmany\r\n{}"),
        {MALFORMED, LOST},
    ),
    "a header of 100 kB": (
        spelled(lambda ask: with_length(ask, HEAD + b"X-Long: " + b"x" * 100_000 + b"\r\n")),
        {MALFORMED, LOST},
    ),
    "ten thousand headers": (
        spelled(lambda ask: with_length(ask, HEAD + b"".join(b"X-%d: x\r\n" % n for n in range(10_000)))),
        {MALFORMED, LOST},
    ),
    "an ended connection": (answers.hang_up(), {LOST}),
    "gzip that is none": (
        answers.body(reply_to, headers={**JSON, "Content-Encoding": "gzip"}),
        {MALFORMED, LOST},
    ),
    "an encoding nobody asked for": (
        answers.body(reply_to, headers={**JSON, "Content-Encoding": "br"}),
        {MALFORMED, LOST},
    ),
}
"""The answer, and the errors that report it."""


async def outcome_of(a: BystanderHost, server: Streamable, answer: Answer) -> str:
    """The outcome of a call that is answered like this: the text, or the error's code."""
    server.on["tools/call"] = answers.first(1, answer)
    async with at_once():
        ended = await end_of(a, "echo", raw=True)  # for a model, text is sanitized
    await serves(a)
    assert a.view.status == "connected"
    if isinstance(ended, DragomanError):
        assert "hostile" in str(ended)
        return ended.code
    return ended


@pytest.fixture
def way(era: str) -> Way:
    return Way("http", era, "json")


@pytest.mark.requirement("TRN-2")
async def test_t10_an_unusual_answer_that_contains_the_reply_is_understood(bystander_host, way: Way):
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        found = {what: await outcome_of(a, server, answer) for what, answer in READABLE.items()}
    assert found == {what: "fíne" if "lies" in what else "fine" for what in READABLE}


@pytest.mark.requirement("TRN-2")
async def test_t10_an_answer_without_a_reply_fails_that_call_only_and_at_once(bystander_host, way: Way):
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        found = {what: await outcome_of(a, server, answer) for what, (answer, _) in UNREADABLE.items()}
        initialized = len(server.asked("initialize") + server.asked("server/discover"))
    wrong = {what: code for what, code in found.items() if code not in UNREADABLE[what][1]}
    assert not wrong
    assert initialized == 1, "none of it cost the connection"


@pytest.mark.requirement("TRN-2")
async def test_t10_an_unusual_stream_that_contains_the_reply_is_understood(bystander_host, way: Way):
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        found = {
            what: await outcome_of(a, server, answers.events(spell))
            for what, spell in answers.ODD_EVENTS.items()
        }
        left_open = await outcome_of(a, server, answers.events(answers.ODD_EVENTS["plain"], end=False))
    expected = dict.fromkeys(answers.ODD_EVENTS, "fine")
    expected["line separators in the text"] = "fi\u2028\u2029\u0085ne"
    assert found == expected
    assert left_open == "fine", "the reply is what was waited for, not the stream's end"


@pytest.mark.requirement("TRN-2")
async def test_t10_a_stream_without_a_reply_fails_that_call_only_and_at_once(bystander_host, way: Way):
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        found = {
            what: await outcome_of(a, server, answers.events(spell))
            for what, spell in answers.SPOILED_EVENTS.items()
        }
    assert set(found.values()) <= {LOST, MALFORMED}, found


RETRIES = {"huge": b"999999999", "endless": b"9" * 5000, "negative": b"-1", "none": b"0", "words": b"soon"}


def ends_with_retry(retry: bytes) -> dict[str, Answer]:
    """A stream that ends without the reply and can be resumed, but never contains more."""
    opening = b"id: 7\nretry: " + retry + b"\ndata:\n\n"
    return {
        "tools/call": answers.first(1, answers.body(lambda _: opening, headers=EVENTS)),
        "GET": answers.body(lambda _: b": nothing\n\n", headers=EVENTS),
    }


@pytest.mark.requirement("TRN-2")
async def test_t10_the_retry_value_of_a_stream_does_not_extend_the_timeout_of_the_call(bystander_host):
    way = Way("http")
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(way.server(on=ends_with_retry(retry), get_stream=False))
            for name, retry in RETRIES.items()
        }
        entries = {name: way.entry(server) for name, server in servers.items()}
        async with bystander_host(others=entries) as a:
            calls = [end_of(a, "echo", server=name, seconds=1.5) for name in servers]
            for ended in await asyncio.gather(*calls):
                assert facts(ended) in ((TIMEOUT, True), (LOST, True))
            for name, server in servers.items():
                assert len(server.asked("GET")) < 25, f"{name}: a storm of attempts"
                await serves(a, server=name)


async def test_t10_text_that_needs_escaping_arrives_unchanged(bystander_host, era: str):
    text = 'quote " backslash \\ slash / tab \t nul \0 emoji 🐉 pair \U0001f469\u200d\U0001f680 sep \u2028'
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        for in_ascii in (True, False):

            def spell(ask: Ask, in_ascii: bool = in_ascii) -> bytes:
                return json.dumps(json.loads(reply_to(ask, text)), ensure_ascii=in_ascii).encode()

            assert await outcome_of(a, server, answers.body(spell)) == text

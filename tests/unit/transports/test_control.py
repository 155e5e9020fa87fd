"""Servers inside an embedding program, reached by its control messages."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import Unreachable
from dragoman.transports.base import About
from dragoman.transports.control import (
    UNDER_WAY_LIMIT,
    ControlFailed,
    ControlTransport,
    LineControlChannel,
    ServerLink,
    mcp_request,
)
from tests.unit.transports.sinks import RecordingSink, other_tasks, settled

Answer = Callable[[str, bytes], Awaitable[bytes | None]]


async def accept(server: str, message: bytes) -> bytes | None:
    return None


class Program:
    """An embedding program in this very process."""

    def __init__(self, answer: Answer = accept) -> None:
        self.messages: list[tuple[str, bytes]] = []
        self.links: dict[str, ServerLink] = {}
        self._answer = answer

    async def mcp_message(self, server: str, message: bytes) -> bytes | None:
        self.messages.append((server, message))
        return await self._answer(server, message)

    def attach(self, server: str, link: ServerLink) -> None:
        self.links[server] = link

    def detach(self, server: str, link: ServerLink) -> None:
        if self.links.get(server) is link:
            del self.links[server]


async def opened(program: Program) -> tuple[ControlTransport, RecordingSink]:
    transport, sink = ControlTransport("box", program), RecordingSink()
    await transport.open(sink)
    return transport, sink


@pytest.mark.requirement("TRN-6")
async def test_a_message_is_sent_to_the_programs_server_and_its_reply_is_received():
    async def echo(server: str, message: bytes) -> bytes:
        return message.upper()

    program = Program(echo)
    transport, sink = await opened(program)
    transport.send(b"a", About("1"))
    assert sink.messages == []  # never inside `send`
    await sink.until(lambda: sink.messages)
    await transport.close()

    assert program.messages == [("box", b"a")]
    assert sink.messages == [b"A"]


async def test_messages_keep_their_order_and_a_slow_reply_delays_no_other():
    release = asyncio.Event()

    async def first_is_slow(server: str, message: bytes) -> bytes:
        if message == b"0":
            await release.wait()
        return message

    program = Program(first_is_slow)
    transport, sink = await opened(program)
    for number in range(10):
        transport.send(b"%d" % number, About(str(number)))
    await sink.until(lambda: len(sink.messages) == 9)
    release.set()
    await sink.until(lambda: len(sink.messages) == 10)
    await transport.close()

    assert [message for _, message in program.messages] == [b"%d" % number for number in range(10)]
    assert sink.messages[-1] == b"0"


async def test_notifications_of_the_server_arrive_until_the_close():
    program = Program()
    transport, sink = await opened(program)
    link = program.links["box"]
    link.push(b"hello")
    assert sink.messages == []  # on the next turn
    await sink.until(lambda: sink.messages)
    await transport.close()
    link.push(b"too late")
    link.disconnect("too late")
    await asyncio.sleep(0)

    assert sink.messages == [b"hello"]
    assert sink.ends == []
    assert program.links == {}


async def test_the_end_of_a_server_is_reported_once():
    program = Program()
    transport, sink = await opened(program)
    link = program.links["box"]
    link.disconnect("it was \x1bremoved")
    link.disconnect("again")
    await sink.until(lambda: sink.ends)
    with pytest.raises(ConnectionError):
        transport.send(b"{}")
    await transport.close()

    assert sink.ends == ["it was \\x1bremoved"]


async def test_an_exception_of_the_program_fails_that_message_only():
    async def fails(server: str, message: bytes) -> bytes:
        if message == b"bad":
            raise KeyError("box\x1b")
        return message

    transport, sink = await opened(Program(fails))
    transport.send(b"bad", About("1"))
    transport.send(b"bad")
    transport.send(b"good", About("2"))
    await sink.until(lambda: sink.messages and len(sink.failures) == 2)
    await transport.close()

    assert [request_id for request_id, _ in sink.failures] == ["1", None]
    assert sink.failures[0][1].kind == "broken"
    assert "KeyError" in sink.failures[0][1].cause
    assert "\x1b" not in sink.failures[0][1].cause
    assert sink.ends == []


async def never(server: str, message: bytes) -> bytes | None:
    await asyncio.Event().wait()
    return None


async def test_an_abandoned_request_is_cancelled_and_closing_leaves_no_task():
    cancelled: list[bytes] = []

    async def waits(server: str, message: bytes) -> bytes | None:
        try:
            return await never(server, message)
        except asyncio.CancelledError:
            cancelled.append(message)
            raise

    before = other_tasks()
    program = Program(waits)
    transport, sink = await opened(program)
    for name in ("1", "2"):
        transport.send(name.encode(), About(name))
    await settled(lambda: len(program.messages) == 2)
    assert transport.abandon("1") is False
    assert transport.abandon("unknown") is False
    await settled(lambda: cancelled == [b"1"])
    await transport.close()
    await transport.close()

    assert cancelled == [b"1", b"2"]
    assert sink.failures == []
    assert other_tasks() == before


async def test_many_messages_without_an_answer_are_congestion():
    transport, _ = await opened(Program(never))
    for number in range(UNDER_WAY_LIMIT):
        assert not transport.congested
        transport.send(b"{}", About(str(number)))
    assert transport.congested
    waiting = asyncio.create_task(transport.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    transport.abandon("0")
    await asyncio.wait_for(waiting, 10)
    assert not transport.congested
    await transport.close()


# The ready channel.


class Wire:
    """What the channel writes, line by line."""

    def __init__(self) -> None:
        self.written = b""
        self.room = asyncio.Event()
        self.room.set()

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        await self.room.wait()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written.splitlines()]


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def success(request_id: str, reply: object) -> bytes:
    response = {"subtype": "success", "request_id": request_id, "response": {"mcp_response": reply}}
    return line({"type": "control_response", "response": response})


class Talk:
    """A channel with one transport on it."""

    def __init__(self, *, limit_bytes: int = 10_000) -> None:
        self.wire = Wire()
        self.others: list[bytes] = []
        self.channel = LineControlChannel(self.wire, limit_bytes=limit_bytes, on_other=self.others.append)
        self.transport = ControlTransport("box", self.channel)
        self.sink = RecordingSink()

    async def __aenter__(self) -> "Talk":
        await self.transport.open(self.sink)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.transport.close()

    async def ask(self, request_id: str) -> str:
        """Sends a request; returns the id under which it went out."""
        before = len(self.wire.lines)
        self.transport.send(line({"id": request_id, "method": "ping"}).rstrip(), About(request_id))
        await settled(lambda: len(self.wire.lines) > before)
        return self.wire.lines[-1]["request_id"]


@pytest.mark.requirement("TRN-6")
async def test_a_request_and_its_reply_as_control_messages():
    async with Talk() as talk:
        outer = await talk.ask("7")
        assert talk.wire.lines == [
            {
                "type": "control_request",
                "request_id": outer,
                "request": {
                    "subtype": "mcp_message",
                    "server_name": "box",
                    "message": {"id": "7", "method": "ping"},
                },
            }
        ]
        talk.channel.feed(success(outer, {"id": "7", "result": {}}))
        await talk.sink.until(lambda: talk.sink.messages)

    assert json.loads(talk.sink.messages[0]) == {"id": "7", "result": {}}
    assert talk.others == []


async def test_replies_in_any_order_find_their_requests():
    async with Talk() as talk:
        outer = {name: await talk.ask(name) for name in "abc"}
        for name in "cab":
            talk.channel.feed(success(outer[name], {"id": name}))
        await talk.sink.until(lambda: len(talk.sink.messages) == 3)

    assert [json.loads(message)["id"] for message in talk.sink.messages] == ["c", "a", "b"]


@pytest.mark.parametrize("message", [b'{"method":"notifications/x"}', b'{"id":1,"result":{}}', b"nonsense"])
async def test_a_notification_waits_for_no_reply(message: bytes):
    channel = LineControlChannel(Wire(), limit_bytes=1000)

    assert await asyncio.wait_for(channel.mcp_message("box", message), 10) is None


async def test_an_error_of_the_program_fails_its_request():
    async with Talk() as talk:
        outer = await talk.ask("7")
        response = {"subtype": "error", "request_id": outer, "error": "no server \x1b[31mbox"}
        talk.channel.feed(line({"type": "control_response", "response": response}))
        await talk.sink.until(lambda: talk.sink.failures)

    ((request_id, trouble),) = talk.sink.failures
    assert (request_id, trouble.kind) == ("7", "broken")
    assert trouble.cause == "the program says: no server \\x1b[31mbox"


@pytest.mark.parametrize("payload", [None, {}, [], "text", {"other": 1}])
async def test_an_answer_without_a_reply_fails_its_request(payload: object):
    async with Talk() as talk:
        outer = await talk.ask("7")
        response = {"subtype": "success", "request_id": outer, "response": payload}
        talk.channel.feed(line({"type": "control_response", "response": response}))
        await talk.sink.until(lambda: talk.sink.failures)

    assert talk.sink.failures[0][1].kind == "malformed"


def from_server(server: str, message: object, request_id: str = "p1") -> bytes:
    request = {"subtype": "mcp_message", "server_name": server, "message": message}
    return line({"type": "control_request", "request_id": request_id, "request": request})


@pytest.mark.requirement("TRN-6")
async def test_a_notification_of_a_server_arrives_and_is_acknowledged():
    async with Talk() as talk:
        talk.channel.feed(from_server("box", {"method": "notifications/x"}))
        talk.channel.feed(from_server("other", {"method": "notifications/x"}, "p2"))
        await talk.sink.until(lambda: talk.sink.messages)

    assert json.loads(talk.sink.messages[0]) == {"method": "notifications/x"}
    good, bad = (answer["response"] for answer in talk.wire.lines)
    assert (good["subtype"], good["request_id"]) == ("success", "p1")
    assert (bad["subtype"], bad["request_id"]) == ("error", "p2")


async def test_a_reply_and_the_messages_around_it_keep_their_order():
    async with Talk() as talk:
        outer = await talk.ask("7")
        talk.channel.feed(
            from_server("box", 1) + success(outer, 2) + from_server("box", 3) + from_server("box", 4)
        )
        await talk.sink.until(lambda: len(talk.sink.messages) == 4)

    assert talk.sink.messages == [b"1", b"2", b"3", b"4"]


OTHERS = [
    b"not json",
    b"\xff\xfe",
    b"[1,2]",
    b"null",
    b"[" * 5000,
    b'{"type":"user","message":"hi"}',
    b'{"type":"keep_alive"}',
    b'{"no":"type"}',
    b'{"type":7}',
    b'{"type":"control_request","request_id":"x","request":{"subtype":"interrupt"}}',
    b'{"type":"control_request","request":{"subtype":"mcp_message","server_name":"box","message":{}}}',
    b'{"type":"control_response","response":{"subtype":"success","request_id":"somebody-else"}}',
    b'{"type":"control_response","response":null}',
    b'{"type":"control_response"}',
]


@pytest.mark.requirement("TRN-6")
async def test_lines_that_are_not_control_messages_are_passed_on():
    async with Talk() as talk:
        talk.channel.feed(b"\n".join(OTHERS) + b"\n")
        outer = await talk.ask("7")
        talk.channel.feed(success(outer, {}))
        await talk.sink.until(lambda: talk.sink.messages)

    assert talk.others == OTHERS
    assert talk.sink.ends == []


@given(st.lists(st.sampled_from(OTHERS) | st.binary(max_size=40)))
def test_no_line_is_fatal_even_without_a_handler_for_other_lines(lines: list[bytes]):
    channel = LineControlChannel(Wire(), limit_bytes=1_000_000)
    channel.feed(b"\n".join(lines) + b"\n")
    channel.end()


async def test_a_late_or_second_answer_is_ignored():
    async with Talk() as talk:
        outer = await talk.ask("7")
        talk.transport.abandon("7")
        await settled(lambda: not talk.transport._tasks)
        talk.channel.feed(success(outer, {}) * 2)
        again = await talk.ask("8")
        talk.channel.feed(success(again, 1) * 2)
        await talk.sink.until(lambda: talk.sink.messages)

    assert talk.sink.messages == [b"1"]
    assert talk.sink.failures == []
    assert talk.others == []


async def test_a_reply_over_the_limit_fails_its_request_only():
    async with Talk(limit_bytes=2000) as talk:
        large, small = await talk.ask("1"), await talk.ask("2")
        answer = success(large, {"text": "x" * 3000})
        talk.channel.feed(answer[:2500])
        talk.channel.feed(answer[2500:])
        talk.channel.feed(success(small, 2))
        await talk.sink.until(lambda: talk.sink.failures and talk.sink.messages)

    ((request_id, trouble),) = talk.sink.failures
    assert (request_id, trouble.kind) == ("1", "too-large")
    assert talk.sink.messages == [b"2"]


async def test_a_flood_ends_the_connection():
    async with Talk(limit_bytes=100) as talk:
        await talk.ask("1")
        for _ in range(10):
            talk.channel.feed(b"x" * 100)
        await talk.sink.until(lambda: talk.sink.ends and talk.sink.failures)

    assert talk.sink.ends == ["the program sends data without a line end"]


async def test_the_end_of_the_programs_stream_is_the_end_of_its_servers():
    reader = asyncio.StreamReader()
    async with Talk() as talk:
        pumping = asyncio.create_task(talk.channel.pump(reader))
        await talk.ask("1")
        reader.feed_data(from_server("box", 1))
        reader.feed_data(from_server("box", 2).rstrip())
        reader.feed_eof()
        await asyncio.wait_for(pumping, 10)
        await talk.sink.until(lambda: talk.sink.ends)
        with pytest.raises(ConnectionError):
            talk.transport.send(b"{}")

    assert talk.sink.messages == [b"1", b"2"]
    assert talk.sink.ends == ["the program closed its stream"]
    with pytest.raises(Unreachable, match="closed its stream"):
        await ControlTransport("box", talk.channel).open(RecordingSink())
    with pytest.raises(ControlFailed):
        await talk.channel.mcp_message("box", b"{}")


async def test_a_new_connection_of_the_same_name_replaces_the_old_one_and_survives_its_close():
    async with Talk() as old:
        new, sink = ControlTransport("box", old.channel), RecordingSink()
        await new.open(sink)
        await old.transport.close()
        old.channel.feed(from_server("box", 1))
        await sink.until(lambda: sink.messages)
        await new.close()

    assert old.sink.messages == []


async def test_a_program_that_does_not_read_is_waited_for():
    async with Talk() as talk:
        talk.wire.room.clear()
        await talk.ask("1")
        outer = talk.wire.lines[-1]["request_id"]
        talk.channel.feed(success(outer, 1))
        talk.wire.room.set()
        await talk.sink.until(lambda: talk.sink.messages)


def test_a_message_with_line_ends_stays_on_one_line():
    carried = mcp_request("1", "box", b'{\r\n "a": "b\\n"\n}')

    assert b"\n" not in carried
    assert json.loads(carried)["request"]["message"] == {"a": "b\n"}

"""Server-sent events: the same however they are chunked, in linear time and bounded memory."""

import itertools
import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.transports.sse_events import (
    END_BYTES,
    FLOOD_FACTOR,
    LONGEST_ID_BYTES,
    EventTooLarge,
    SseEvent,
    SseParser,
)
from tests.cpu_time import shortest


class Reference:
    """The format as the standard words it, slowly: the whole stream at once, event by event."""

    def __init__(self, stream: bytes, limit_bytes: int) -> None:
        self.events: list[SseEvent] = []
        self.oversized = 0
        self.last_id: str | None = None
        self.retry_ms: int | None = None
        self._id: str | None = None
        lines = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))[:-1]
        while b"" in lines:
            end = lines.index(b"")
            self._event(lines[:end], limit_bytes)
            lines = lines[end + 1 :]
        self._fields(lines, limit_bytes)  # an event without an end counts for nothing but `retry`

    def _event(self, lines: list[bytes], limit_bytes: int) -> None:
        kind, data, has_id, too_large = self._fields(lines, limit_bytes)
        self.last_id = self._id
        if too_large:
            self.oversized += 1
        elif data or has_id:
            self.events.append(SseEvent(kind, b"\n".join(data), self._id))

    def _fields(self, lines: list[bytes], limit_bytes: int) -> tuple[str, list[bytes], bool, bool]:
        kind, data, has_id = "message", list[bytes](), False
        for line in lines:
            name, _, value = line.partition(b":")
            value = value[1:] if value[:1] == b" " else value
            if name == b"data":
                data.append(value)
                if len(b"\n".join(data)) > limit_bytes:
                    return kind, data, has_id, True
            elif len(line) > limit_bytes + len("data: "):
                return kind, data, has_id, True
            elif name == b"event":
                kind = value.decode(errors="replace") or "message"
            elif name == b"id" and b"\0" not in value:
                self._id, has_id = value.decode(errors="replace") or None, True
            elif name == b"retry" and re.fullmatch(rb"[0-9]+", value):
                self.retry_ms = min(int(value), 60_000)
        return kind, data, has_id, False


def in_chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data cut at the given places, some chunks perhaps empty."""
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def parse(*chunks: bytes, limit_bytes: int = 1000) -> list[SseEvent]:
    parser = SseParser(limit_bytes)
    return [event for chunk in chunks for event in parser.feed(chunk)]


TOKENS = [
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b":", b" ", b"\xef\xbb\xbf", b"\0", b"\xff", b"\x85\x0b"),
    *(b"data", b"data:", b"data: ", b"id:", b"id: 7", b"event: x", b"event", b"retry: 5", b"retry:-1"),
    *("\u2028é".encode(), b"{}", b"a", b"0123456789", b": comment", b"unknown: field"),
]
STREAMS = st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join)
CUTS = st.lists(st.integers(0, 120))


@example(stream=b"data: a\r\n\r\ndata: b\r\n\r\n", cuts=[8, 10, 11])
@example(stream=b"\xef\xbb\xbfdata: a\n\n", cuts=[1, 2, 3])
@given(STREAMS, CUTS)
def test_events_are_those_of_the_standard_however_the_stream_is_chunked(stream: bytes, cuts: list[int]):
    expected = Reference(stream, 1000)
    parser = SseParser(1000)
    events = [event for chunk in in_chunks(stream, cuts) for event in parser.feed(chunk)]

    assert events == expected.events
    assert parser.last_id == expected.last_id
    if stream.endswith((b"\n", b"\r")):
        assert parser.retry_ms == expected.retry_ms


LIMIT = 12


@example(stream=b"data: 0123456789012\r\ndata: a\r\n\r\ndata: b\n\n", cuts=[20])
@example(stream=b"data: 0123456789012\r\n\r\ndata: b\n\n", cuts=[20])
@example(stream=b"data:0123456789\ndata:0123456789\ndata:a\r\rdata:b\n\n", cuts=[])
@given(STREAMS.map(lambda stream: stream + b"\n\n"), CUTS)
def test_an_event_over_the_limit_is_left_out_and_the_others_stay(stream: bytes, cuts: list[int]):
    told: list[tuple[bytes, bytes]] = []
    parser = SseParser(LIMIT, lambda head, tail: bool(told.append((head, tail))))
    expected = Reference(stream, LIMIT)
    events: list[SseEvent] = []
    try:
        for chunk in in_chunks(stream, cuts):
            events += parser.feed(chunk)
    except EventTooLarge as error:  # a flood: everything up to there is as it should be
        events += error.before
        assert events == expected.events[: len(events)]
        return

    assert events == expected.events
    assert len([head for head, tail in told if not tail]) >= expected.oversized
    assert parser.last_id == expected.last_id


@given(STREAMS.map(lambda stream: stream + b"\n\n"), CUTS)
def test_without_a_callback_an_event_over_the_limit_raises_with_the_events_before_it(
    stream: bytes, cuts: list[int]
):
    expected = Reference(stream, LIMIT)
    parser = SseParser(LIMIT)
    events: list[SseEvent] = []
    is_large = False
    try:
        for chunk in in_chunks(stream, cuts):
            events += parser.feed(chunk)
    except EventTooLarge as error:
        events += error.before
        is_large = True

    assert is_large == bool(expected.oversized)
    assert events == expected.events[: len(events)]
    assert is_large or events == expected.events


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [SseEvent(data=b"a")]),
        (b"data:a\n\n", [SseEvent(data=b"a")]),
        (b"data:  a\n\n", [SseEvent(data=b" a")]),
        (b"data\n\n", [SseEvent(data=b"")]),
        (b"data: a\ndata: b\n\n", [SseEvent(data=b"a\nb")]),
        (b"data: a\rdata: b\r\r", [SseEvent(data=b"a\nb")]),
        (b"event: endpoint\r\ndata: /m?s=1\r\n\r\n", [SseEvent("endpoint", b"/m?s=1")]),
        (b"id: 1\ndata:\n\n", [SseEvent(id="1")]),
        (b"id: 1\n\ndata: a\n\n", [SseEvent(id="1"), SseEvent(data=b"a", id="1")]),
        (b"id: 1\ndata: a\n\nid\ndata: b\n\n", [SseEvent(data=b"a", id="1"), SseEvent(data=b"b")]),
        (b"id: 1\0\ndata: a\n\n", [SseEvent(data=b"a")]),
        (b"id: " + b"9" * (LONGEST_ID_BYTES + 1) + b"\ndata: a\n\n", [SseEvent(data=b"a")]),
        (b": ping\n\n: ping\n\n", []),
        (b"event: x\n\ndata: a\n\n", [SseEvent(data=b"a")]),
        (b"retry: 10\n\n", []),
        (b"data: never ended\n", []),
        ("data: \u2028\u0085\x0b\x0c\x1c\n\n".encode(), [SseEvent(data="\u2028\u0085\x0b\x0c\x1c".encode())]),
    ],
)
def test_the_events_of_a_stream(stream: bytes, expected: list[SseEvent]):
    assert parse(stream, limit_bytes=10_000) == expected
    assert parse(*(bytes([byte]) for byte in stream), limit_bytes=10_000) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"0", 0),
        (b"1500", 1500),
        (b"60001", 60_000),
        (b"999999999", 60_000),
        (b"9" * 5000, 60_000),
        (b"0" * 5000 + b"7", 7),
        (b"-1", None),
        (b"1e3", None),
        (b"1.5", None),
        (b"", None),
        ("٣".encode(), None),
    ],
)
def test_the_retry_time_is_a_valid_number_or_none(value: bytes, expected: int | None):
    parser = SseParser(10_000)
    parser.feed(b"retry:" + value + b"\n")

    assert parser.retry_ms == expected


def test_an_id_counts_only_once_its_event_is_complete():
    parser = SseParser(100)
    parser.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert parser.last_id == "1"

    parser.feed(b"\n")
    assert parser.last_id == "2"


def test_an_event_of_exactly_the_limit_passes():
    assert parse(b"data: 1234", b"5678\n\n", limit_bytes=8) == [SseEvent(data=b"12345678")]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: 123456789"],
        [b"data: 123", b"456789"],
        [b"data: 1234\n", b"data: 5678\n"],
        [b"data\n" * 10],
        [b": comment without an end"],
        [b"event: 1234567890123"],
    ],
)
@pytest.mark.requirement("TRN-9")
def test_an_event_or_line_over_the_limit_raises_without_waiting_for_its_end(chunks: list[bytes]):
    with pytest.raises(EventTooLarge):
        parse(*chunks, limit_bytes=8)


def test_the_events_before_one_over_the_limit_are_not_lost():
    with pytest.raises(EventTooLarge) as caught:
        SseParser(8).feed(b"data: ok\n\nid: 9\ndata: 123456789\n\n")

    assert caught.value.before == [SseEvent(data=b"ok")]
    assert caught.value.head == b"123456789"


def test_an_event_over_the_limit_counts_as_received_so_that_resuming_does_not_repeat_it():
    parser = SseParser(8)
    with pytest.raises(EventTooLarge):
        parser.feed(b"id: 9\ndata: 123456789\n\n")

    assert parser.last_id == "9"


class Telling:
    def __init__(self, limit_bytes: int, *, knows_owner: bool = False) -> None:
        self.told: list[tuple[bytes, bytes]] = []
        self._knows_owner = knows_owner
        self.parser = SseParser(limit_bytes, self._on_oversized)

    def _on_oversized(self, head: bytes, tail: bytes) -> bool:
        self.told.append((head, tail))
        return self._knows_owner


def test_an_oversized_event_is_reported_at_once_and_again_with_its_tail():
    telling = Telling(100)
    assert telling.parser.feed(b"data: " + b"h" * 101) == []
    assert telling.told == [(b"h" * 101, b"")]

    assert telling.parser.feed(b"m" * 100) == []
    assert telling.parser.feed(b"tail\r") == []
    assert telling.parser.feed(b"\n\r\ndata: next\n\n") == [SseEvent(data=b"next")]
    assert telling.told[1:] == [(b"h" * 101, b"h" * 101 + b"m" * 100 + b"tail")]


def test_an_oversized_event_whose_request_is_known_is_reported_once():
    telling = Telling(8, knows_owner=True)
    assert telling.parser.feed(b"data: 123456789\n\ndata: next\n\n") == [SseEvent(data=b"next")]

    assert telling.told == [(b"123456789", b"")]


def test_only_the_ends_of_an_oversized_event_are_kept():
    telling = Telling(100_000)
    for chunk in (b"data: " + b"h" * 60_000, b"m" * 60_000, b"t" * 60_000, b"\n\n"):
        telling.parser.feed(chunk)

    head, tail = telling.told[-1]
    assert head == b"h" * END_BYTES
    assert tail == b"t" * (END_BYTES - len("\n"))


def test_an_event_without_end_raises_even_with_a_callback():
    telling = Telling(100)

    with pytest.raises(EventTooLarge):
        for _ in range(2 + FLOOD_FACTOR):
            telling.parser.feed(b"data: " + b"x" * 110 + b"\n")


def seconds_for(chunk: bytes, count: int) -> float:
    parser = SseParser(1 << 30)
    start = time.process_time()
    for _ in range(count):
        parser.feed(chunk)
    parser.feed(b"\n\n")
    return time.process_time() - start


@pytest.mark.parametrize("chunk", [b"x" * 100, b"data:\n", b"\n", b"\r", b"id:1\r\n"])
def test_the_time_grows_linearly_with_the_size_of_an_event(chunk: bytes):
    bound = 40 * shortest(lambda: seconds_for(chunk, 5_000))

    assert shortest(lambda: seconds_for(chunk, 50_000), below=bound) < bound

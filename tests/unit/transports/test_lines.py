"""Cutting a byte stream into lines: the same however it is chunked, in linear time and bounded memory."""

import itertools
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.transports.lines import END_BYTES, FLOOD_FACTOR, Flood, LineFramer
from tests.cpu_time import shortest


class Reading:
    def __init__(self, limit_bytes: int = 1_000_000, *, knows_owner: bool = False) -> None:
        self.lines: list[bytes] = []
        self.oversized: list[tuple[bytes, bytes]] = []
        self._knows_owner = knows_owner
        self.framer = LineFramer(self.lines.append, self._on_oversized, limit_bytes)

    def _on_oversized(self, head: bytes, tail: bytes) -> bool:
        self.oversized.append((head, tail))
        return self._knows_owner

    def feed(self, *chunks: bytes) -> list[bytes]:
        for chunk in chunks:
            self.framer.feed(chunk)
        return self.lines


def in_chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data cut at the given places, some chunks perhaps empty."""
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


CUTS = st.lists(st.integers(0, 45))
STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"a", b"bc", "\u2028".encode(), b"\xff", b"{}"])).map(
    b"".join
)


@given(STREAMS, CUTS)
def test_however_a_stream_is_chunked_the_lines_are_the_same(stream: bytes, cuts: list[int]):
    reading = Reading()
    reading.feed(*in_chunks(stream, cuts))
    reading.framer.end()

    assert reading.lines == [line for line in stream.split(b"\n") if line]


LIMIT = 10


@example(lengths=[LIMIT + 1], cuts=[])
@given(lengths=st.lists(st.integers(0, 4 * LIMIT - 1), max_size=8), cuts=CUTS)
def test_however_a_stream_is_chunked_the_limit_applies(lengths: list[int], cuts: list[int]):
    lines = [bytes(range(97, 97 + 26))[:1] * length for length in lengths]
    reading = Reading(LIMIT)
    reading.feed(*in_chunks(b"".join(line + b"\n" for line in lines), cuts))

    assert reading.lines == [line for line in lines if 0 < len(line) <= LIMIT]
    assert len([tail for _, tail in reading.oversized if tail]) == len(
        [line for line in lines if len(line) > LIMIT]
    )


@example(surplus=3, cuts=[1, 2])
@given(surplus=st.integers(1, 3 * LIMIT), cuts=CUTS)
def test_however_an_oversized_line_is_chunked_its_complete_tail_is_reported(surplus: int, cuts: list[int]):
    line = bytes(33 + n for n in range(LIMIT + surplus))
    reading = Reading(LIMIT)
    reading.feed(*in_chunks(line, cuts), b"\n")

    head, tail = reading.oversized[-1]
    assert line.startswith(head)
    assert tail == line[-END_BYTES:]


def test_only_a_line_feed_ends_a_line():
    text = "a\u2028b\u2029c\x85d\re\x0bf\x0cg".encode()

    assert Reading().feed(text + b"\n") == [text]


def test_a_carriage_return_before_the_line_feed_stays_for_the_decoder():
    assert Reading().feed(b"{}\r\n") == [b"{}\r"]


def test_empty_lines_are_left_out_but_counted():
    reading = Reading()

    lines, rest = reading.framer.split(b"\n\na\n\nb")
    assert reading.framer.deliver(lines) == 3
    reading.framer.keep(rest)
    assert reading.lines == [b"a"]
    reading.framer.feed(b"")
    assert reading.framer.split(b"c\n") == ([b"bc"], b"")


def test_the_end_of_the_stream_completes_the_last_line():
    reading = Reading()
    reading.feed(b"a\nlast")
    reading.framer.end()
    reading.framer.end()

    assert reading.lines == [b"a", b"last"]


def test_the_end_of_the_stream_after_a_complete_line_adds_nothing():
    reading = Reading()
    reading.feed(b"a\n")
    reading.framer.end()

    assert reading.lines == [b"a"]


def test_a_line_of_exactly_the_limit_passes():
    assert Reading(4).feed(b"12", b"34", b"\n") == [b"1234"]


def test_an_oversized_line_is_reported_at_once_and_again_with_its_tail():
    reading = Reading(4)
    reading.feed(b"123", b"45")
    assert reading.oversized == [(b"12345", b"")]

    reading.feed(b"678", b"9\nnext\n")
    assert reading.oversized == [(b"12345", b""), (b"12345", b"123456789")]
    assert reading.lines == [b"next"]


def test_an_oversized_line_whose_request_is_known_is_reported_once():
    reading = Reading(4, knows_owner=True)
    reading.feed(b"12345", b"6789\nnext\n")

    assert reading.oversized == [(b"12345", b"")]
    assert reading.lines == [b"next"]


def test_each_oversized_line_is_reported():
    reading = Reading(4, knows_owner=True)
    reading.feed(b"aaaaa", b"\n", b"bbbbb", b"\n")

    assert [head for head, _ in reading.oversized] == [b"aaaaa", b"bbbbb"]


def test_an_oversized_line_at_the_end_of_the_stream_is_reported_with_its_tail():
    reading = Reading(4)
    reading.feed(b"123456")
    reading.framer.end()

    assert reading.lines == []
    assert reading.oversized[-1] == (b"123456", b"123456")


def test_only_the_ends_of_an_oversized_line_are_kept():
    reading = Reading(100_000)
    reading.feed(b"h" * 60_000, b"m" * 60_000, b"t" * 60_000, b"\n")

    head, tail = reading.oversized[-1]
    assert head == b"h" * END_BYTES
    assert tail == b"t" * END_BYTES


def test_a_line_without_end_is_a_flood():
    reading = Reading(10)
    reading.feed(b"x" * 10 * FLOOD_FACTOR)

    with pytest.raises(Flood):
        reading.feed(b"x")


def seconds_for(chunks: int) -> float:
    chunk = b"x" * 100
    reading = Reading(10**9)
    started = time.process_time()
    for _ in range(chunks):
        reading.framer.feed(chunk)
    reading.feed(b"\n")
    spent = time.process_time() - started
    assert len(reading.lines[0]) == 100 * chunks
    return spent


def test_a_long_line_in_small_chunks_takes_linear_time():
    # Quadratic work would make the larger one 64 times as long.
    bound = 32 * shortest(lambda: seconds_for(10_000)) + 0.05
    assert shortest(lambda: seconds_for(80_000), below=bound) < bound

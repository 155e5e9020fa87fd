"""What is kept of a byte stream, against the simplest possible model."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.transports.ring import ByteRing


@given(st.integers(1, 20), st.lists(st.binary(max_size=30)), st.integers(0, 40))
def test_the_newest_bytes_are_kept(capacity: int, chunks: list[bytes], wanted: int):
    ring = ByteRing(capacity)
    everything = b""
    for chunk in chunks:
        ring.append(chunk)
        everything += chunk
        assert len(ring) == min(len(everything), capacity)

    kept = everything[-capacity:]
    assert ring.tail(capacity) == kept
    assert ring.tail(wanted) == kept[max(0, len(kept) - wanted) :]
    assert ring.total_bytes == len(everything)


def test_reading_the_tail_takes_nothing_away():
    ring = ByteRing(4)
    ring.append(b"abcdef")

    assert (ring.tail(2), ring.tail(9), len(ring)) == (b"ef", b"cdef", 4)


def test_an_empty_ring_has_an_empty_tail():
    assert ByteRing(4).tail(100) == b""

"""What is kept of a server's stderr, against the simplest possible model."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.transports import stdio


@given(st.integers(1, 20), st.lists(st.binary(max_size=30)))
def test_the_newest_bytes_are_kept(capacity: int, chunks: list[bytes]):
    kept = bytearray()
    passed_on = b""

    class Owner:
        def stderr_came(self, data: bytes) -> None:
            nonlocal passed_on
            passed_on += data

    owner: Any = Owner()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stdio, "STDERR_CAPACITY_BYTES", capacity)
        reader = stdio._Stderr(owner, kept)
        for chunk in chunks:
            reader.data_received(chunk)
            assert len(kept) <= capacity
    assert bytes(kept) == b"".join(chunks)[-capacity:]
    assert passed_on == b"".join(chunks)

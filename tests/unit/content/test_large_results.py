"""Large results: read in a thread, and mostly not at all."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from dragoman.content import result as module
from dragoman.content.blocks import ImageBlock, LargeBlock, TextBlock, UnknownBlock
from dragoman.content.result import (
    BLOCK_LIMIT,
    Undecoded,
    decoded,
    is_large,
    read_large,
    read_large_now,
    read_result,
)
from dragoman.wire.codec import Unreadable
from tests.torture.bystander_host import resident_bytes

pytestmark = pytest.mark.requirement("CAL-7")

LONG = "x" * 200_000


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


SHAPES: list[Any] = [
    {"content": []},
    {},
    {"content": [{"type": "text", "text": "hi"}], "isError": True, "_meta": {"a": 1}, "resultType": "odd"},
    {"content": [{"type": "hologram"}, {"type": "image", "data": "aGk="}], "structuredContent": None},
    {"content": [{"type": "text", "text": 7}, 1, "x"], "structuredContent": {"a": [1, 2]}},
]


@pytest.mark.parametrize("value", SHAPES, ids=str)
def test_large_results_are_read_like_small_ones(value: Any):
    small, blocks = read_result(raw(value))
    large, same = read_large_now(raw(value))

    assert same == blocks
    assert (large.structured, large.is_error, large.meta, large.result_type) == (
        *(small.structured, small.is_error, small.meta, small.result_type),
    )


@pytest.mark.parametrize(
    "value",
    [[], 7, {"content": {}}, {"content": "text"}, {"resultType": 1}, {"resultType": []}],
    ids=str,
)
def test_a_value_that_is_not_a_result_is_unreadable_at_any_size(value: Any):
    for read in (read_result, read_large_now):
        with pytest.raises(Unreadable):
            read(raw(value))


async def test_large_parts_stay_encoded_and_can_be_decoded_later():
    found = raw(
        {
            "content": [{"type": "text", "text": LONG}, {"type": "text", "text": "b"}],
            "structuredContent": [LONG],
        }
    )
    assert is_large(found)
    result, (first, second) = await read_large(found)

    assert isinstance(first, LargeBlock)
    assert first.as_text() == LONG
    assert second == TextBlock("b")
    assert isinstance(result.structured, Undecoded)
    assert decoded(result.structured) == [LONG]
    assert decoded(UNSET) is UNSET


def test_a_raw_part_is_a_view_on_the_message_and_no_copy():
    """What all thrift here rests on."""
    message = b'{"a": "' + b"x" * 50_000_000 + b'"}'
    before = resident_bytes()
    part = msgspec.json.decode(message, type=dict[str, Raw])["a"]
    again = Raw(memoryview(part)[1:-1])

    assert memoryview(again).nbytes == 50_000_000
    assert resident_bytes() - before < 10_000_000


def test_blocks_beyond_the_limit_are_returned_as_one_array():
    many = {"content": [{"type": "text", "text": str(number)} for number in range(BLOCK_LIMIT + 5)]}
    for read in (read_result, read_large_now):
        _, blocks = read(raw(many))
        if read is read_result:
            assert len(blocks) == BLOCK_LIMIT + 5
        else:
            assert isinstance(blocks[-1], LargeBlock)
            assert len(blocks) == BLOCK_LIMIT + 1
            assert msgspec.json.decode(blocks[-1].raw) == many["content"]


def test_an_invalid_block_among_many_is_limited_on_the_fast_path_too():
    _, blocks = read_result(raw({"content": [1] * (BLOCK_LIMIT + 5)}))

    assert len(blocks) == BLOCK_LIMIT + 1
    assert blocks[0] == UnknownBlock(1)


def test_the_amount_decoded_at_once_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "DECODED_LIMIT_BYTES", 200)
    _, blocks = read_large_now(raw({"content": [{"type": "image", "data": "aGk="}] * 20}))

    assert {type(block) for block in blocks} == {ImageBlock, LargeBlock}

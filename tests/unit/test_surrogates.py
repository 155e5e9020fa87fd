"""Lone surrogate escapes in JSON text are replaced, and nothing else is touched."""

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.surrogates import ESCAPE_LIMIT, as_written, exactly, keep_original, replace_lone_surrogates

CASES = {
    rb'"\ud83d"': rb'"\ufffd"',
    rb'"\uDE00"': rb'"\ufffd"',
    rb'"\ud83d\ud83d\ude00"': rb'"\ufffd\ud83d\ude00"',
    rb'"\ud83d\ude00\ude00"': rb'"\ud83d\ude00\ufffd"',
    rb'"\ud83d x \ude00"': rb'"\ufffd x \ufffd"',
    rb'["\ud83d","\ude00"]': rb'["\ufffd","\ufffd"]',
    rb'"\\\ud83d"': rb'"\\\ufffd"',
    rb'"\\ud83d\ude00"': rb'"\\ud83d\ufffd"',
    rb'"\ud83d\\ude00"': rb'"\ufffd\\ude00"',
    rb'"\ud83d\ude00"': None,
    rb'"\\ud83d"': None,
    rb'"\ud7ff \ue000"': None,
    b"no escapes": None,
    b"": None,
}


@pytest.mark.parametrize(("data", "repaired"), CASES.items(), ids=CASES.keys())
def test_lone_surrogates_are_replaced(data: bytes, repaired: bytes | None):
    assert replace_lone_surrogates(data) == repaired


@given(st.text(st.characters(codec=None) | st.sampled_from(["\ud83d", "\ude00", "\\", "u", "d", '"'])))
def test_the_repaired_text_equals_json_loads_with_lone_surrogates_replaced(text: str):
    data = json.dumps(text).encode()
    wanted = json.loads(data).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    repaired = replace_lone_surrogates(data) or data
    assert len(repaired) == len(data)
    assert msgspec.json.decode(repaired) == wanted


def test_a_text_with_too_many_escapes_is_unchanged():
    assert replace_lone_surrogates(rb"\ud83d" * ESCAPE_LIMIT) == rb"\ufffd" * ESCAPE_LIMIT
    assert replace_lone_surrogates(rb"\ud83d" * (ESCAPE_LIMIT + 1)) is None


def test_long_runs_of_backslashes_are_counted_in_linear_time():
    def seconds(size: int) -> float:
        data = (rb"\\" * size + rb"\ud83d") * 20
        began = time.process_time()
        assert replace_lone_surrogates(data) == (rb"\\" * size + rb"\ufffd") * 20
        return time.process_time() - began

    assert seconds(80_000) < 80 * max(seconds(10_000), 0.001)


def test_a_member_is_found_as_it_was_written():
    original, repaired = rb'{"a":"\ud83d","b":1}', rb'{"a":"\ufffd","b":1}'

    assert as_written(rb'"\ufffd"', original, repaired) == rb'"\ud83d"'
    assert as_written(b"absent", original, repaired) == b"absent"


@pytest.mark.parametrize(
    ("result", "value"),
    [
        (rb'{"requestState": "s\ud83d"}', rb'"s\ud83d"'),
        (rb'{"text":"\ude00","requestState" : "s\u0041"}', rb'"s\u0041"'),
        (rb'{"a":{"requestState":"other\ud83d"},"requestState":"s\ud83d"}', rb'"s\ud83d"'),
    ],
)
def test_values_sent_back_to_the_server_are_as_it_wrote_them(result: bytes, value: bytes):
    original = b'{"result":%b}' % result
    repaired = replace_lone_surrogates(original)
    assert repaired is not None
    kept = keep_original(Raw(repaired[len(b'{"result":') : -1]), original, repaired)
    decoded = msgspec.json.decode(kept, type=dict[str, Raw])

    assert bytes(exactly(kept, "requestState", decoded["requestState"])) == value


def test_a_result_that_was_not_repaired_is_unchanged():
    value = Raw(b'"s"')

    assert exactly(Raw(b'{"requestState":"s"}'), "requestState", value) is value


def test_pairs_do_not_count_towards_the_limit():
    data = b'"' + rb"\ud83d\ude00" * 60_000 + rb"\ud83d" + b'"'
    assert replace_lone_surrogates(data) == b'"' + rb"\ud83d\ude00" * 60_000 + rb"\ufffd" + b'"'


def test_a_low_surrogate_without_an_escaped_high_one_is_replaced():
    assert replace_lone_surrogates(rb'"\\ud83d\ude00"') == rb'"\\ud83d\ufffd"'

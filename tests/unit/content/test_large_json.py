"""Taking large JSON apart in place: parts, texts, and what is too intricate."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.content import json_scan
from dragoman.content.json_scan import Broken, Members, TooManyParts, Walk, members_of
from dragoman.content.sources import unescaped

pytestmark = pytest.mark.requirement("CAL-7")

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\\n/{}[]:, é😀\x00'), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**9) | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def written(value: Any, is_ascii: bool, indent: int | None) -> bytes:
    return json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()


@given(st.lists(JSON, max_size=5), st.booleans(), st.sampled_from([None, 0, 2]))
def test_the_elements_of_an_array_are_found_at_their_positions(
    values: list[Any], is_ascii: bool, indent: Any
):
    data = written(values, is_ascii, indent)
    found = [json.loads(data[begin:end]) for begin, end in Walk(memoryview(data)).elements(0)]

    assert found == values


@given(st.dictionaries(TEXT, JSON, max_size=5), st.booleans(), st.sampled_from([None, 0, 2]))
def test_the_members_of_an_object_are_found_at_their_positions(values: Any, is_ascii: bool, indent: Any):
    data = b" " + written(values, is_ascii, indent)
    walk = Walk(memoryview(data))
    found = {key: json.loads(data[begin:end]) for key, begin, end in walk.members(walk.start())}

    assert found == values


@pytest.mark.parametrize(
    "inside", [b"\\" * 8, b'\\"' * 9, b"\\\\" * 3000 + b'\\"', b"x" * 9000, b'\\"x' * 4000, b"\\\\\\" + b'"x']
)
def test_a_string_ends_at_the_first_quote_that_is_not_escaped(inside: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_scan, "SHORT_BYTES", 5)
    monkeypatch.setattr(json_scan, "STEP_BYTES", 7)
    data = memoryview(inside + b'", "more"')

    assert Walk(data).string_end(0) == len(inside)


def test_truncated_json_is_broken_and_json_with_too_many_parts_is_too_complex():
    for data in (b'["abc', b"[[1, 2]", b'{"a": [', b'{"a"', b"["):
        with pytest.raises(Broken):
            list(Walk(memoryview(data)).elements(0) if data[0] == 91 else Walk(memoryview(data)).members(0))
    with pytest.raises(TooManyParts):
        list(Walk(memoryview(b"[" + b"[]," * 1000 + b"1]"), step_limit=100).elements(0))


class Wanted(Members):
    a: Raw = Raw()
    b: Raw = Raw()


@pytest.mark.parametrize("step_limit", [json_scan.STEP_LIMIT, 3])
def test_requested_members_are_found_however_complex_the_rest_is(
    step_limit: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Walk.__init__, "__defaults__", (step_limit,))
    data = b'{"x": [[], [], [], []], "a": {"b": 1}, "\\u0061": [1, 2]}'

    assert {key: bytes(part) for key, part in members_of(memoryview(data), Wanted).items()} == {
        "a": b"[1, 2]"
    }


# The inside of strings.


@given(TEXT, st.booleans(), st.integers(16, 40))
def test_a_text_decoded_in_pieces_is_unchanged(text: str, is_ascii: bool, size: int):
    data = json.dumps(text, ensure_ascii=is_ascii).encode()[1:-1]

    assert b"".join(unescaped(memoryview(data), size)) == text.encode()


@pytest.mark.parametrize("start", range(26))
@pytest.mark.parametrize("sign", ["😀", "é", "\\", "\n", "\x01", '"', "\\u0041"])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_piece_never_ends_within_a_character(start: int, sign: str, is_ascii: bool):
    text = "x" * start + sign * 4 + "end"
    data = json.dumps(text, ensure_ascii=is_ascii).encode()[1:-1]

    assert b"".join(unescaped(memoryview(data), 20)).decode() == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"\udc00\ud83d-", "\ufffd\ufffd-"),
        (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
        (rb"x\ud83d" + b"\xff", None),
        (b"\xff\xfe\\n", None),
    ],
)
def test_lone_surrogates_and_invalid_bytes_never_raise(data: bytes, text: str | None):
    for size in (16, 1000):
        found = b"".join(unescaped(memoryview(data * 9), size)).decode("utf-8", "replace")
        assert text is None or found == text * 9

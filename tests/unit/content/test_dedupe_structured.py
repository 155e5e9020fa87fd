"""Structured content that the text says already."""

import json
from typing import Any

import pytest

from dragoman.content.dedupe_structured import is_in_large_texts, is_in_texts
from dragoman.content.sources import Escaped, Plain, RawJson

pytestmark = pytest.mark.requirement("CAL-7")


@pytest.mark.parametrize(
    ("structured", "texts", "said"),
    [
        ({"a": 1}, ['{"a": 1}'], True),
        ({"a": 1, "b": [2]}, ["intro", '{\n "b": [2],\n "a": 1}'], True),
        ({"result": "hi"}, ["hi"], True),
        ({"result": 5}, ["5"], True),
        ({"sum": 5}, ["5"], True),
        ({"result": ["a", "b"]}, ["a", "b"], True),
        ({"result": [{"x": 1}, {"x": 2}]}, ['{"x": 1}', '{"x": 2}'], True),
        ({"result": []}, [], True),
        ({"a": 1}, ["{'a': 1}"], False),
        ({"a": 1}, ['{"a": 2}'], False),
        ({"a": 1, "b": 2}, ["1"], False),
        ({"a": 1}, [], False),
        ({"result": ["a", "b"]}, ["a", "c"], False),
        ([1, 2], ["[1, 2]"], True),
        ({"a": 1}, ["{" * 100_000], False),
        ({"a": "\ud800"}, ['{"a": "\ud800"}'], False),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_the_same_content_is_not_repeated(structured: Any, texts: list[str], said: bool):
    assert is_in_texts(structured, texts) is said


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrapped", [True, False])
def test_large_contents_are_compared_as_bytes(indent: int | None, wrapped: bool):
    value = [{"id": number, "name": "Zoë x"} for number in range(20_000)]
    text = json.dumps(value if wrapped else {"result": value}, indent=indent, ensure_ascii=False)
    structured = json.dumps({"result": value}, ensure_ascii=False).encode()
    escaped = Escaped(memoryview(json.dumps(text).encode()[1:-1]))

    assert is_in_large_texts(RawJson(memoryview(structured)), [Plain("x"), escaped])
    assert not is_in_large_texts(RawJson(memoryview(structured)), [Plain(text[:-9] + "9" + text[-8:])])
    assert not is_in_large_texts(RawJson(memoryview(structured)), [])

"""Content blocks: the known ones typed, everything else kept, nothing lost."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.content.blocks import (
    AudioBlock,
    Block,
    ImageBlock,
    ResourceBlock,
    ResourceData,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
    read_block,
)
from dragoman.content.result import Undecoded, read_result
from dragoman.wire.codec import Unreadable


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("given", "block", "text"),
    [
        ({"type": "text", "text": "hi\nthere"}, TextBlock("hi\nthere"), "hi\nthere"),
        ({"type": "text", "text": "", "annotations": {"priority": 1}, "_meta": {}}, TextBlock(""), ""),
        (
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            ImageBlock("aGk=", "image/png"),
            "[image, image/png]",
        ),
        ({"type": "image", "data": ""}, ImageBlock(""), "[image, application/octet-stream]"),
        (
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            AudioBlock("aGk=", "audio/wav"),
            "[audio, audio/wav]",
        ),
        (
            {
                "type": "resource_link",
                "uri": "file:///a",
                "name": "a",
                "title": "A",
                "mimeType": "text/plain",
            },
            ResourceLinkBlock("file:///a", "a", "A", None, "text/plain"),
            "[resource A: file:///a]",
        ),
        ({"type": "resource_link", "uri": "x:y"}, ResourceLinkBlock("x:y"), "[resource x:y: x:y]"),
        (
            {"type": "resource", "resource": {"uri": "x:y", "text": "inside"}},
            ResourceBlock(ResourceData("x:y", None, "inside")),
            "inside",
        ),
        (
            {"type": "resource", "resource": {"uri": "x:y", "mimeType": "a/b", "blob": "aGk="}},
            ResourceBlock(ResourceData("x:y", "a/b", None, "aGk=")),
            "[resource x:y]",
        ),
        (
            {"type": "resource", "resource": {"uri": "x:y", "text": ""}},
            ResourceBlock(ResourceData("x:y", None, "")),
            "",
        ),
    ],
    ids=str,
)
def test_a_known_block_is_typed(given: object, block: Block, text: str):
    found = read_block(raw(given))

    assert found == block
    assert found.as_text() == text


@pytest.mark.parametrize(
    "value",
    [
        {"type": "hologram", "data": "x"},
        {"type": "text"},
        {"type": "text", "text": None},
        {"type": "image", "data": 7},
        {"type": "resource", "resource": "x"},
        {"type": "resource_link"},
        {"text": "no type"},
        {"type": 7},
        {"type": None},
        {},
        [],
        "a text",
        7,
        None,
    ],
    ids=str,
)
def test_a_block_that_cannot_be_typed_is_kept_unchanged(value: object):
    found = read_block(raw(value))

    assert found == UnknownBlock(value)
    assert "unknown type" in found.as_text()


def test_one_invalid_block_does_not_affect_the_others():
    content = [{"type": "text", "text": "a"}, 7, {"type": "text", "text": "b"}]
    _, blocks = read_result(raw({"content": content}))

    assert blocks == (TextBlock("a"), UnknownBlock(7), TextBlock("b"))


def test_an_unknown_type_contains_no_terminal_sequences():
    assert "\x1b" not in read_block(raw({"type": "\x1b[2J"})).as_text()


@pytest.mark.parametrize("bad", [b"{", b'{"type":"text","text":"\xff"}', b"tru"])
def test_bytes_that_are_not_json_are_unreadable(bad: bytes):
    with pytest.raises(Unreadable):
        read_block(Raw(bad))


@given(st.binary())
def test_binary_data_is_decoded_unchanged(data: bytes):
    assert ImageBlock(base64.b64encode(data).decode()).decode() == data


@pytest.mark.parametrize("data", ["a", "a===", "****", "aGk=\n", "aGk= ", "é", "aGk=aGk="])
def test_data_that_is_not_base64_is_a_value_error(data: str):
    with pytest.raises(ValueError):
        AudioBlock(data).decode()


def test_a_number_that_is_too_large_affects_only_its_own_value():
    link = read_block(Raw(b'{"type":"resource_link","uri":"x:1","name":"n","size":1e400}'))

    assert link == ResourceLinkBlock("x:1", "n")
    assert read_block(Raw(b'{"type":"odd","n":-1e999,"m":2}')) == UnknownBlock(
        {"type": "odd", "n": None, "m": 2}
    )
    assert isinstance(read_block(Raw(b'{"type":"odd","v":' + b"[" * 9000 + b"]" * 9000 + b"}")), UnknownBlock)
    with pytest.raises(Unreadable):
        read_block(Raw(b'{"type":"odd","n":NaN}'))


@pytest.mark.parametrize("text", [b"\\ud800", b"\xed\xa0\x80", b"\xff"])
def test_a_text_of_another_type_is_not_accepted(text: bytes):
    with pytest.raises(Unreadable):
        read_block(Raw(b'{"type":"text","text":"' + text + b'","n":1e999}'))


@pytest.mark.parametrize("odd", ['{"a":1e999}', '{"b":' + "9" * 100_000 + "}", "[" * 9000 + "]" * 9000])
def test_structured_content_that_cannot_be_decoded_leaves_the_rest(odd: str):
    result, content = read_result(
        Raw(f'{{"content":[{{"type":"text","text":"hi"}}],"structuredContent":{odd}}}'.encode())
    )

    assert content == (TextBlock("hi"),)
    if isinstance(result.structured, Undecoded):
        with pytest.raises(Unreadable):
            result.structured.decode()


def test_meta_that_cannot_be_decoded_leaves_the_rest():
    result, content = read_result(Raw(b'{"content":[{"type":"text","text":"hi"}],"_meta":{"n":1e999}}'))

    assert content == (TextBlock("hi"),)
    assert isinstance(result.meta, Undecoded)

"""Bytes to messages and back: what is sent, byte for byte, and what is made of bytes that are no message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from dragoman.wire.codec import (
    Unreadable,
    batch_members,
    decode_as,
    decode_envelope,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    is_reply,
)
from dragoman.wire.messages import ABSENT, ProgressParams


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        pytest.param(
            encode_request(1, "ping", None),
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
            id="bare request",
        ),
        pytest.param(
            encode_request(1, "tools/list", {}),
            b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
            id="empty params are kept",
        ),
        pytest.param(
            encode_request(2, "x", {"text": "é\u2028\n"}),
            '{"jsonrpc":"2.0","id":2,"method":"x","params":{"text":"é\u2028\\n"}}'.encode(),
            id="text is UTF-8, line feeds are escaped",
        ),
        pytest.param(
            encode_notification("notifications/initialized"),
            b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
            id="bare notification",
        ),
        pytest.param(
            encode_notification("n", {"a": 1}),
            b'{"jsonrpc":"2.0","method":"n","params":{"a":1}}',
            id="notification with params",
        ),
        pytest.param(encode_result(7, {}), b'{"jsonrpc":"2.0","id":7,"result":{}}', id="result"),
        pytest.param(
            encode_error("x", -32601, "no"),
            b'{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no"}}',
            id="error",
        ),
        pytest.param(encode_result(None, 0), b'{"jsonrpc":"2.0","id":null,"result":0}', id="null id"),
    ],
)
def test_the_encoded_messages(encoded: bytes, expected: bytes):
    assert encoded == expected


@given(st.dictionaries(st.text(), st.text() | st.integers(-(2**53), 2**53) | st.none()))
def test_an_encoded_message_is_always_a_single_line(params: dict[str, object]):
    assert b"\n" not in encode_request(1, "x", params)


@pytest.mark.parametrize(
    ("data", "id"),
    [
        (b'{"jsonrpc":"2.0","id":"1"}', "1"),
        (b'{"jsonrpc":"2.0","id":1}', 1),
        (b'{"jsonrpc":"2.0","id":1.5}', 1.5),
        (b'{"jsonrpc":"2.0","id":true}', True),
        (b'{"jsonrpc":"2.0","id":null}', None),
        (b'{"jsonrpc":"2.0"}', UNSET),
        (b'{"jsonrpc":"2.0","ID":1}', UNSET),
        (b' {"extra":[],"id":"a","jsonrpc":"2.0"}\r', "a"),
    ],
    ids=repr,
)
def test_an_id_keeps_its_type_and_absence_is_not_null(data: bytes, id: object):
    found = decode_envelope(data).id

    assert (type(found), found) == (type(id), id)


def test_parts_of_an_envelope_stay_raw_and_absence_is_not_null():
    envelope = decode_envelope(b'{"jsonrpc":"2.0","id":1,"result":null}')

    assert bytes(envelope.result) == b"null"
    assert envelope.error is ABSENT
    assert envelope.params is ABSENT


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"hello", id="words"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":{', id="cut off"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":NaN}', id="NaN"),
        pytest.param(b'{"jsonrpc":"2.0","id":{},"result":1}', id="an object as id"),
        pytest.param(b'{"jsonrpc":"2.0","id":[1],"result":1}', id="a list as id"),
        pytest.param(b'{"jsonrpc":"2.0","id":"\xff","result":1}', id="invalid UTF-8"),
        pytest.param(b'{"jsonrpc":"1.0","id":1,"result":1}', id="another version"),
        pytest.param(b'{"id":1,"result":1}', id="no version"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 50_000 + b"]" * 50_000 + b"}", id="deep"),
        pytest.param(b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b"}", id="a number of 5000 digits"),
        pytest.param(b'{"jsonrpc":"2.0","method":5}', id="a number as method"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0"}', id="a byte order mark"),
        pytest.param('{"jsonrpc":"2.0"}'.encode("utf-16"), id="UTF-16"),
        pytest.param(b'{"jsonrpc":"2.0"}{"jsonrpc":"2.0"}', id="two in one"),
    ],
)
def test_bytes_that_are_not_a_message_are_unreadable(data: bytes):
    with pytest.raises(Unreadable) as caught:
        decode_envelope(data)
    assert caught.value.detail


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_a_value_or_are_unreadable(data: bytes):
    for decode in (decode_envelope, lambda raw: decode_as(ProgressParams, raw)):
        try:
            decode(data)
        except Unreadable:
            pass


def test_a_member_is_decoded_as_the_requested_type():
    assert decode_as(list[int], Raw(b"[1,2]")) == [1, 2]
    with pytest.raises(Unreadable):
        decode_as(list[int], Raw(b'["a"]'))


@pytest.mark.parametrize(("count", "taken"), [(0, 0), (3, 3), (1000, 1000), (1001, 0)])
def test_a_batch_of_too_many_messages_is_not_split(count: int, taken: int):
    assert len(batch_members(b"[" + b",".join([b"{}"] * count) + b"]")) == taken


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        (encode_result(1, {}), True),
        (encode_result("x", Raw(b'{"method":1}')), True),
        (encode_result('","method":"', {}), True),
        (encode_error(None, -32600, "no"), True),
        (b"[" + encode_result(1, {}) + b"]", True),
        (encode_request(1, "ping", None), False),
        (encode_request(-7, "ping", {}), False),
        (encode_notification("notifications/progress", {}), False),
    ],
)
def test_a_reply_is_distinguished_from_a_request_and_a_notification(encoded: bytes, expected: bool):
    assert is_reply(encoded) is expected

"""What a client's message is, in which era it is answered, and by whom."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.protocol import LEGACY_REVISIONS, MODERN_REVISIONS, REVISIONS
from dragoman.wire.messages import ABSENT, Envelope
from dragoman.wire.server.incoming import client_of, handler_of, read, read_meta
from dragoman.wire.server.modern import RequestMeta
from dragoman.wire.server.service import Client, RequestError
from tests.unit.wire.server.talk import LEGACY, MODERN, echo, legacy_client, service

NOT_JSON_RPC = "not a JSON-RPC message: "
BAD_ID = (None, -32600, "a request id is a string or an integer")
NEITHER = "neither a request nor a reply"


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        pytest.param(b"", (None, -32700, "Input data was truncated"), id="nothing"),
        pytest.param(b"hello", (None, -32700, "JSON is malformed: invalid character (byte 0)"), id="text"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,', (None, -32700, "Input data was truncated"), id="cut"),
        pytest.param(b'{"params":' + b"[" * 9999, (None, -32700, "nested too deeply"), id="deep"),
        pytest.param(b"7", (None, -32600, "Expected `object`, got `int`"), id="a number"),
        pytest.param(b"[]", (None, -32600, "Expected `object`, got `array`"), id="an empty batch"),
        pytest.param(
            b'{"id":1,"method":"m"}',
            (1, -32600, "Object missing required field `jsonrpc`"),
            id="no version",
        ),
        pytest.param(
            b'{"jsonrpc":"1.0","id":"a","method":"m"}',
            ("a", -32600, "Invalid enum value '1.0' - at `$.jsonrpc`"),
            id="another version",
        ),
        pytest.param(
            b'{"jsonrpc":"2.0","id":[1],"method":"m"}',
            (None, -32600, "got `array` - at `$.id`"),
            id="an array as id",
        ),
    ],
)
def test_bytes_that_are_not_a_message_are_answered_with_an_error(
    message: bytes, reply: tuple[object, int, str]
):
    found = read(message)

    assert isinstance(found, bytes)
    decoded = json.loads(found)
    request_id, code, detail = reply
    assert (decoded["id"], decoded["error"]["code"]) == (request_id, code)
    assert decoded["error"]["message"].startswith(NOT_JSON_RPC)
    assert decoded["error"]["message"].endswith(detail)


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', BAD_ID),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', BAD_ID),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', BAD_ID),
        (b'{"jsonrpc":"2.0","id":9223372036854775808,"method":"m"}', BAD_ID),
        (b'{"jsonrpc":"2.0","id":1e300,"method":"m"}', BAD_ID),
        (b'{"jsonrpc":"2.0"}', (None, -32600, NEITHER)),
        (b'{"jsonrpc":"2.0","id":4}', (4, -32600, NEITHER)),
        (b'{"jsonrpc":"2.0","id":true}', (None, -32600, NEITHER)),
        (b'{"jsonrpc":"2.0","params":{}}', (None, -32600, NEITHER)),
    ],
)
def test_a_message_that_is_not_a_request_is_answered_with_an_error(
    message: bytes, reply: tuple[object, int, str]
):
    request_id, code, text = reply

    found = read(message)
    assert isinstance(found, bytes)
    assert json.loads(found) == {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}


@pytest.mark.parametrize(
    "message",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":"","method":"m","params":{}}',
        b'{"jsonrpc":"2.0","id":-9223372036854775807,"method":"m"}',
        b'{"jsonrpc":"2.0","method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"half an emoji: \\ud83d"}}',
    ],
)
def test_requests_notifications_and_replies_are_read(message: bytes):
    assert isinstance(read(message), Envelope)


@given(st.binary() | st.text().map(str.encode))
def test_no_bytes_raise(message: bytes):
    assert isinstance(read(message), bytes | Envelope)


@pytest.mark.parametrize(
    ("params", "token"),
    [
        (ABSENT, None),
        (Raw(b"{}"), None),
        (Raw(b'{"_meta":null}'), None),
        (Raw(b'{"_meta":{"progressToken":7}}'), 7),
        (Raw(b'{"_meta":{"progressToken":"7"}}'), "7"),
    ],
)
def test_the_progress_token_of_a_request(params: Raw, token: object):
    assert read_meta(params).progress_token == token


@pytest.mark.parametrize(
    "params",
    [
        b"[]",
        b"1",
        b"null",
        b'{"_meta":1}',
        b'{"_meta":{"progressToken":true}}',
        b'{"_meta":{"progressToken":1.5}}',
        b'{"_meta":{"progressToken":99999999999999999999}}',
        b'{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}',
        b'{"_meta":{"io.modelcontextprotocol/clientCapabilities":[]}}',
    ],
)
def test_parameters_of_a_wrong_form_are_invalid(params: bytes):
    with pytest.raises(RequestError) as caught:
        read_meta(Raw(params))
    assert caught.value.code_in("modern") == -32602


FULL = RequestMeta(protocol_version=MODERN, client_capabilities={})
OLD = RequestMeta(protocol_version=LEGACY, client_capabilities={})
BARE = RequestMeta()
SESSION = legacy_client()
BOTH, ONLY_LEGACY, ONLY_MODERN = REVISIONS, LEGACY_REVISIONS, MODERN_REVISIONS


@pytest.mark.parametrize(
    ("revisions", "session", "method", "meta", "expected"),
    [
        (BOTH, None, "tools/list", FULL, "modern"),
        (BOTH, SESSION, "tools/list", FULL, "modern"),
        (BOTH, SESSION, "tools/list", BARE, "legacy"),
        (BOTH, None, "tools/list", BARE, -32602),
        (BOTH, None, "tools/list", OLD, -32022),
        (BOTH, None, "server/discover", BARE, -32602),
        (BOTH, None, "ping", BARE, "legacy"),
        (BOTH, None, "tools/list", RequestMeta(protocol_version=MODERN), -32602),
        (ONLY_LEGACY, None, "tools/list", BARE, -32600),
        (ONLY_LEGACY, None, "tools/list", FULL, -32600),
        (ONLY_LEGACY, None, "server/discover", FULL, -32601),
        (ONLY_LEGACY, None, "ping", BARE, "legacy"),
        (ONLY_LEGACY, SESSION, "tools/list", FULL, "legacy"),
        (ONLY_MODERN, None, "ping", BARE, -32602),
        (ONLY_MODERN, None, "tools/list", BARE, -32602),
        (ONLY_MODERN, None, "server/discover", FULL, "modern"),
    ],
)
def test_in_which_era_a_request_is_answered(
    revisions: tuple[str, ...],
    session: Client | None,
    method: str,
    meta: RequestMeta,
    expected: str | int,
):
    try:
        found: str | int = client_of(service(revisions=revisions), session, method, meta).era
    except RequestError as error:
        found = error.code_in("modern")
    assert found == expected


@pytest.mark.parametrize(
    ("method", "eras"),
    [
        ("tools/list", ["legacy", "modern"]),
        ("ping", ["legacy"]),
        ("logging/setLevel", ["legacy"]),
        ("resources/subscribe", ["legacy"]),
        ("resources/unsubscribe", ["legacy"]),
        ("server/discover", ["modern"]),
        ("subscriptions/listen", ["modern"]),
        ("prompts/list", []),
    ],
)
def test_which_methods_an_era_has(method: str, eras: list[str]):
    handlers = {} if method == "prompts/list" else {method: echo}
    found: list[str] = []
    refused: list[tuple[int, str]] = []
    for client in (SESSION, Client(era="modern", revision=MODERN)):
        try:
            handler_of(service(), client, method, handlers)
        except RequestError as error:
            refused.append((error.code_in(client.era), error.message))
        else:
            found.append(client.era)
    assert found == eras
    assert refused == [(-32601, f"unknown method {method}")] * (2 - len(eras))

"""The `tools/call` request itself."""

import json
import math
from typing import Any

import pytest
from msgspec import Raw

from dragoman.calls.invoke import invoke
from dragoman.content.blocks import TextBlock, UnknownBlock
from dragoman.errors import InvalidArguments, MalformedReply
from dragoman.names import WireToolName
from dragoman.wire.codec import encode_request


class Session:
    """Encodes what it is asked to send, and answers what it was told to."""

    server = "box"

    def __init__(self, reply: bytes = b"{}") -> None:
        self._reply = reply
        self.sent: list[bytes] = []

    async def request(self, method: str, params: Any, *, timeout_seconds: float, on_progress: Any) -> Raw:
        self.sent.append(encode_request("d1", method, params))
        return Raw(self._reply)


async def call(session: Session, arguments: dict[str, Any]) -> Any:
    return await invoke(
        session,  # type: ignore[arg-type]
        WireToolName("open"),
        arguments,
        timeout_seconds=1,
        on_progress=None,
    )


async def test_the_tool_is_called_by_the_servers_own_name_for_it():
    session = Session()
    await call(session, {"n": 1})

    assert session.sent == [
        b'{"jsonrpc":"2.0","id":"d1","method":"tools/call","params":{"name":"open","arguments":{"n":1}}}'
    ]


async def test_arguments_are_always_sent_even_if_there_are_none():
    session = Session()
    await call(session, {})

    assert b'"arguments":{}' in session.sent[0]


async def test_a_result_comes_back_with_its_blocks():
    result, blocks = await call(Session(b'{"content":[{"type":"text","text":"a"},7],"isError":true}'), {})

    assert result.is_error
    assert blocks == (TextBlock("a"), UnknownBlock(7))


def circle() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="an object"),
        pytest.param("\ud83d", id="half a surrogate pair"),
        pytest.param(circle(), id="a list that contains itself"),
        pytest.param({(1, 2): 3}, id="a tuple as key"),
    ],
)
async def test_arguments_that_cannot_be_written_as_json_are_invalid_and_nothing_is_sent(value: Any):
    session = Session()
    with pytest.raises(InvalidArguments):
        await call(session, {"x": value})

    assert session.sent == []


async def test_numbers_json_has_no_word_for_are_sent_as_null():
    session = Session()
    await call(session, {"x": math.nan, "y": math.inf})

    assert b'"arguments":{"x":null,"y":null}' in session.sent[0]


@pytest.mark.parametrize("kind", ["task", "input_required", "", "\x1b[2J"])
async def test_a_kind_of_result_that_was_never_declared_is_malformed(kind: str):
    with pytest.raises(MalformedReply, match="undeclared kind") as caught:
        await call(Session(json.dumps({"resultType": kind}).encode()), {})
    assert "\x1b" not in str(caught.value)

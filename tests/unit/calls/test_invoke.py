"""The `tools/call` request itself."""

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from dragoman.calls.invoke import invoke
from dragoman.calls.tool_call import ToolCall
from dragoman.content.blocks import TextBlock, UnknownBlock
from dragoman.errors import InputUnavailable, MalformedReply
from dragoman.protocol import META_CLIENT_CAPABILITIES, META_LOG_LEVEL, Era
from dragoman.wire.codec import encode_request
from tests.unit.fakes import Nobody, tool

MIRRORED = {
    "type": "object",
    "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}, "n": {"type": "integer"}},
}


class Session:
    """Encodes what it is asked to send, and answers what it was told to, the last of it for ever."""

    server = "box"

    def __init__(self, *replies: bytes, era: Era = "legacy", mirrors_arguments: bool = False) -> None:
        self._replies = [*replies] or [b"{}"]
        self.mirrors_arguments = mirrors_arguments
        self.driver = SimpleNamespace(era=era, servers_may_ask=era == "legacy")
        self.sent: list[bytes] = []
        self.headers: list[Any] = []
        self.limits: list[float] = []

    async def request(
        self,
        method: str,
        params: Any,
        *,
        timeout_seconds: float,
        on_progress: Any,
        headers: Any,
        reset_timeout_on_progress: bool,
        before_send: Any,
        call: Any,
    ) -> Raw:
        before_send()
        self.sent.append(encode_request("d1", method, params))
        self.headers.append(headers)
        self.limits.append(timeout_seconds)
        return Raw(self._replies.pop(0) if len(self._replies) > 1 else self._replies[0])

    def params(self, number: int) -> Any:
        return json.loads(self.sent[number])["params"]


async def call(
    session: Session,
    arguments: dict[str, Any],
    answerer: Any = None,
    schema: Any = None,
    meta: dict[str, Any] | None = None,
) -> Any:
    called, server = tool(schema), SimpleNamespace(requests=answerer or Nobody())
    judged = SimpleNamespace(tool=called, server=server, arguments=arguments, check=lambda: None)
    request = ToolCall(called.name, arguments, meta=meta)
    return await invoke(session, server, called, judged, request, 1)  # type: ignore[arg-type]


async def test_the_tool_is_called_by_its_wire_name():
    session = Session()
    await call(session, {"n": 1})

    assert session.sent == [
        b'{"jsonrpc":"2.0","id":"d1","method":"tools/call","params":{"name":"open","arguments":{"n":1}}}'
    ]


TRACE = {"traceparent": "00-1-2-01"}
FOR_MODERN_SERVERS = {META_LOG_LEVEL: "info", META_CLIENT_CAPABILITIES: {}}


@pytest.mark.parametrize(
    ("era", "meta", "sent"),
    [
        ("legacy", {**TRACE, **FOR_MODERN_SERVERS}, {"_meta": TRACE}),
        ("legacy", FOR_MODERN_SERVERS, {}),
        ("modern", {**TRACE, **FOR_MODERN_SERVERS}, {"_meta": {**TRACE, **FOR_MODERN_SERVERS}}),
    ],
)
async def test_a_legacy_server_is_not_sent_metadata_of_the_modern_era(era: Era, meta: Any, sent: Any):
    session = Session(b'{"content":[],"resultType":"complete"}', era=era)
    await call(session, {}, meta=meta)
    assert session.params(0) == {"name": "open", "arguments": {}, **sent}


async def test_arguments_are_always_sent_even_if_empty():
    session = Session()
    await call(session, {})

    assert b'"arguments":{}' in session.sent[0]


async def test_a_result_is_returned_with_its_blocks():
    result, blocks = await call(Session(b'{"content":[{"type":"text","text":"a"},7],"isError":true}'), {})

    assert result.is_error
    assert blocks == (TextBlock("a"), UnknownBlock(7))


async def test_numbers_that_json_cannot_express_are_sent_as_null():
    session = Session()
    await call(session, {"x": math.nan, "y": math.inf})

    assert b'"arguments":{"x":null,"y":null}' in session.sent[0]


@pytest.mark.parametrize("kind", ["task", "input_required", "", "\x1b[2J"])
async def test_a_result_type_that_was_not_declared_is_malformed(kind: str):
    with pytest.raises(MalformedReply, match="undeclared kind") as caught:
        await call(Session(json.dumps({"resultType": kind}).encode()), {})
    assert "\x1b" not in str(caught.value)


# --- headers ---


@pytest.mark.requirement("TRN-2")
async def test_annotated_arguments_are_mirrored_as_headers_over_http():
    session = Session(mirrors_arguments=True, era="modern")
    await call(session, {"tenant": "Müller", "n": 1}, schema=MIRRORED)

    assert session.headers == [{"Mcp-Param-Tenant": "=?base64?TcO8bGxlcg==?="}]


async def test_over_transports_without_headers_none_are_sent():
    session = Session(era="modern")
    await call(session, {"tenant": "a"}, schema=MIRRORED)

    assert session.headers == [None]


# --- rounds ---

QUESTIONS = b'{"q":{"method":"elicitation/create"}}'
ASKS = b'{"resultType":"input_required","inputRequests":' + QUESTIONS + b',"requestState":"s"}'


class Says:
    """Answers every question alike."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, method: str, params: Raw, context: Any) -> dict[str, Any]:
        self.asked.append(method)
        return {"action": "accept", "content": {"n": len(self.asked)}}


async def test_input_required_is_answered_by_another_call_with_the_answers_and_the_state():
    session = Session(ASKS, ASKS, b'{"content":[{"type":"text","text":"done"}]}', era="modern")
    answerer = Says()
    _, blocks = await call(session, {"n": 1}, answerer)

    assert blocks == (TextBlock("done"),)
    assert answerer.asked == ["elicitation/create"] * 2
    assert session.params(0) == {"name": "open", "arguments": {"n": 1}}
    assert session.params(2) == {
        "name": "open",
        "arguments": {"n": 1},
        "inputResponses": {"q": {"action": "accept", "content": {"n": 2}}},
        "requestState": "s",
    }


async def test_the_headers_are_sent_in_every_round():
    session = Session(ASKS, b"{}", era="modern", mirrors_arguments=True)
    await call(session, {"tenant": "a"}, Says(), MIRRORED)

    assert session.headers == [{"Mcp-Param-Tenant": "a"}] * 2


async def test_all_rounds_share_the_time_limit_of_the_call():
    session = Session(ASKS, ASKS, b"{}", era="modern")
    await call(session, {}, Says())

    assert session.limits[0] == 1
    assert 1 >= session.limits[1] >= session.limits[2] > 0


async def test_a_server_that_asks_without_end_is_malformed_after_ten_rounds():
    session = Session(ASKS, era="modern")
    with pytest.raises(MalformedReply, match="more than 10 rounds"):
        await call(session, {}, Says())

    assert len(session.sent) == 11


async def test_a_question_without_an_interaction_ends_the_call():
    session = Session(ASKS, era="modern")
    with pytest.raises(InputUnavailable, match="elicitation/create"):
        await call(session, {})

    assert len(session.sent) == 1


@pytest.mark.parametrize("kind", ["tasks", "", "INPUT_REQUIRED"])
async def test_a_modern_result_type_that_was_not_declared_is_malformed(kind: str):
    with pytest.raises(MalformedReply, match="undeclared kind"):
        await call(Session(json.dumps({"resultType": kind}).encode(), era="modern"), {}, Says())

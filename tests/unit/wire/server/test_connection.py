"""One client's connection: every request gets one reply, a cancelled one none, and no bytes do harm."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.errors import MalformedReply, RemoteError
from dragoman.protocol import REVISIONS
from dragoman.wire.server.connection import ClientConnection
from dragoman.wire.server.request import ClientRequest, missing_capability, reaches
from dragoman.wire.server.service import InputRequired, RequestError, ResourceNotFound
from tests.unit.wire.server.talk import (
    CAPABILITIES,
    INFO,
    LEGACY,
    MODERN,
    VERSION,
    Talk,
    complete,
    echo,
    error,
    legacy_client,
    meta,
    notification,
    result,
    service,
)

INTERNAL = (-32603, "internal error")


# --- the opening ---


async def test_a_legacy_client_is_initialized_once():
    talk = Talk(service({"tools/list": echo}))
    talk.ask("initialize", 0, protocolVersion=LEGACY, capabilities={"roots": {}}, clientInfo={"name": "c"})

    info = {"name": "box", "version": "1"}
    opened = result(0, protocolVersion=LEGACY, capabilities={"tools": {}}, serverInfo=info)
    assert talk.sent == [opened], "answered before the next message is read"
    session = talk.connection.session
    assert session is not None
    assert (session.revision, session.info, session.capabilities) == (LEGACY, {"name": "c"}, {"roots": {}})
    await talk.heard()
    talk.ask("initialize", 1, protocolVersion=LEGACY)
    assert await talk.heard() == [error(1, -32600, "initialize was answered before")]


async def test_initialize_needs_a_version():
    talk = Talk(service())
    talk.ask("initialize")

    assert await talk.heard() == [error(1, -32602, "Object missing required field `protocolVersion`")]
    assert talk.connection.session is None


async def test_a_modern_client_discovers_and_calls_without_a_handshake():
    talk = Talk(service({"tools/call": echo}))
    talk.ask("server/discover", "d", **meta())
    talk.ask("tools/call", "c", name="x", **meta())

    about = {"supportedVersions": list(REVISIONS), "capabilities": {"tools": {}}}
    hints = {"ttlMs": 0, "cacheScope": "private"}
    assert await talk.heard(2) == [
        complete("d", **about, **hints),
        complete("c", params={"name": "x", **meta()}),
    ]


async def test_an_unsupported_version_is_answered_with_the_supported_ones():
    talk = Talk(service(revisions=(MODERN, LEGACY)))
    talk.ask("server/discover", _meta={VERSION: "2099-01-01", CAPABILITIES: {}})

    data = {"supported": [MODERN, LEGACY], "requested": "2099-01-01"}
    assert await talk.heard() == [error(1, -32022, "unsupported protocol version", data=data)]


async def test_a_session_continues_on_another_connection():
    talk = Talk(service({"tools/list": echo}), legacy_client())
    talk.ask("tools/list")

    assert await talk.heard() == [result(1, params={})]


async def test_ping_is_answered_before_and_after_initialize():
    talk = Talk(service())
    talk.ask("ping")
    assert await talk.heard() == [result(1)]
    talk.ask("initialize", protocolVersion=LEGACY)
    talk.ask("ping", 2)
    assert (await talk.heard(2))[1] == result(2)


# --- results and errors ---


async def failing(request: ClientRequest) -> Any:
    raise {
        "refused": RequestError(7, "no", {"why": "so"}),
        "missing": ResourceNotFound("a:b"),
        "broken": ZeroDivisionError("secret"),
        "cancelled": asyncio.CancelledError(),
        "input": InputRequired({}, "state"),
    }[request.params["how"]]


@pytest.mark.parametrize(
    ("how", "code", "message", "more"),
    [
        ("refused", 7, "no", {"data": {"why": "so"}}),
        ("missing", -32002, "no resource a:b", {"data": {"uri": "a:b"}}),
        ("broken", *INTERNAL, {}),
        ("cancelled", -32603, "internal error: cancelled", {}),
        ("input", -32603, "tools/call of revision 2025-11-25 has no input_required", {}),
    ],
)
async def test_an_exception_of_a_handler_is_an_error_reply(
    how: str, code: int, message: str, more: dict[str, Any]
):
    reported: list[tuple[str, Exception]] = []
    served = service({"tools/call": failing}, report=lambda *what: reported.append(what))
    talk = Talk(served, legacy_client())
    talk.ask("tools/call", how=how)

    assert await talk.heard() == [error(1, code, message, **more)]
    assert [(method, str(each)) for method, each in reported] == (
        [("tools/call", "secret")] if how == "broken" else []
    )


async def test_a_failure_of_a_handler_is_logged_by_default(caplog: pytest.LogCaptureFixture):
    talk = Talk(service({"tools/call": failing}), legacy_client())
    talk.ask("tools/call", how="broken")
    await talk.heard()
    assert [each.message for each in caplog.records] == ["the handler of tools/call failed"]


async def test_a_result_that_cannot_be_encoded_is_an_error():
    async def handler(request: ClientRequest) -> Any:
        return {"a": object()}

    talk = Talk(service({"tools/call": handler}), legacy_client())
    talk.ask("tools/call")
    assert await talk.heard() == [error(1, *INTERNAL)]


@pytest.mark.parametrize("params", [meta(), {}], ids=["modern", "legacy"])
async def test_a_raw_result_is_sent_unchanged(params: dict[str, Any]):
    async def handler(request: ClientRequest) -> Raw:
        return Raw(b'{"a":  1.0}')

    sent: list[bytes] = []
    connection = ClientConnection(service({"tools/call": handler}), sent.append, legacy_client())
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    connection.receive(json.dumps(request).encode())
    while not sent:
        await asyncio.sleep(0)
    assert sent == [b'{"jsonrpc":"2.0","id":1,"result":{"a":  1.0}}']


async def test_a_modern_handler_may_set_hints_and_meta_itself():
    async def handler(request: ClientRequest) -> Any:
        return {"tools": [], "ttlMs": 9, "cacheScope": "public", "_meta": {"a/b": 1}}

    talk = Talk(service({"tools/list": handler}))
    talk.ask("tools/list", **meta())
    assert await talk.heard() == [
        complete(1, tools=[], ttlMs=9, cacheScope="public", _meta={**INFO, "a/b": 1})
    ]


@pytest.mark.parametrize("request_id", [1, "1", "", -5])
async def test_a_reply_has_the_id_of_its_request(request_id: Any):
    talk = Talk(service({"m": echo}), legacy_client())
    talk.ask("m", request_id)
    assert await talk.heard() == [result(request_id, params={})]


async def test_an_id_in_use_is_refused_without_affecting_the_first_request():
    go = asyncio.Event()

    async def handler(request: ClientRequest) -> Any:
        await go.wait()
        return {}

    talk = Talk(service({"m": handler}), legacy_client())
    talk.ask("m", 1)
    talk.ask("m", 1)
    assert await talk.heard() == [error(None, -32600, "the request id 1 is in use")]
    talk.ask("m", "1")
    go.set()
    assert await talk.heard(2) == [result(1), result("1")]
    talk.ask("m", 1)
    assert await talk.heard() == [result(1)]


async def test_replies_and_notifications_of_a_message_use_its_channel():
    async def handler(request: ClientRequest) -> Any:
        request.progress(1)
        return {}

    own: list[Any] = []
    talk = Talk(service({"m": handler}), legacy_client())
    message = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"_meta": {"progressToken": "p"}}}
    for each in (message, {**message, "id": None}):
        talk.connection.receive(json.dumps(each).encode(), lambda sent: own.append(json.loads(sent)))
    while len(own) < 3:
        await asyncio.sleep(0)
    assert own == [
        error(None, -32600, "a request id is a string or an integer"),
        notification("notifications/progress", progressToken="p", progress=1),
        result(1),
    ]
    assert talk.sent == []


@given(st.lists(st.binary(max_size=30) | st.sampled_from([b'{"jsonrpc":"2.0","id":1,"result":{}}', b"[]"])))
def test_no_bytes_raise(messages: list[bytes]):
    sent: list[bytes] = []
    connection = ClientConnection(service(), sent.append, legacy_client())
    for message in messages:
        connection.receive(message)
    assert all(b'"error"' in each for each in sent)


# --- batches ---

BATCH = [
    {"jsonrpc": "2.0", "id": 1, "method": "m"},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "unknown"},
    {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
    7,
]


async def test_a_batch_is_answered_with_a_batch_in_the_one_revision_that_has_them():
    talk = Talk(service({"m": echo}), legacy_client(revision="2025-03-26", is_initialized=False))
    talk.say(BATCH)

    (replies,) = await talk.heard()
    assert replies[:2] == [
        error(2, -32601, "unknown method unknown"),
        error(3, -32600, "initialize was answered before"),
    ]
    assert (replies[2]["id"], replies[2]["error"]["code"]) == (None, -32600)
    assert replies[3:] == [result(1, params={})]
    assert talk.connection.session is not None
    assert talk.connection.session.is_initialized
    talk.say([BATCH[1]])
    assert await talk.settled() == [], "notifications have no reply"


@pytest.mark.parametrize("revision", [each for each in REVISIONS if each != "2025-03-26"])
async def test_a_batch_is_an_error_in_other_revisions(revision: str):
    session = None if revision == MODERN else legacy_client(revision=revision)
    talk = Talk(service({"m": echo}), session)
    talk.say(BATCH)

    (reply,) = await talk.settled()
    assert (reply["id"], reply["error"]["code"]) == (None, -32600)


async def test_a_cancelled_member_of_a_batch_delays_no_other():
    async def never(request: ClientRequest) -> Any:
        await asyncio.Event().wait()

    talk = Talk(service({"m": echo, "never": never}), legacy_client(revision="2025-03-26"))
    talk.say([BATCH[0], {"jsonrpc": "2.0", "id": 9, "method": "never"}])
    assert await talk.settled() == []
    talk.tell("notifications/cancelled", requestId=9)
    assert await talk.heard() == [[result(1, params={})]]


# --- cancellation ---


class Stubborn:
    """A handler that notices its cancellation, and answers all the same."""

    def __init__(self) -> None:
        self.began, self.cancelled = asyncio.Event(), False

    async def __call__(self, request: ClientRequest) -> Any:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
        request.progress(1)
        return {}


@pytest.mark.parametrize("starts", [True, False])
async def test_a_cancelled_request_gets_no_reply(starts: bool):
    handler = Stubborn()
    talk = Talk(service({"m": handler}), legacy_client())
    talk.ask("m", 1, _meta={"progressToken": 1})
    if starts:
        await handler.began.wait()
    talk.tell("notifications/cancelled", requestId=1, reason="too slow")

    await talk.connection.close()
    assert handler.cancelled == starts
    assert talk.sent == [], "no progress either"


@pytest.mark.parametrize(
    "params", [{"requestId": "1"}, {"requestId": 2}, {"requestId": None}, {"requestId": True}, {}]
)
async def test_only_the_named_request_is_cancelled(params: dict[str, Any]):
    go = asyncio.Event()

    async def handler(request: ClientRequest) -> Any:
        await go.wait()
        return {}

    talk = Talk(service({"m": handler}), legacy_client())
    talk.ask("m", 1)
    talk.tell("notifications/cancelled", **params)
    go.set()
    assert await talk.heard() == [result(1)]


async def test_closing_cancels_running_requests():
    handler = Stubborn()
    talk = Talk(service({"m": handler}), legacy_client())
    talk.ask("m")
    await handler.began.wait()

    await talk.connection.close()
    assert (handler.cancelled, talk.sent) == (True, [])


# --- progress, log messages, notifications ---


async def test_progress_has_the_token_and_only_increases():
    async def handler(request: ClientRequest) -> Any:
        for value in (1, 1, 0.5, 2):
            request.progress(value, 2, f"{value} of 2")
        request.progress(3)
        return {}

    talk = Talk(service({"m": handler}), legacy_client())
    talk.ask("m", _meta={"progressToken": "t"})
    progress = "notifications/progress"
    assert await talk.heard(4) == [
        notification(progress, progressToken="t", progress=1, total=2, message="1 of 2"),
        notification(progress, progressToken="t", progress=2, total=2, message="2 of 2"),
        notification(progress, progressToken="t", progress=3),
        result(1),
    ]
    talk.ask("m")
    assert await talk.heard() == [result(1)], "without a token there is no progress"


@pytest.mark.parametrize(
    ("level", "threshold", "expected"),
    [
        ("debug", None, False),
        ("emergency", None, False),
        ("debug", "debug", True),
        ("debug", "info", False),
        ("error", "warning", True),
        ("warning", "error", False),
    ],
)
def test_which_log_messages_are_sent(level: str, threshold: str | None, expected: bool):
    assert reaches(level, threshold) == expected


async def log_both(request: ClientRequest) -> Any:
    request.log("info", "fine")
    request.log("error", {"a": 1}, "disk")
    return {}


async def nothing(request: ClientRequest) -> Any:
    return {}


FINE = notification("notifications/message", level="info", data="fine")
BROKEN = notification("notifications/message", level="error", logger="disk", data={"a": 1})


async def test_a_legacy_client_sets_the_level_of_its_log_messages():
    talk = Talk(service({"m": log_both, "logging/setLevel": nothing}), legacy_client())
    talk.ask("m")
    assert await talk.heard(3) == [FINE, BROKEN, result(1)]
    talk.ask("logging/setLevel", level="error")
    talk.ask("m", 2)
    assert await talk.heard(3) == [result(1), BROKEN, result(2)]
    talk.ask("logging/setLevel", level="loud")
    (refused,) = await talk.heard()
    assert refused["error"]["code"] == -32602


async def test_a_modern_request_sets_the_level_of_its_log_messages():
    talk = Talk(service({"m": log_both}))
    talk.ask("m", **meta())
    talk.ask("m", 2, **meta(**{"io.modelcontextprotocol/logLevel": "error"}))
    talk.ask("m", 3, **meta(**{"io.modelcontextprotocol/logLevel": "loud"}))
    refused, *sent = await talk.heard(4)
    assert (refused["id"], refused["error"]["code"]) == (3, -32602)
    assert sent == [complete(1), BROKEN, complete(2)]


async def test_a_handler_for_a_notification_is_called():
    heard: list[Any] = []

    async def changed(request: ClientRequest) -> Any:
        heard.append(request.params)
        raise ValueError("reported, and no reply")

    reported: list[str] = []
    served = service(
        {"notifications/roots/list_changed": changed}, report=lambda method, _: reported.append(method)
    )
    talk = Talk(served, legacy_client())
    talk.tell("notifications/roots/list_changed", a=1)
    talk.tell("notifications/unknown")
    assert await talk.settled() == []
    assert (heard, reported) == ([{"a": 1}], ["notifications/roots/list_changed"])


# --- asking the client ---

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("declared", "method", "params", "missing"),
    [
        ({}, "roots/list", {}, {"roots": {}}),
        ({"roots": {}}, "roots/list", {}, None),
        ({}, "elicitation/create", {}, {"elicitation": {}}),
        ({"elicitation": {}}, "elicitation/create", {}, None),
        ({"elicitation": {}}, "elicitation/create", {"mode": "form"}, None),
        ({"elicitation": {}}, "elicitation/create", {"mode": "url"}, {"elicitation": {"url": {}}}),
        ({"elicitation": {"url": {}}}, "elicitation/create", {}, {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "url"}, None),
        ({"elicitation": None}, "elicitation/create", {}, {"elicitation": {}}),
        ({"sampling": {}}, "sampling/createMessage", {}, None),
        ({"sampling": {}}, "sampling/createMessage", {"tools": []}, {"sampling": {"tools": {}}}),
        ({"sampling": {"tools": {}}}, "sampling/createMessage", {"toolChoice": {}}, None),
    ],
)
def test_which_capability_a_client_needs_for_each_request(
    declared: dict[str, Any], method: str, params: dict[str, Any], missing: dict[str, Any] | None
):
    assert missing_capability(declared, method, params) == missing


async def ask_twice(request: ClientRequest) -> Any:
    first = await request.ask("elicitation/create", FORM)
    second = await request.ask("roots/list")
    return {"answers": [first, second]}


ABLE = {"elicitation": {}, "roots": {}}
ANSWERS = ({"action": "decline"}, {"roots": []})


async def test_a_legacy_client_is_sent_requests():
    talk = Talk(service({"tools/call": ask_twice}), legacy_client(capabilities=ABLE))
    talk.ask("tools/call", 1)
    assert await talk.heard() == [{"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": FORM}]
    talk.say(result(1, **ANSWERS[0]))
    assert await talk.heard() == [{"jsonrpc": "2.0", "id": 2, "method": "roots/list"}]
    talk.say(result(7, roots=["of another request"]), result(2, **ANSWERS[1]))
    assert await talk.heard() == [result(1, answers=list(ANSWERS))]


async def test_a_modern_client_gets_input_required_results():
    talk = Talk(service({"tools/call": ask_twice}))
    able = meta(**{CAPABILITIES: ABLE})
    asked = {"resultType": "input_required"}
    talk.ask("tools/call", 1, **able)
    first = {"1": {"method": "elicitation/create", "params": FORM}}
    assert await talk.heard() == [result(1, **asked, inputRequests=first)]

    talk.ask("tools/call", 2, inputResponses={"1": ANSWERS[0]}, **able)
    (reply,) = await talk.heard()
    state = reply["result"].pop("requestState")
    assert reply == result(2, **asked, inputRequests={"2": {"method": "roots/list"}})

    talk.ask("tools/call", 3, inputResponses={"2": ANSWERS[1]}, requestState=state, **able)
    assert await talk.heard() == [complete(3, answers=list(ANSWERS))]


@pytest.mark.parametrize(
    "carried", [{"requestState": "?"}, {"requestState": 1}, {"requestState": "[]"}, {"inputResponses": []}]
)
async def test_input_that_cannot_be_read_is_invalid(carried: dict[str, Any]):
    talk = Talk(service({"tools/call": ask_twice}))
    talk.ask("tools/call", **carried, **meta(**{CAPABILITIES: ABLE}))
    (reply,) = await talk.heard()
    assert reply["error"]["code"] == -32602


@pytest.mark.parametrize(("era", "code"), [("modern", -32021), ("legacy", -32600)])
async def test_a_client_without_the_capability_is_sent_no_request(era: str, code: int):
    talk = Talk(service({"tools/call": ask_twice}), legacy_client())
    talk.ask("tools/call", **(meta() if era == "modern" else {}))
    message = "the client has not declared what elicitation/create requires"
    data = {"requiredCapabilities": {"elicitation": {}}}
    assert await talk.heard() == [error(1, code, message, data=data)]


async def test_input_is_not_required_where_the_protocol_does_not_allow_it():
    talk = Talk(service({"tools/list": ask_twice}))
    talk.ask("tools/list", **meta(**{CAPABILITIES: ABLE}))
    assert await talk.heard() == [error(1, -32603, "tools/list of revision 2026-07-28 has no input_required")]


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (error(1, -1, "the user said no"), RemoteError),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1}}, MalformedReply),
        (b'{"jsonrpc":"2.0","id":1,"result":{"a":}}', MalformedReply),
    ],
)
async def test_an_error_answer_of_the_client_is_raised_in_the_handler(answer: Any, raised: type[Exception]):
    async def handler(request: ClientRequest) -> Any:
        try:
            await request.ask("roots/list")
        except raised:
            return {"caught": True}

    talk = Talk(service({"tools/call": handler}), legacy_client(capabilities=ABLE))
    talk.ask("tools/call", 5)
    await talk.heard()
    talk.say(answer)
    assert await talk.heard() == [result(5, caught=True)]


async def test_a_request_to_the_client_ends_with_the_request_it_belongs_to():
    talk = Talk(service({"tools/call": ask_twice}), legacy_client(capabilities=ABLE))
    talk.ask("tools/call", 5)
    await talk.heard()
    talk.tell("notifications/cancelled", requestId=5)
    assert await talk.heard() == [notification("notifications/cancelled", requestId=1)]
    talk.say(result(1, **ANSWERS[0]))
    assert await talk.settled() == []

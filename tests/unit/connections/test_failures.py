"""What the trouble of one message means: the tables."""

import json
from typing import Any

import pytest

from dragoman.connections.failures import (
    TERMINAL_LIMIT,
    Health,
    Verdict,
    connect_error_of,
    error_in,
    error_of,
    is_session_loss,
    names_lost_session,
)
from dragoman.errors import (
    CallError,
    ConnectionLost,
    HttpError,
    MalformedReply,
    MessageTooLarge,
    RemoteError,
    SignInNeeded,
    Unreachable,
)
from dragoman.transports.base import FailureKind, TransportFailure


def body(code: int, message: str = "", **more: Any) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": None, **more, "error": error}).encode()


def status(number: int, content: bytes = b"", **more: Any) -> TransportFailure:
    return TransportFailure("status", f"HTTP {number}", status=number, body=content, **more)


# --- the protocol's own error in a body ---


@pytest.mark.parametrize(
    "content",
    [
        body(-32601, "no"),
        body(-32601, "no", id="d1"),
        b'{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}',
        b' {"error":{"code":-32601,"message":"no"},"jsonrpc":"2.0","id":7}\n',
    ],
)
def test_a_protocol_error_is_read_with_any_id(content: bytes):
    found = error_in(content)

    assert found is not None
    assert (found.code, found.message) == (-32601, "no")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>not found</html>",
        b"null",
        b"[]",
        b"7",
        b"{}",
        b'{"error":"not found"}',
        b'{"error":{"message":"no code"}}',
        b'{"error":{"code":"7","message":"a code that is no number"}}',
        b'{"detail":"Method Not Allowed"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"error":{"code":-32601,"mess',
        b"\xff\xfe",
    ],
)
def test_anything_else_is_not_a_protocol_error(content: bytes):
    assert error_in(content) is None


# --- what the caller is told ---


@pytest.mark.requirement("AUT-4")
@pytest.mark.parametrize(
    ("challenge", "hint"),
    [
        (
            'Bearer error="insufficient_scope", scope="read admin"',
            "It asks for the scopes read admin. To grant them, sign in again: `dragoman mcp login box`.",
        ),
        (
            'Bearer error="insufficient_scope"',
            "It asks for more scopes. To grant them, sign in again: `dragoman mcp login box`.",
        ),
        ('Bearer error="invalid_token"', "as before"),
        (None, "as before"),
    ],
)
def test_an_insufficient_scope_error_names_the_scopes(challenge: str | None, hint: str):
    error = error_of("box", status(403, challenge=challenge, hint="as before"), 1000)
    assert error.hint == hint


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (TransportFailure("unreachable", "refused", may_have_run=False), ConnectionLost),
        (TransportFailure("broken", "reset"), ConnectionLost),
        (TransportFailure("timeout", "no answer in time"), ConnectionLost),
        (TransportFailure("malformed", "html"), MalformedReply),
        (TransportFailure("too-large", "much"), MessageTooLarge),
        (status(400), HttpError),
        (status(401), HttpError),
        (status(403), HttpError),
        (status(404), HttpError),
        (status(429), HttpError),
        (status(500), HttpError),
        (status(503), HttpError),
        (status(307), HttpError),
        (status(400, body(-32602)), RemoteError),
        (status(404, body(-32601)), RemoteError),
        (status(500, body(-32603)), RemoteError),
        # Who asks, or how often, is HTTP's matter whatever the body says.
        (status(401, body(-32001)), HttpError),
        (status(403, body(-32001)), HttpError),
        (status(429, body(-32000)), HttpError),
        # The session is gone.
        (status(404, in_session=True), ConnectionLost),
        (status(404, body(-32001, "Session not found"), in_session=True), ConnectionLost),
        (status(400, body(-32000, "no valid session"), in_session=True), ConnectionLost),
    ],
    ids=repr,
)
def test_which_error_a_caller_gets(trouble: TransportFailure, kind: type[CallError]):
    error = error_of("box", trouble, 1000)

    assert type(error) is kind
    assert error.server == "box"


@pytest.mark.parametrize("may_have_run", [True, False])
def test_the_error_states_whether_the_call_may_have_run(may_have_run: bool):
    lost = error_of("box", TransportFailure("broken", "reset", may_have_run, hint="do"), 1)
    refused = error_of("box", status(503, may_have_run=may_have_run, hint="do"), 1)

    assert isinstance(lost, ConnectionLost)
    assert isinstance(refused, HttpError)
    assert (lost.may_have_run, lost.hint) == (may_have_run, "do")
    assert (refused.may_have_run, refused.hint) == (may_have_run, "do")


def test_the_http_status_and_body_are_part_of_the_error():
    trouble = status(429, retry_after_seconds=7.0, challenge="Bearer", may_have_run=False)
    error = error_of("box", trouble, 1)

    assert isinstance(error, HttpError)
    assert (error.status, error.retry_after_seconds, error.challenge) == (429, 7.0, "Bearer")


def test_the_protocol_error_is_part_of_the_error():
    content = b'{"jsonrpc":"2.0","error":{"code":-32602,"message":"bad","data":{"k":1}}}'
    error = error_of("box", status(400, content), 1)

    assert isinstance(error, RemoteError)
    assert (error.remote_code, error.remote_message, error.remote_data) == (-32602, "bad", {"k": 1})


def test_a_lost_session_states_that_the_call_did_not_run():
    error = error_of("box", status(404, in_session=True, may_have_run=False), 1)

    assert isinstance(error, ConnectionLost)
    assert not error.may_have_run


@pytest.mark.parametrize(
    ("error", "kind", "number"),
    [
        (HttpError("box", 401, "HTTP 401", may_have_run=False, challenge="Bearer"), SignInNeeded, 401),
        (HttpError("box", 403, "HTTP 403", may_have_run=False), SignInNeeded, 403),
        (HttpError("box", 503, "HTTP 503", may_have_run=False, retry_after_seconds=7), Unreachable, 503),
        (HttpError("box", 429, "HTTP 429", may_have_run=False, retry_after_seconds=7), Unreachable, 429),
        (ConnectionLost("box", "refused", may_have_run=False, hint="do"), Unreachable, None),
        (MalformedReply("box", "html"), Unreachable, None),
    ],
    ids=lambda value: str(value),
)
def test_the_same_failures_while_connecting(error: CallError, kind: type[Any], number: int | None):
    found = connect_error_of(error, "box")

    assert type(found) is kind
    assert (found.server, found.phase, found.status, found.hint) == ("box", "connect", number, error.hint)
    if isinstance(found, SignInNeeded):
        assert isinstance(error, HttpError)
        assert found.challenge == error.challenge
    if isinstance(found, Unreachable) and isinstance(error, HttpError):
        assert found.retry_after_seconds == 7


# --- whether the session is gone ---

LOSSES = [
    ("404 without a body", status(404, in_session=True)),
    ("404 with a page for people", status(404, b"<html>Not Found</html>", in_session=True)),
    ("404 with some other JSON", status(404, b'{"detail":"Not Found"}', in_session=True)),
    ("404 as the TypeScript SDK says it", status(404, body(-32001, "Session not found"), in_session=True)),
    (
        "404 as the Python SDK says it",
        status(404, body(-32600, "Session has been terminated"), in_session=True),
    ),
    ("404 with -32000", status(404, body(-32000, "whatever"), in_session=True)),
    (
        "400 no valid session",
        status(400, body(-32000, "Bad Request: No valid session ID provided"), in_session=True),
    ),
    (
        "400 not initialized",
        status(400, body(-32000, "Bad Request: Server not initialized"), in_session=True),
    ),
    ("400 session not found", status(400, body(-32001, "session abc not found"), in_session=True)),
    ("400 session expired", status(400, body(-32600, "Your SESSION has EXPIRED"), in_session=True)),
    ("400 unknown session", status(400, body(-32600, "unknown session"), in_session=True)),
]
NEAR_MISSES = [
    ("404 without a session", status(404)),
    ("404 session not found, but there was none", status(404, body(-32001, "Session not found"))),
    ("404 unknown method", status(404, body(-32601, "Method not found"), in_session=True)),
    ("404 unknown resource", status(404, body(-32002, "no such session resource"), in_session=True)),
    ("404 bad params", status(404, body(-32602, "session not found"), in_session=True)),
    ("400 without a body", status(400, in_session=True)),
    ("400 with a page for people", status(400, b"session not found", in_session=True)),
    ("400 without words of session", status(400, body(-32000, "bad request"), in_session=True)),
    ("400 another code", status(400, body(-32602, "session not found"), in_session=True)),
    (
        "400 a session in other words",
        status(400, body(-32000, "the session limit is reached"), in_session=True),
    ),
    ("400 not in a session", status(400, body(-32000, "No valid session ID provided"))),
    ("200 of all things", status(200, body(-32001, "Session not found"), in_session=True)),
    ("401", status(401, body(-32001, "Session not found"), in_session=True)),
    ("410", status(410, body(-32001, "Session not found"), in_session=True)),
    ("500", status(500, body(-32001, "Session not found"), in_session=True)),
    ("no status", TransportFailure("broken", "session not found", in_session=True)),
]


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize("trouble", [pytest.param(row[1], id=row[0]) for row in LOSSES])
def test_a_lost_session_is_detected_in_each_known_form(trouble: TransportFailure):
    assert is_session_loss(trouble)
    assert Health().after(trouble) == "session"


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize("trouble", [pytest.param(row[1], id=row[0]) for row in NEAR_MISSES])
def test_an_error_that_resembles_a_lost_session_is_not_one(trouble: TransportFailure):
    assert not is_session_loss(trouble)
    assert Health().after(trouble) != "session"


@pytest.mark.parametrize("code", [-32000, -32001, -32600])
@pytest.mark.parametrize(
    "message",
    [
        "Session not found",
        "session 'abc' not found",
        "Session expired",
        "Session terminated",
        "session id is invalid",
        "No valid session",
        "Invalid session",
        "missing session id",
        "Server not initialized",
    ],
)
def test_messages_that_report_a_lost_session(code: int, message: str):
    assert names_lost_session(code, message)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32601, "Session not found"),
        (-32602, "invalid session"),
        (0, "session expired"),
        (-32000, ""),
        (-32000, "Session"),
        (-32000, "the file was not found"),
        (-32000, "session started. The file was not found"),
        (-32000, "obsession"),
        (-32000, "x" * 10_000 + " session not found"),
    ],
)
def test_messages_that_do_not_report_a_lost_session(code: int, message: str):
    assert not names_lost_session(code, message)


def test_a_very_long_message_is_classified_quickly():
    assert not names_lost_session(-32000, "session " * 1_000_000)


# --- what becomes of the link ---


@pytest.mark.requirement("LIF-6")
@pytest.mark.parametrize(
    ("trouble", "verdict"),
    [
        (TransportFailure("unreachable", "refused"), "renew"),
        (TransportFailure("unreachable", "refused", is_long_lived=True), "renew"),
        (TransportFailure("broken", "reset"), "keep"),
        (TransportFailure("timeout", "slow"), "keep"),
        (TransportFailure("malformed", "html"), "keep"),
        (TransportFailure("too-large", "much"), "keep"),
        (status(400), "keep"),
        (status(401), "unauthorized"),
        (status(401, challenge="Bearer"), "unauthorized"),
        (status(401, in_session=True), "unauthorized"),
        (status(403), "keep"),
        (status(403, challenge='Bearer error="insufficient_scope"'), "keep"),
        (status(404), "keep"),
        (status(404, in_session=True), "session"),
        (status(429), "keep"),
        (status(500), "keep"),
        (status(503), "keep"),
    ],
    ids=repr,
)
def test_which_failures_end_a_healthy_connection(trouble: TransportFailure, verdict: Verdict):
    assert Health().after(trouble) == verdict


TERMINAL: list[FailureKind] = ["broken", "timeout"]


@pytest.mark.requirement("LIF-6")
@pytest.mark.parametrize("kind", TERMINAL)
def test_the_third_consecutive_terminal_error_causes_a_reconnect(kind: FailureKind):
    health = Health()

    assert [health.after(TransportFailure(kind, "")) for _ in range(TERMINAL_LIMIT)] == [
        "keep",
        "keep",
        "renew",
    ]


@pytest.mark.requirement("LIF-6")
def test_terminal_errors_of_different_kinds_are_counted_together():
    health = Health()

    assert [health.after(TransportFailure(kind, "")) for kind in ("broken", "timeout", "broken")][
        -1
    ] == "renew"


@pytest.mark.requirement("LIF-6")
def test_a_success_in_between_resets_the_count():
    health = Health()
    for _ in range(5):
        assert health.after(TransportFailure("broken", "")) == "keep"
        assert health.after(TransportFailure("timeout", "")) == "keep"
        health.good()


@pytest.mark.requirement("LIF-6")
@pytest.mark.parametrize(
    "harmless",
    [
        TransportFailure("malformed", ""),
        TransportFailure("too-large", ""),
        status(500),
        status(429),
        status(403),
    ],
    ids=repr,
)
def test_an_error_that_is_not_terminal_neither_counts_nor_resets_the_count(harmless: TransportFailure):
    health = Health()
    verdicts: list[str] = []
    for _ in range(TERMINAL_LIMIT):
        verdicts += [health.after(harmless), health.after(TransportFailure("broken", ""))]

    assert verdicts == ["keep"] * 5 + ["renew"]


def test_the_end_of_a_notification_stream_is_never_terminal():
    health = Health()

    assert {health.after(TransportFailure("broken", "", is_long_lived=True)) for _ in range(10)} == {"keep"}

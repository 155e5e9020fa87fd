"""Every exception: a place in the tree, a code of its own, a sentence that names the server."""

import inspect
import pickle
import re

import pytest

from dragoman import errors
from dragoman.errors import (
    CallError,
    CallTimeout,
    CommandNotFound,
    ConfigError,
    ConfigFileError,
    ConnectError,
    ConnectionLost,
    ConnectTimeout,
    DragomanError,
    HandshakeFailed,
    HostClosed,
    HostNotOpen,
    HttpError,
    InputUnavailable,
    InvalidArguments,
    MalformedReply,
    MessageTooLarge,
    MissingPackage,
    ModelNotConfigured,
    ModelUnavailable,
    NotConnected,
    NotFound,
    PermissionRefused,
    PolicyRefused,
    RemoteError,
    SignInFailed,
    SignInNeeded,
    StartFailed,
    StoreUnavailable,
    TaskCancelled,
    TaskNotFound,
    UnknownTool,
    Unreachable,
    UrlNotOpened,
    WrongLoop,
)

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
]


def tree_in_docstring() -> dict[str, str | None]:
    """Class → parent, as drawn at the top of the file."""
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for line in inspect.getdoc(errors).splitlines():  # type: ignore[union-attr]
        if found := re.match(r"    ([ │├└─]*)([A-Z]\w+)(?:$|  )", line):
            depth = len(found[1]) // 4
            above = [*above[:depth], found[2]]
            parents[found[2]] = above[depth - 1] if depth else None
    return parents


def test_the_tree_in_the_docstring_lists_exactly_the_classes():
    real = {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}
    real["DragomanError"] = None  # type: ignore[assignment]

    assert tree_in_docstring() == real


# Programs match on these: they never change.
CODES = {
    DragomanError: "error",
    ConfigError: "config",
    ConfigFileError: "config-file",
    MissingPackage: "missing-package",
    ModelNotConfigured: "model-not-configured",
    ModelUnavailable: "model-unavailable",
    StoreUnavailable: "store-unavailable",
    PolicyRefused: "policy",
    HostClosed: "host-closed",
    HostNotOpen: "host-not-open",
    InputUnavailable: "input-unavailable",
    UrlNotOpened: "url-not-opened",
    WrongLoop: "wrong-loop",
    ConnectError: "connect",
    CommandNotFound: "command-not-found",
    StartFailed: "start-failed",
    ConnectTimeout: "connect-timeout",
    HandshakeFailed: "handshake",
    Unreachable: "unreachable",
    SignInNeeded: "sign-in",
    SignInFailed: "sign-in-failed",
    CallError: "call",
    UnknownTool: "unknown-tool",
    InvalidArguments: "invalid-arguments",
    PermissionRefused: "refused",
    RemoteError: "remote-error",
    NotConnected: "not-connected",
    NotFound: "not-found",
    ConnectionLost: "connection-lost",
    CallTimeout: "timeout",
    HttpError: "http-status",
    MalformedReply: "malformed-reply",
    MessageTooLarge: "message-too-large",
    TaskNotFound: "task-not-found",
    TaskCancelled: "task-cancelled",
}


def test_every_class_has_its_own_stable_code():
    assert {kind: kind.code for kind in CLASSES} == CODES
    assert len(set(CODES.values())) == len(CODES)
    assert all("code" in vars(kind) for kind in CLASSES)


HOSTILE = "\x1b[2J\u202e\x07"

SENTENCES = [
    (ConnectError("box", "start", "x" + HOSTILE), "box: start failed: x"),
    (
        CommandNotFound("box", "start", "there is no program 'x'"),
        "box: start failed: there is no program 'x'",
    ),
    (StartFailed("box", "start", "it exited" + HOSTILE), "box: start failed: it exited"),
    (
        ConnectTimeout("box", "handshake", "no answer within 30 s"),
        "box: handshake failed: no answer within 30 s",
    ),
    (HandshakeFailed("box", "handshake", "it speaks " + HOSTILE), "box: handshake failed: it speaks "),
    (Unreachable("box", "connect", "refused" + HOSTILE), "box: connect failed: refused"),
    (SignInNeeded("box", "connect", "HTTP 401" + HOSTILE), "box: connect failed: HTTP 401"),
    (
        TaskNotFound("box", "task_1" + HOSTILE, "its server forgot it"),
        "there is no task task_1",
    ),
    (TaskCancelled("box", "mcp__box__t", "why" + HOSTILE), "box has cancelled the task of mcp__box__t: why"),
    (RemoteError("box", -32601, "no such method" + HOSTILE), "box answered error -32601: no such method"),
    (
        HttpError("box", 500, "HTTP 500" + HOSTILE, may_have_run=True),
        "box refused: HTTP 500",
    ),
    (NotConnected("box", "failed", "it exited"), "box has failed: it exited"),
    (NotConnected("box", "failed", "box: it exited"), "box has failed: it exited"),
    (NotConnected("box", "pending", None), "box is pending"),
    (
        ConnectionLost("box", "it exited" + HOSTILE, may_have_run=True),
        "the connection to box was lost: it exited",
    ),
    (CallTimeout("box", "tools/call", 1.5), "box did not answer tools/call within 1.5 s"),
    (
        InputUnavailable("box", "sampling/x" + HOSTILE, "no" + HOSTILE),
        "box asks for input (sampling/x",
    ),
    (MalformedReply("box", "invalid" + HOSTILE), "malformed reply from box: invalid"),
    (MessageTooLarge("box", 1000), "the reply from box is larger than the limit of 1000 bytes"),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES, ids=lambda value: getattr(value, "code", ""))
def test_the_message_names_the_server_and_contains_no_terminal_sequences(
    error: ConnectError | CallError, sentence: str
):
    assert str(error).startswith(sentence)
    assert error.server == "box"
    assert "box" in str(error)
    assert not any(character in str(error) for character in HOSTILE if not character.isprintable())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UnknownTool("x" + HOSTILE), "there is no tool named x"),
        (
            InvalidArguments("box", "mcp__box__open", ("n: " + HOSTILE, "m: two")),
            "the arguments do not fit mcp__box__open: n: ",
        ),
        (
            PermissionRefused("box", "mcp__box__open", "denied by the person"),
            "mcp__box__open was not allowed: denied by the person",
        ),
        (
            NotConnected("box", "failed", "last output on stderr: " + HOSTILE),
            "box has failed: last output on stderr: ",
        ),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
def test_a_message_about_a_tool_or_a_state_contains_no_terminal_sequences(error: CallError, sentence: str):
    assert str(error).startswith(sentence)
    assert not any(character in str(error) for character in HOSTILE if not character.isprintable())


def test_the_details_are_attributes():
    failed = StartFailed(
        "box", "start", "it exited", hint="do", exit_code=3, stderr_tail="last\n\x1b[2Jwords"
    )
    assert (failed.phase, failed.cause, failed.hint, failed.exit_code) == ("start", "it exited", "do", 3)
    assert failed.stderr_tail == "last\n\\x1b[2Jwords"

    remote = RemoteError("box", 7, "m", {"k": 1})
    assert (remote.remote_code, remote.remote_message, remote.remote_data) == (7, "m", {"k": 1})

    assert CallTimeout("box", "tools/call", 1.5).timeout_seconds == 1.5
    assert MessageTooLarge("box", 9).limit_bytes == 9
    assert InvalidArguments("box", "t", ("a", "b")).problems == ("a", "b")


@pytest.mark.parametrize(("may_have_run", "words"), [(True, "may have run"), (False, "was not sent")])
def test_a_lost_connection_states_whether_the_request_may_have_run(may_have_run: bool, words: str):
    assert words in str(ConnectionLost("box", "gone", may_have_run=may_have_run))
    refused = ConnectionLost("box", "its session has ended", may_have_run=False, was_refused=True)
    assert str(refused).endswith("the request was refused and has not run")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            HttpError("box", 500, "HTTP 500", may_have_run=True),
            "box refused: HTTP 500; the request may have run",
        ),
        (
            HttpError("box", 429, "HTTP 429", may_have_run=False, retry_after_seconds=2.5),
            "box refused: HTTP 429; the request was refused and has not run. It asks to wait 2.5 s",
        ),
        (
            HttpError("box", 429, "HTTP 429", may_have_run=False, retry_after_seconds=0.0),
            "box refused: HTTP 429; the request was refused and has not run",
        ),
        (
            HttpError("box", 429, "HTTP 429", may_have_run=False, retry_after_seconds=31_536_000.0),
            "box refused: HTTP 429; the request was refused and has not run. It asks to wait 31536000 s",
        ),
        (
            HttpError("box", 401, "its headersHelper failed", may_have_run=False, was_sent=False),
            "box was not called: its headersHelper failed; the request was not sent",
        ),
    ],
    ids=str,
)
def test_a_status_states_whether_the_request_may_have_run_and_how_long_to_wait(
    error: HttpError, sentence: str
):
    assert str(error) == sentence


def test_the_http_details_are_attributes():
    error = HttpError(
        "box", 401, "HTTP 401", may_have_run=False, retry_after_seconds=3, challenge="Bearer", hint="sign in"
    )
    assert (error.status, error.retry_after_seconds, error.challenge, error.hint) == (
        401,
        3,
        "Bearer",
        "sign in",
    )
    assert ConnectError("box", "connect", "x", status=503).status == 503
    assert Unreachable("box", "connect", "x").retry_after_seconds is None
    assert SignInNeeded("box", "connect", "x").challenge is None


def test_an_unknown_tool_hints_at_near_names():
    assert UnknownTool("x", near=("a", "b")).hint == "Did you mean a, b?"
    assert UnknownTool("x").hint


@pytest.mark.parametrize(
    "error",
    [
        ConnectError("box", "start", "x" * 1_000_000),
        RemoteError("box", 1, "x" * 1_000_000),
        MalformedReply("box", "x" * 1_000_000),
        InputUnavailable("box", "x" * 1_000_000, "x" * 1_000_000),
        ConnectionLost("box", "x" * 1_000_000, may_have_run=True),
        HttpError("box", 500, "x" * 1_000_000, may_have_run=True),
        UnknownTool("x" * 1_000_000),
        InvalidArguments("box", "x" * 1_000_000, ("x" * 1_000_000,)),
    ],
    ids=lambda error: error.code,
)
def test_a_message_has_a_limited_length(error: DragomanError):
    assert len(str(error)) < 3000


TRAVELLERS = [
    ConfigError("x", hint="h"),
    StartFailed("box", "start", "gone", hint="h", exit_code=3, stderr_tail="words"),
    RemoteError("box", 7, "m", {"k": 1}),
    HttpError("box", 429, "HTTP 429", may_have_run=False, retry_after_seconds=3, challenge="Bearer"),
    Unreachable("box", "connect", "refused", status=503),
    SignInNeeded("box", "connect", "HTTP 401", status=401),
    CallTimeout("box", "tools/call", 1.5),
    ConnectionLost("box", "gone", may_have_run=True),
    UnknownTool("x", near=("y",)),
    HostClosed(),
    HostNotOpen(),
    WrongLoop(),
]


@pytest.mark.parametrize("error", TRAVELLERS, ids=lambda error: error.code)
def test_an_error_can_be_pickled(error: DragomanError):
    # Programs that call tools from a pool of workers meet our errors this way.
    arrived = pickle.loads(pickle.dumps(error))

    assert type(arrived) is type(error)
    assert (str(arrived), arrived.hint, vars(arrived)) == (str(error), error.hint, vars(error))

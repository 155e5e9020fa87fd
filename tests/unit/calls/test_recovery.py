"""What follows when a call came to nothing: the whole table."""

from typing import Any

import pytest

from dragoman.calls.recovery import UNSENT_LIMIT, Reaction, is_harmless, react
from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    HttpError,
    MalformedReply,
    MessageTooLarge,
    NotConnected,
    RemoteError,
)

pytestmark = pytest.mark.requirement("LIF-7")

UNSENT = ConnectionLost("box", "gone", may_have_run=False)
REFUSED = ConnectionLost("box", "its session has ended", may_have_run=False, was_refused=True)
OWN_MISMATCH = RemoteError("box", -32020, "a word of the server's own, after it ran")
IN_DOUBT = ConnectionLost("box", "gone", may_have_run=True)
MISMATCH = RemoteError("box", -32020, "header mismatch", status=400)


@pytest.mark.parametrize(
    ("error", "attempt", "harmless", "reaction"),
    [
        # It never reached the server: again, a few times, whatever the tool says of itself.
        (UNSENT, 1, False, "repeat"),
        (UNSENT, 1, True, "repeat"),
        (UNSENT, 2, False, "repeat"),
        (UNSENT, UNSENT_LIMIT, False, "give up"),
        (UNSENT, UNSENT_LIMIT, True, "give up"),
        # It may have run: again once, and only if that does no harm.
        (IN_DOUBT, 1, False, "give up"),
        (IN_DOUBT, 1, True, "repeat"),
        (IN_DOUBT, 2, True, "give up"),
        (IN_DOUBT, 2, False, "give up"),
        # The server would not take it, because its session is gone: again once.
        (REFUSED, 1, False, "repeat"),
        (REFUSED, 2, False, "give up"),
        # A code that is the server's own to use: it may have run.
        (OWN_MISMATCH, 1, False, "give up"),
        # The definition changed: the server ran nothing.
        (MISMATCH, 1, False, "list again and repeat"),
        (MISMATCH, 1, True, "list again and repeat"),
        (MISMATCH, 2, False, "give up"),
        (MISMATCH, 2, True, "give up"),
    ],
    ids=str,
)
def test_the_table(error: CallError, attempt: int, harmless: bool, reaction: Reaction):
    assert react(error, attempt=attempt, harmless=harmless) == reaction


@pytest.mark.parametrize(
    "error",
    [
        RemoteError("box", -32603, "internal error"),
        RemoteError("box", -32021, "missing capability"),
        RemoteError("box", -32022, "unsupported revision"),
        RemoteError("box", -32601, "no such method"),
        RemoteError("box", 0, ""),
        CallTimeout("box", "tools/call", 1),
        CallTimeout("box", "tools/call", 1, may_have_run=False),
        HttpError("box", 500, "HTTP 500", may_have_run=True),
        HttpError("box", 503, "HTTP 503", may_have_run=False, retry_after_seconds=1),
        HttpError("box", 429, "HTTP 429", may_have_run=False),
        MalformedReply("box", "html"),
        MessageTooLarge("box", 1),
        NotConnected("box", "failed", "gone"),
    ],
    ids=str,
)
@pytest.mark.parametrize("harmless", [True, False])
@pytest.mark.parametrize("attempt", [1, 2])
def test_everything_else_is_told_to_whoever_called(error: CallError, harmless: bool, attempt: int):
    assert react(error, attempt=attempt, harmless=harmless) == "give up"


@pytest.mark.parametrize("harmless", [True, False])
@pytest.mark.parametrize("error", [UNSENT, IN_DOUBT, MISMATCH], ids=str)
def test_nothing_is_repeated_for_ever(error: CallError, harmless: bool):
    assert {react(error, attempt=attempt, harmless=harmless) for attempt in range(3, 100)} == {"give up"}


@pytest.mark.parametrize(
    ("annotations", "harmless"),
    [
        ({"readOnlyHint": True}, True),
        ({"idempotentHint": True}, True),
        ({"readOnlyHint": False, "idempotentHint": True}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, True),
        ({}, False),
        ({"readOnlyHint": False}, False),
        ({"destructiveHint": False}, False),
        ({"readOnlyHint": "true"}, False),
        ({"readOnlyHint": 1}, False),
        ({"readOnlyHint": None}, False),
        ({"readonlyhint": True}, False),
    ],
    ids=str,
)
def test_a_tool_is_harmless_only_if_it_says_so_in_so_many_words(annotations: Any, harmless: bool):
    assert is_harmless(annotations) is harmless

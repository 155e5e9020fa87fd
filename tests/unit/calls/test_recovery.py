"""What follows when a call came to nothing: the whole table."""

from typing import Any

import pytest

from dragoman.calls.recovery import (
    BUSY_LIMIT,
    GIVE_UP,
    LONGEST_WAIT_SECONDS,
    TABLE,
    UNSENT_LIMIT,
    Reaction,
    Step,
    react,
)
from dragoman.catalog.annotations import hints_of
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
    ("error", "attempt", "retry_safe", "reaction"),
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
        (MISMATCH, 1, False, "list again and retry"),
        (MISMATCH, 1, True, "list again and retry"),
        (MISMATCH, 2, False, "give up"),
        (MISMATCH, 2, True, "give up"),
    ],
    ids=str,
)
def test_the_decision_for_each_failure(error: CallError, attempt: int, retry_safe: bool, reaction: Reaction):
    assert react(error, attempt=attempt, retry_safe=retry_safe).reaction == reaction


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
        RemoteError("box", -32700, "parse error"),
        RemoteError("box", -32600, "invalid request"),
        RemoteError("box", -32602, "invalid params"),
        RemoteError("box", -32603, "internal error", status=500),
        HttpError("box", 400, "HTTP 400", may_have_run=False),
        HttpError("box", 401, "HTTP 401", may_have_run=False),
        HttpError("box", 403, "HTTP 403", may_have_run=False, challenge='Bearer error="insufficient_scope"'),
        HttpError("box", 404, "HTTP 404", may_have_run=False, retry_after_seconds=1),
        HttpError("box", 429, "HTTP 429", may_have_run=False, retry_after_seconds=301),
        MalformedReply("box", "html"),
        MessageTooLarge("box", 1),
        NotConnected("box", "failed", "gone"),
    ],
    ids=str,
)
@pytest.mark.parametrize("retry_safe", [True, False])
@pytest.mark.parametrize("attempt", [1, 2])
def test_any_other_failure_is_raised_to_the_caller(error: CallError, retry_safe: bool, attempt: int):
    assert react(error, attempt=attempt, retry_safe=retry_safe) == GIVE_UP


def _status(status: int, after: float | None = None) -> HttpError:
    return HttpError("box", status, f"HTTP {status}", may_have_run=status >= 500, retry_after_seconds=after)


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize(
    ("error", "attempt", "retry_safe", "step"),
    [
        # It would not take the call now: again after a while, as long as that is soon.
        (_status(429), 1, False, Step("wait and retry", 1)),
        (_status(429), 2, False, Step("wait and retry", 2)),
        (_status(429), 3, False, Step("wait and retry", 4)),
        (_status(429), BUSY_LIMIT, False, GIVE_UP),
        (_status(429, 0), 1, False, Step("wait and retry", 0.1)),
        (_status(429, 7.5), 3, True, Step("wait and retry", 7.5)),
        (_status(429, LONGEST_WAIT_SECONDS), 1, False, Step("wait and retry", LONGEST_WAIT_SECONDS)),
        (_status(429, LONGEST_WAIT_SECONDS + 1), 1, False, GIVE_UP),
        # It broke: it may have run, so only what does no harm.
        *[(_status(status), 1, False, GIVE_UP) for status in (500, 501, 502, 503, 504, 599)],
        *[(_status(status), 1, True, Step("wait and retry", 1)) for status in (500, 502, 503, 504)],
        (_status(503, 3), 1, True, Step("wait and retry", 3)),
        (_status(503, 3), 1, False, GIVE_UP),
        (_status(500), 2, True, Step("wait and retry", 2)),
        (_status(500), 3, True, GIVE_UP),
        # A person has to go somewhere first, three times at most.
        *[
            (
                RemoteError("box", -32042, "visit"),
                attempt,
                False,
                Step("ask the person to open the URL and retry"),
            )
            for attempt in (1, 2, 3)
        ],
        (RemoteError("box", -32042, "visit"), 4, True, GIVE_UP),
    ],
    ids=str,
)
def test_the_wait_before_a_retry_to_a_busy_or_broken_server(
    error: CallError, attempt: int, retry_safe: bool, step: Step
):
    assert react(error, attempt=attempt, retry_safe=retry_safe) == step


@pytest.mark.requirement("CAL-5")
def test_every_failure_has_one_row():
    assert TABLE[-1].fits(CallError("box", "whatever"))
    assert all((row.reaction == "give up") == (row.attempts == 1) for row in TABLE)
    assert all(row.then for row in TABLE)


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize("attempt", [1, 2, 9])
def test_only_retry_safe_calls_that_may_have_run_are_retried(attempt: int):
    for error in map(_status, range(400, 600)):
        assert not error.may_have_run or react(error, attempt=attempt, retry_safe=False) == GIVE_UP


@pytest.mark.parametrize("retry_safe", [True, False])
@pytest.mark.parametrize(
    "error", [UNSENT, IN_DOUBT, MISMATCH, HttpError("box", 429, "", may_have_run=False)], ids=str
)
def test_retries_are_limited(error: CallError, retry_safe: bool):
    steps = {react(error, attempt=attempt, retry_safe=retry_safe) for attempt in range(4, 100)}

    assert steps == {GIVE_UP}


@pytest.mark.parametrize(
    ("annotations", "retry_safe"),
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
def test_a_tool_is_retry_safe_only_if_it_declares_so(annotations: Any, retry_safe: bool):
    assert hints_of(annotations).idempotent is retry_safe

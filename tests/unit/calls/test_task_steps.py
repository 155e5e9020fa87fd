"""What a task's state means, when it is polled, and what a failure means: the tables."""

from typing import Any

import pytest

from dragoman.calls.task_steps import (
    FAILURE_LIMIT,
    after_failure,
    next_step,
    offers_tasks,
    poll_wait,
    takes_task,
    unanswered,
    wait_before_moving,
    wanted_ttl_ms,
)
from dragoman.errors import CallError, CallTimeout, ConnectionLost, HttpError, MalformedReply, RemoteError
from dragoman.protocol import Era
from dragoman.wire.client.tasks import TaskState

pytestmark = pytest.mark.requirement("CAL-8")


@pytest.mark.parametrize(
    ("status", "legacy", "modern"),
    [
        ("working", "wait", "wait"),
        ("input_required", "wait", "answer input"),
        ("completed", "fetch the result", "read the result"),
        ("failed", "fetch the result", "read the error"),
        ("cancelled", "cancelled", "cancelled"),
    ],
)
def test_the_next_step_follows_from_the_state(status: Any, legacy: str, modern: str):
    state = TaskState(task_id="t", status=status)
    assert (next_step(state, "legacy"), next_step(state, "modern")) == (legacy, modern)


@pytest.mark.parametrize(
    ("asked", "polls", "expected"),
    [
        (0.0, 0, 0.1),
        (0.001, 7, 0.1),
        (2.0, 0, 2.0),
        (59.0, 100, 59.0),
        (10.0**9, 0, 60.0),
        (None, 0, 0.2),
        (None, 1, 0.3),
        (None, 50, 5.0),
        (None, 10**9, 5.0),
    ],
)
def test_the_wait_between_polls_is_the_servers_within_bounds(
    asked: float | None, polls: int, expected: float
):
    assert poll_wait(asked, polls) == pytest.approx(expected)


LOST = ConnectionLost("s", "gone", may_have_run=True)


def http(status: int) -> HttpError:
    return HttpError("s", status, "no", may_have_run=True)


@pytest.mark.parametrize(
    ("error", "failures", "expected"),
    [
        (LOST, 1, "poll again"),
        (LOST, FAILURE_LIMIT - 1, "poll again"),
        (LOST, FAILURE_LIMIT, "give up"),
        (CallTimeout("s", "tasks/get", 1.0), 1, "poll again"),
        (CallTimeout("s", "tasks/get", 1.0), FAILURE_LIMIT, "give up"),
        (http(429), 1, "poll again"),
        (http(503), 1, "poll again"),
        (http(503), FAILURE_LIMIT, "give up"),
        (http(401), 1, "give up"),
        (http(404), 1, "give up"),
        (RemoteError("s", -32602, "no such task"), 1, "not found"),
        (RemoteError("s", -32601, "what?"), 1, "give up"),
        (RemoteError("s", -32603, "oops"), 1, "give up"),
        (MalformedReply("s", "odd"), 1, "give up"),
    ],
    ids=str,
)
def test_the_next_step_after_a_failure(error: CallError, failures: int, expected: str):
    assert after_failure(error, failures) == expected


CALLS = {"tasks": {"requests": {"tools": {"call": {}}}}}


@pytest.mark.parametrize(
    ("support", "era", "revision", "capabilities", "expected"),
    [
        ("required", "legacy", "2025-11-25", CALLS, True),
        ("optional", "legacy", "2025-11-25", CALLS, True),
        ("forbidden", "legacy", "2025-11-25", CALLS, False),
        (None, "legacy", "2025-11-25", CALLS, False),
        ("odd", "legacy", "2025-11-25", CALLS, False),
        ("required", "legacy", "2025-06-18", CALLS, False),
        ("required", "modern", "2026-07-28", CALLS, False),
        ("required", "legacy", "2025-11-25", {}, False),
        ("required", "legacy", "2025-11-25", {"tasks": {"list": {}}}, False),
        ("required", "legacy", "2025-11-25", {"tasks": {"requests": {"tools": {"call": False}}}}, False),
        ("required", "legacy", "2025-11-25", {"tasks": ["requests"]}, False),
    ],
)
def test_a_task_is_requested_where_tool_revision_and_server_support_it(
    support: str | None, era: Era, revision: str, capabilities: dict[str, Any], expected: bool
):
    assert takes_task(support, era, revision, capabilities) is expected


def test_parts_of_the_capability():
    assert offers_tasks({"tasks": {"cancel": {}}}, "cancel")
    assert not offers_tasks({"tasks": {"cancel": {}}}, "list")
    assert not offers_tasks({}, "cancel")


@pytest.mark.parametrize(
    ("seconds", "expected"), [(1.0, 3_600_000), (7200.0, 7_200_000), (100_000.0, 86_400_000)]
)
def test_the_ttl_of_a_task_follows_the_calls_time_limit(seconds: float, expected: int):
    assert wanted_ttl_ms(seconds) == expected


def test_each_input_request_is_answered_once():
    assert unanswered(["a", "b"], set()) == ["a", "b"]
    assert unanswered(["a", "b"], {"a"}) == ["b"]
    assert unanswered([], {"a"}) == []


EXTENSION = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.mark.parametrize(
    ("after", "capabilities", "expected"),
    [
        (0.0, {}, 0.0),
        (-1.0, {}, 0.0),
        (3.0, {"extensions": {"other": {}}}, 3.0),
        (3.0, {"extensions": 5}, 3.0),
        (0.0, EXTENSION, 5.0),
        (0.0, {"tasks": {}}, 5.0),
        (9.0, {"tasks": {}, **EXTENSION}, 9.0),
    ],
)
def test_a_server_with_tasks_is_given_time_to_create_one(
    after: float, capabilities: dict[str, Any], expected: float
):
    assert wait_before_moving(after, capabilities) == expected

"""Tasks as servers describe them, in both wire forms; and what no task is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.protocol import Era
from dragoman.wire.client.tasks import ID_LIMIT, TaskState, read_created, read_state
from dragoman.wire.codec import Unreadable

pytestmark = pytest.mark.requirement("CAL-8")

LEGACY = {"taskId": "t1", "status": "working", "statusMessage": "on it", "ttl": 60000, "pollInterval": 2000}
MODERN = {
    "taskId": "t1",
    "status": "working",
    "statusMessage": "on it",
    "ttlMs": 60000,
    "pollIntervalMs": 2000,
}
STATE = TaskState(task_id="t1", message="on it", ttl_seconds=60.0, poll_seconds=2.0)


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def test_a_created_task_in_both_forms():
    assert read_created(raw({"task": LEGACY}), "legacy") == STATE
    assert read_created(raw({"resultType": "task", **MODERN}), "modern") == STATE
    assert read_created(raw({"content": []}), "legacy") is None


def test_each_era_reads_its_own_names_for_times():
    assert read_state(raw(MODERN), "legacy", "t1").ttl_seconds is None
    assert read_state(raw(LEGACY), "modern", "t1").poll_seconds is None


def test_results_errors_and_input_requests_are_in_states_of_the_modern_era_only():
    more = {"result": {"content": []}, "error": {"code": 1}, "inputRequests": {"k": {"method": "m"}}}
    modern = read_state(raw({**MODERN, **more}), "modern", "t1")
    assert json.loads(bytes(modern.result)) == more["result"]
    assert json.loads(bytes(modern.error)) == more["error"]
    assert json.loads(bytes(modern.input_requests)) == more["inputRequests"]
    legacy = read_state(raw({**LEGACY, **more}), "legacy", "t1")
    assert (bytes(legacy.result), bytes(legacy.error), bytes(legacy.input_requests)) == (b"", b"", b"")


@pytest.mark.parametrize(
    "changes",
    [
        {"taskId": ""},
        {"taskId": "x" * (ID_LIMIT + 1)},
        {"taskId": "a\nb"},
        {"taskId": "\x1b[2J"},
        {"taskId": "t\u202e"},
        {"taskId": 5},
        {"taskId": None},
        {"status": "done"},
        {"status": 1},
        {"statusMessage": ["x"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_value_that_is_not_a_task_is_unreadable(changes: dict[str, Any], era: Era):
    with pytest.raises(Unreadable):
        read_state(raw({**LEGACY, **MODERN, **changes}), era, changes.get("taskId", "t1"))


def test_a_state_of_another_task_is_unreadable():
    with pytest.raises(Unreadable, match="another task"):
        read_state(raw(LEGACY), "legacy", "t2")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (0, 0.0),
        (1500, 1.5),
        (10**12, 10**9),
        (None, None),
        (-5, None),
        ("5", None),
        ([1], None),
        ({"a": [1] * 100}, None),
        (10**60, None),
        (1e308, 1e305),
    ],
    ids=str,
)
def test_times_out_of_range_are_left_out(said: Any, expected: float | None):
    assert read_state(raw({**LEGACY, "pollInterval": said}), "legacy", "t1").poll_seconds == expected


KEYS = st.sampled_from(["task", "taskId", "status", "ttl", "x"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner)))
def test_any_value_is_a_task_state_or_unreadable(value: Any):
    for era in ("legacy", "modern"):
        try:
            read_created(raw(value), era)
        except Unreadable:
            continue

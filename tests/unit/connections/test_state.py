"""The whole transition table, and the rules for times and attempts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.connections.state import (
    AuthNeeded,
    Disable,
    Failed,
    Hold,
    Lost,
    Opened,
    Ready,
    Rest,
    ServerState,
    Signal,
    Start,
    next_state,
)

BEFORE = {
    "pending": ServerState("pending", "connecting", "old", since=5, attempt=2),
    "reconnecting": ServerState("pending", "reconnecting", "old", since=5, attempt=2),
    "connected": ServerState("connected", None, None, since=5),
    "failed": ServerState("failed", None, "old", since=5, attempt=2),
    "needs-auth": ServerState("needs-auth", None, "old", since=5),
    "disabled": ServerState("disabled", None, "old", since=5),
}
SIGNALS: dict[str, Signal] = {
    "start": Start(),
    "opened": Opened(),
    "ready": Ready(),
    "failed": Failed("new"),
    "lost": Lost("new"),
    "auth needed": AuthNeeded("new"),
    "disable": Disable("new"),
    "hold": Hold("new"),
    "rest": Rest("new"),
}
SAME = "as it was"

# status / phase / reason after the signal
TABLE: dict[str, dict[str, str]] = {
    "start": {
        "pending": "pending/connecting/old",
        "reconnecting": "pending/reconnecting/old",
        "connected": "pending/connecting/-",
        "failed": "pending/connecting/old",
        "needs-auth": "pending/connecting/old",
        "disabled": "pending/connecting/old",
    },
    "opened": {
        "pending": "pending/handshaking/old",
        "reconnecting": SAME,
        "connected": SAME,
        "failed": SAME,
        "needs-auth": SAME,
        "disabled": SAME,
    },
    "ready": {
        "pending": "connected/-/-",
        "reconnecting": "connected/-/-",
        "connected": SAME,
        "failed": SAME,
        "needs-auth": SAME,
        "disabled": SAME,
    },
    "failed": {
        "pending": "failed/-/new",
        "reconnecting": "failed/-/new",
        "connected": SAME,
        "failed": SAME,
        "needs-auth": SAME,
        "disabled": SAME,
    },
    "lost": {
        "pending": "pending/reconnecting/new",
        "reconnecting": "pending/reconnecting/new",
        "connected": "pending/reconnecting/new",
        "failed": SAME,
        "needs-auth": SAME,
        "disabled": SAME,
    },
    "auth needed": {
        "pending": "needs-auth/-/new",
        "reconnecting": "needs-auth/-/new",
        "connected": "needs-auth/-/new",
        "failed": SAME,
        "needs-auth": SAME,
        "disabled": SAME,
    },
    "disable": {
        "pending": "disabled/-/new",
        "reconnecting": "disabled/-/new",
        "connected": "disabled/-/new",
        "failed": "disabled/-/new",
        "needs-auth": "disabled/-/new",
        "disabled": "disabled/-/new",
    },
    "hold": {
        "pending": "pending/-/new",
        "reconnecting": "pending/-/new",
        "connected": "pending/-/new",
        "failed": "pending/-/new",
        "needs-auth": "pending/-/new",
        "disabled": "pending/-/new",
    },
    "rest": {
        "pending": "pending/-/new",
        "reconnecting": "pending/-/new",
        "connected": "pending/-/new",
        "failed": "pending/-/new",
        "needs-auth": "pending/-/new",
        "disabled": "pending/-/new",
    },
}


def in_short(state: ServerState) -> str:
    return "/".join(part or "-" for part in (state.status, state.phase, state.reason))


@pytest.mark.parametrize(
    ("signal", "before", "after"),
    [(signal, before, after) for signal, row in TABLE.items() for before, after in row.items()],
)
def test_the_next_state_for_each_signal(signal: str, before: str, after: str):
    state = next_state(BEFORE[before], SIGNALS[signal], now=9)

    if after is SAME:
        assert state is BEFORE[before]
    else:
        assert in_short(state) == after


def test_the_table_has_a_row_for_every_signal_and_a_column_for_every_state():
    assert TABLE.keys() == SIGNALS.keys()
    assert all(row.keys() == BEFORE.keys() for row in TABLE.values())
    assert {type(signal) for signal in SIGNALS.values()} == set(Signal.__args__)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("signal", SIGNALS)
def test_since_changes_exactly_when_the_status_changes(signal: str, before: str):
    state = next_state(BEFORE[before], SIGNALS[signal], now=9)

    assert state.since == (5 if state.status == BEFORE[before].status else 9)


@pytest.mark.parametrize(
    ("before", "signal", "attempt"),
    [
        (ServerState(), Start(), 1),
        (ServerState("failed", attempt=3), Start(), 4),
        (ServerState("pending", "handshaking", attempt=3), Start(), 4),
        (ServerState("connected"), Start(), 1),
        (ServerState("pending", "connecting", attempt=3), Opened(), 3),
        (ServerState("pending", "handshaking", attempt=3), Failed("x"), 3),
        (ServerState("pending", "handshaking", attempt=3), Ready(), 0),
        (ServerState("connected"), Lost("x"), 0),
        (ServerState("pending", "reconnecting", attempt=1), Lost("x", 2), 2),
        (ServerState("failed", attempt=3), Disable(), 0),
    ],
    ids=str,
)
def test_attempts_counts_the_tries_since_the_last_connection(
    before: ServerState, signal: Signal, attempt: int
):
    assert next_state(before, signal, now=9).attempt == attempt


def test_the_states_from_start_to_loss_and_reconnect():
    state = ServerState(since=1)
    lived: list[str] = []
    for now, signal in enumerate(
        [
            Start(),
            Opened(),
            Ready(),
            Lost("it exited"),
            Start(),
            Opened(),
            Ready(),
            Disable(),
        ]
    ):
        state = next_state(state, signal, now)
        lived.append(in_short(state))

    assert lived == [
        "pending/connecting/-",
        "pending/handshaking/-",
        "connected/-/-",
        "pending/reconnecting/it exited",
        "pending/reconnecting/it exited",
        "pending/reconnecting/it exited",
        "connected/-/-",
        "disabled/-/disabled by the person",
    ]


@given(st.lists(st.sampled_from(list(SIGNALS.values()))))
def test_only_pending_has_a_phase_and_every_failure_has_a_reason(signals: list[Signal]):
    state = ServerState()
    for now, signal in enumerate(signals):
        state = next_state(state, signal, now)

        assert state.phase is None or state.status == "pending"
        assert state.is_settled == (state.status != "pending")
        assert state.reason or state.status in ("pending", "connected")
        assert state.status != "connected" or (state.reason, state.attempt) == (None, 0)

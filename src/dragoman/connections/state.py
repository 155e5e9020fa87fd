"""The states of a server and the table of transitions between them.

`next_state` is a pure function: it returns the state that follows from a signal. No other code sets a status.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct, structs

Status = Literal["pending", "connected", "failed", "needs-auth", "disabled"]
Phase = Literal["connecting", "handshaking", "reconnecting"]


class ServerState(Struct, frozen=True):
    status: Status = "pending"
    phase: Phase | None = None
    reason: str | None = None
    since: float = 0.0
    """When this status began (seconds since the epoch)."""
    attempt: int = 0
    """The number of the attempt to connect; 0 before the first."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way that would change the status by itself."""
        return self.status != "pending"


# Signals: what can happen to a connection.


class Start(Struct, frozen=True):
    """Connecting begins, or begins again."""


class Opened(Struct, frozen=True):
    """The transport is up; the handshake begins."""


class Ready(Struct, frozen=True):
    """The handshake is done."""


class Failed(Struct, frozen=True):
    """Connecting ended in an error."""

    reason: str


class Lost(Struct, frozen=True):
    """The link is lost, and another attempt will be made."""

    reason: str
    attempt: int = 0
    """The number of attempts since it was last connected."""


class AuthNeeded(Struct, frozen=True):
    """The server requires authentication."""

    reason: str


class Disable(Struct, frozen=True):
    """It is not to be connected."""

    reason: str = "disabled by the person"


class Rest(Struct, frozen=True):
    """It is not needed now, and starts when it is."""

    reason: str = "starts at first use"


class Hold(Struct, frozen=True):
    """It is not to be started before a person has approved it."""

    reason: str


Signal = Start | Opened | Ready | Failed | Lost | AuthNeeded | Disable | Hold | Rest


CLOSED: Final = "the connection was closed"
"""The reason of a state that a host's end brings about."""


def in_words(state: ServerState) -> tuple[str, str]:
    """For the server's log: how severe the state is, and the state."""
    if state.reason == CLOSED:
        return "info", "closed"
    name = state.phase or state.status
    attempt = f" (attempt {state.attempt})" if state.attempt > 1 else ""
    level = {"failed": "error", "needs-auth": "warning"}.get(state.status, "info")
    if state.phase == "reconnecting":
        level = "warning"
    reason = state.reason if state.status != "pending" or state.phase in (None, "reconnecting") else None
    return level, f"{name}{attempt}: {reason}" if reason else f"{name}{attempt}"


def next_state(state: ServerState, signal: Signal, now: float) -> ServerState:
    """The state after a signal. A signal that does not concern the state leaves it as it is."""
    changed = _transition(state, signal)
    if changed is state:
        return state
    since = state.since if changed.status == state.status else now
    return structs.replace(changed, since=since)


def _transition(state: ServerState, signal: Signal) -> ServerState:
    match signal, state.status:
        case Disable(reason), _:
            return ServerState("disabled", None, reason)
        case Hold(reason) | Rest(reason), _:
            return ServerState("pending", None, reason)
        case Start(), _:
            if state.phase == "reconnecting":
                return structs.replace(state, attempt=state.attempt + 1)
            return ServerState("pending", "connecting", state.reason, attempt=state.attempt + 1)
        case Opened(), "pending" if state.phase != "reconnecting":
            return structs.replace(state, phase="handshaking")
        case Ready(), "pending":
            return ServerState("connected")
        case Failed(reason), "pending":
            return ServerState("failed", None, reason, attempt=state.attempt)
        case AuthNeeded(reason), "pending" | "connected":
            return ServerState("needs-auth", None, reason)
        case Lost(reason, attempt), "pending" | "connected":
            return ServerState("pending", "reconnecting", reason, attempt=attempt)
        case _:
            return state

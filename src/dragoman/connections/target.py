"""Value objects that describe a connection: what all connections of a host share, and how one server is
reached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from dragoman import events
from dragoman.clock import Clock
from dragoman.connections.connect_limiter import ConnectLimiter
from dragoman.connections.eras import EraMemory
from dragoman.connections.factory import MakeTransport
from dragoman.connections.reachability import TcpProbe
from dragoman.settings import Settings
from dragoman.transport_types import Place
from dragoman.version import VERSION


class ConnectionContext(Struct, frozen=True):
    """What the connections of a host share."""

    settings: Settings
    clock: Clock
    bus: events.EventBus
    eras: EraMemory
    client_info: Mapping[str, Any]
    limiter: ConnectLimiter
    extensions: Mapping[str, Any] = {}
    """Extensions of the protocol that the program supports, with their settings; declared to every server."""

    @staticmethod
    def of(
        settings: Settings, clock: Clock, bus: events.EventBus, extensions: Mapping[str, Any] | None = None
    ) -> ConnectionContext:
        """The context of a new host."""
        limiter = ConnectLimiter(
            settings["MCP_SERVER_CONNECTION_BATCH_SIZE"], settings["MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE"]
        )
        client_info = {"name": "dragoman", "version": VERSION}
        return ConnectionContext(
            settings, clock, bus, EraMemory(clock), client_info, limiter, extensions or {}
        )


class ConnectionTarget(Struct, frozen=True, kw_only=True):
    """How one server is reached, and when its connection is open."""

    make_transport: MakeTransport
    older_transport: MakeTransport | None = None
    """The transport before Streamable HTTP, for a server that was never updated."""
    protocol: str
    fingerprint: str | None = None
    """Names the entry in the memory of eras; None: nothing is remembered of it."""
    place: Place = "in-process"
    probe: TcpProbe | None = None
    """Finds out cheaply whether an unreachable server is back."""
    wait_for_sign_in: Callable[[], Awaitable[None]] | None = None
    """Returns when a sign-in was made outside this host, while the server waits for one."""
    idle_seconds: float | None = None
    """It is stopped when not used for that long, and started at the next use."""
    starts_on_use: bool = False
    """It is not started before its first use."""

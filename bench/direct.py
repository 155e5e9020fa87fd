"""A session without a host, for benchmarks and tests: no permissions, no hooks, no catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from msgspec import Raw

from dragoman import events
from dragoman.clock import SystemClock
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from dragoman.connections.connection import Connection, ConnectionHandlers
from dragoman.connections.factory import TransportDependencies, older_maker, transport_maker
from dragoman.connections.server_requests import ServerRequests
from dragoman.connections.session import Session
from dragoman.connections.target import ConnectionContext, ConnectionTarget
from dragoman.errors import ConfigError, PolicyRefused


class DirectSession:
    """An open session and the connection that owns it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        session = connection.session()
        assert session is not None
        self.session = session

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout_seconds: float = 60.0
    ) -> Raw:
        return await self.session.request(method, params, timeout_seconds=timeout_seconds)

    async def close(self) -> None:
        await self._connection.close()

    async def __aenter__(self) -> DirectSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def open_session(
    entry: Mapping[str, Any], *, settings: Mapping[str, int] | None = None
) -> DirectSession:
    """Connects and negotiates; raises ConnectError if that fails."""
    configuration = load(Sources.here(only_given=True, overrides=settings))
    server = configuration.admit("server", entry)
    if server.eligibility == "refused":
        raise PolicyRefused("server", server.reason or "")
    if server.config is None:
        raise server.error or ConfigError("the entry cannot be used")
    config, values = server.config, configuration.settings
    dependencies = TransportDependencies()
    context = ConnectionContext.of(values, SystemClock(), events.EventBus())
    connection = Connection(
        "server",
        ConnectionTarget(
            make_transport=transport_maker("server", config, values, dependencies),
            older_transport=older_maker("server", config, values, dependencies),
            protocol=config.protocol,
            fingerprint=config.fingerprint(),
            place=config.transport.place,
        ),
        context,
        ConnectionHandlers(_nothing_to_prepare, lambda _session, _method, _params: None, ServerRequests()),
    )
    connection.start()
    try:
        await connection.settled()
        if connection.error is not None:
            raise connection.error
        return DirectSession(connection)
    except BaseException:
        await connection.close()
        raise


async def _nothing_to_prepare(session: Session, seconds: float) -> None:
    return

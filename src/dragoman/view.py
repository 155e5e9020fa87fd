"""`ServerView`: one server as a person or program sees it, at one moment. The host gives a newer one each
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dragoman.catalog.pool import Catalog
from dragoman.config.merge import ConfiguredServer
from dragoman.config.model import UNUSABLE, ServerConfig
from dragoman.connections.connection import Connection
from dragoman.connections.factory import HELPED_TYPES
from dragoman.errors import DragomanError
from dragoman.names import ServerName
from dragoman.protocol import Era, era_of


class ServerView(Struct, frozen=True, kw_only=True):
    """How one server is at this moment."""

    name: str
    scope: str
    """Where it comes from: user, project, dynamic …"""
    source: str
    """The file, or who gave it."""
    transport: str
    status: str
    phase: str | None
    reason: str | None
    """Why it is not connected, in words."""
    since: float
    """When this status began, in seconds since the epoch."""
    attempt: int
    """Which try to connect this is."""
    error: DragomanError | None
    """The failure as an exception, with a hint and, for a process, its last output on stderr."""
    protocol_version: str | None
    server_info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    instructions: str | None
    tool_count: int
    problems: tuple[str, ...]
    """What is not as it should be without being fatal: unknown fields, tools that were left out."""
    pid: int | None
    exit_code: int | None
    stderr_tail: str
    ignored: Mapping[str, int]
    """How many messages were dropped, by kind."""
    noise: tuple[str, ...] = ()
    """The newest lines of output that were not messages; `noise_count` says how many there were."""

    @property
    def era(self) -> Era | None:
        """`legacy` or `modern`; None before the handshake."""
        return era_of(self.protocol_version) if self.protocol_version else None

    @property
    def noise_count(self) -> int:
        """How many lines of its output were no messages."""
        return self.ignored.get("noise", 0)

    @staticmethod
    def of(connection: Connection, server: ConfiguredServer, catalog: Catalog) -> ServerView:
        config = server.config or ServerConfig(type=UNUSABLE)
        state, details, said = connection.state, connection.details, connection.introduction
        name = ServerName(connection.name)
        info = said.server_info if said else None
        return ServerView(
            name=name,
            scope=server.scope,
            source=server.source,
            transport=config.type,
            status=state.status,
            phase=state.phase,
            reason=state.reason,
            since=state.since,
            attempt=state.attempt,
            error=connection.error,
            protocol_version=said.revision if said else None,
            server_info={"name": info.name, "version": info.version, "title": info.title} if info else {},
            capabilities=said.capabilities if said else {},
            instructions=said.instructions if said else None,
            tool_count=catalog.count(name),
            problems=(
                *server.warnings,
                *_not_used(config),
                *catalog.problems(name),
            ),
            pid=details.pid,
            exit_code=details.exit_code,
            stderr_tail=details.stderr_tail,
            ignored=dict(connection.ignored),
            noise=connection.noise,
        )


def _not_used(config: ServerConfig) -> tuple[str, ...]:
    found: list[str] = []
    if config.headers_helper is not None and config.type not in HELPED_TYPES:
        found.append(f"headersHelper is not used by servers of type {config.type}")
    if config.oauth is not None:
        found.append("oauth is not used by this version")
    return tuple(found)

"""`ServerStatus`: the state of one server at one moment, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from dragoman.catalog.catalog import Catalog
from dragoman.config.model import ServerConfig
from dragoman.connections.factory import uses_oauth
from dragoman.content.redact import Redactor
from dragoman.errors import DragomanError, reworded
from dragoman.protocol import Era, era_of

if TYPE_CHECKING:
    from dragoman.servers.server import Server


STATUS_MARKS: Final[Mapping[str, str]] = {
    "connected": "✓",
    "pending": "◐",
    "failed": "✗",
    "needs-auth": "!",
    "disabled": "–",
}
"""How lists of servers show each status, in every front end."""


class ServerStatus(Struct, frozen=True, kw_only=True):
    """The state of one server at one moment."""

    name: str
    scope: str
    """Where it comes from: user, project, dynamic …"""
    source: str
    """The file, or the program that passed it."""
    transport: str
    status: str
    phase: str | None
    reason: str | None
    """Why it is not connected, in words."""
    since: float
    """When this status began, in seconds since the epoch."""
    attempt: int
    """The number of the attempt to connect."""
    error: DragomanError | None
    """The failure as an exception, with a hint and, for a process, its last output on stderr."""
    protocol_version: str | None
    server_info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    instructions: str | None
    tool_count: int
    problems: tuple[str, ...]
    """Problems that are not fatal: unknown fields, tools that were left out."""
    pid: int | None
    exit_code: int | None
    stderr_tail: str
    ignored: Mapping[str, int]
    """How many messages were dropped, by kind."""
    unparsed_output: tuple[str, ...] = ()
    """The newest lines of output that were not messages; `unparsed_lines` is their number."""

    @property
    def era(self) -> Era | None:
        """`legacy` or `modern`; None before the handshake."""
        return era_of(self.protocol_version) if self.protocol_version else None

    @property
    def own_reason(self) -> str:
        """The reason without the server's name, for texts that begin with it; empty if there is none."""
        return (self.reason or "").removeprefix(f"{self.name}: ")

    @property
    def unparsed_lines(self) -> int:
        """How many lines of its output were no messages."""
        return self.ignored.get("unparsed", 0)


def status_of(server: Server, catalog: Catalog) -> ServerStatus:
    """The status now, without secrets of the server's entry."""
    entry, connection, config = server.entry, server.connection, server.config
    state, details, handshake = connection.state, connection.details, connection.handshake_result
    info = handshake.server_info if handshake else None
    status = ServerStatus(
        name=entry.name,
        scope=entry.scope,
        source=entry.source,
        transport=config.type,
        status=state.status,
        phase=state.phase,
        reason=state.reason,
        since=state.since,
        attempt=state.attempt,
        error=connection.error,
        protocol_version=handshake.revision if handshake else None,
        server_info={"name": info.name, "version": info.version, "title": info.title} if info else {},
        capabilities=handshake.capabilities if handshake else {},
        instructions=handshake.instructions if handshake else None,
        tool_count=catalog.count(server.tools),
        problems=(*entry.warnings, *_not_used(config), *catalog.problems(server.tools)),
        pid=details.pid,
        exit_code=details.exit_code,
        stderr_tail=details.stderr_tail,
        ignored=dict(connection.ignored),
        unparsed_output=connection.unparsed_output,
    )
    return _redacted(status, server.redactor) if server.redactor else status


def _redacted(status: ServerStatus, redact: Redactor) -> ServerStatus:
    return structs.replace(
        status,
        reason=status.reason and redact.text(status.reason),
        instructions=status.instructions and redact.text(status.instructions),
        server_info=redact.value(status.server_info),
        capabilities=redact.value(status.capabilities),
        problems=tuple(map(redact.text, status.problems)),
        stderr_tail=redact.text(status.stderr_tail),
        unparsed_output=tuple(redact.text(line) for line in status.unparsed_output),
        error=status.error and reworded(status.error, redact.text),
    )


def being_replaced(status: ServerStatus) -> ServerStatus:
    """The status while the connection of the old entry is being closed."""
    return structs.replace(
        status,
        status="pending",
        phase="connecting",
        reason="its configuration has changed: it is being replaced",
        error=None,
        tool_count=0,
        pid=None,
    )


def _not_used(config: ServerConfig) -> tuple[str, ...]:
    found: list[str] = []
    if config.headers_helper is not None and config.transport.credentials != "helper":
        found.append(f"headersHelper is not used by servers of type {config.type}")
    if config.oauth is not None and not uses_oauth(config):
        found.append("oauth is not used: the entry has other credentials, or its type takes none")
    return tuple(found)

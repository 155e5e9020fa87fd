"""The table of transport types: what an entry's `type` may be, and what follows from it.

Configuration, its JSON Schema, policy, the command line and the making of transports read this table; none of
them compares names of types. A type in the table needs a maker in `connections/factory.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

Place = Literal["local", "remote", "in-process"]
"""A process on this machine that the host starts, something that is reached by a URL, or neither."""
Identity = Literal["command", "url", "name"]
"""The field of an entry that identifies the server; `name`: only the server's name does."""
TransportKind = Literal["stdio", "http", "sse", "ws", "control", "in-process"]
"""The implementation in `transports/` that is used."""

_WEB: Final = ("https", "http")
_WEBSOCKET: Final = ("wss", "ws")


class TransportType(Struct, frozen=True, kw_only=True):
    name: str
    place: Place
    identity: Identity
    """The kind of policy rule that names such a server."""
    kind: TransportKind | None
    """None: there is no transport for this type."""
    is_identity_required: bool = False
    """Whether an entry must have the field that `identity` names."""
    schemes: tuple[str, ...] = ()
    """The schemes of its URL; the preferred one first."""
    credentials: Literal["helper", "bearer"] | None = None
    """Where authentication headers come from: the entry's `headersHelper`, or the embedding program."""
    editor_url: str | None = None
    """For servers of editors: the address of a server whose entry has no URL, without the port, which is
    found when it is connected."""
    older: str | None = None
    """The transport that is tried next if a server does not support this one."""
    aliases: tuple[str, ...] = ()
    """Other names of the type in configuration files."""
    is_in_files: bool = True
    """Whether an entry of a file may have this type."""

    @property
    def starts_command(self) -> bool:
        return self.identity == "command"

    @property
    def is_editor(self) -> bool:
        return self.editor_url is not None


IN_PROCESS: Final = "in-process"
"""The type of servers that were handed over as objects."""
UNUSABLE: Final = "unusable"
"""The type of an entry that could not be understood."""

_ROWS: Final = (
    TransportType(
        name="stdio",
        place="local",
        identity="command",
        kind="stdio",
        is_identity_required=True,
    ),
    TransportType(
        name="http",
        place="remote",
        identity="url",
        kind="http",
        is_identity_required=True,
        schemes=_WEB,
        credentials="helper",
        older="sse",
        aliases=("streamable-http", "streamableHttp", "streamable_http"),
    ),
    TransportType(
        name="sse",
        place="remote",
        identity="url",
        kind="sse",
        is_identity_required=True,
        schemes=_WEB,
        credentials="helper",
    ),
    TransportType(
        name="ws",
        place="remote",
        identity="url",
        kind="ws",
        is_identity_required=True,
        schemes=_WEBSOCKET,
        credentials="helper",
    ),
    TransportType(
        name="sse-ide",
        place="remote",
        identity="url",
        kind="sse",
        schemes=_WEB,
        editor_url="http://127.0.0.1/sse",
    ),
    TransportType(
        name="ws-ide",
        place="remote",
        identity="url",
        kind="ws",
        schemes=_WEBSOCKET,
        editor_url="ws://127.0.0.1/",
    ),
    TransportType(name="sdk", place="in-process", identity="name", kind="control"),
    TransportType(
        name="claudeai-proxy",
        place="remote",
        identity="url",
        kind="http",
        schemes=_WEB,
        credentials="bearer",
    ),
    TransportType(name=IN_PROCESS, place="in-process", identity="name", kind="in-process", is_in_files=False),
    # Nothing is started for it. Where policy has rules about URLs, a name alone does not admit it.
    TransportType(name=UNUSABLE, place="in-process", identity="url", kind=None, is_in_files=False),
)

TRANSPORT_TYPES: Final[Mapping[str, TransportType]] = {row.name: row for row in _ROWS}

IN_FILES: Final = tuple(row.name for row in _ROWS if row.is_in_files)
"""The types an entry of a file may have."""
REMOTE: Final = tuple(row.name for row in _ROWS if row.place == "remote")
SELF_CONTAINED: Final = tuple(row.name for row in _ROWS if row.is_identity_required)
"""The types whose entries contain everything that is needed to reach the server: those that a person adds."""
TYPE_ALIASES: Final = {alias: row.name for row in _ROWS for alias in row.aliases}


def transport_type(name: str) -> TransportType:
    """The row of a type; for an unknown type, the row of an unusable entry."""
    return TRANSPORT_TYPES.get(name, TRANSPORT_TYPES[UNUSABLE])

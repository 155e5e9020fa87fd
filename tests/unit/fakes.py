"""Stand-ins the unit tests share: they record what they are told and answer from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from dragoman.catalog.naming import qualify
from dragoman.catalog.tools import ServerTool
from dragoman.connections.inbound import Refusal
from dragoman.errors import DragomanError
from dragoman.names import ServerName
from dragoman.protocol import METHOD_NOT_FOUND
from dragoman.wire.messages import MessageId, ToolDefinition


class RecordingWaiter:
    """Waits for a reply like an `asyncio.Future`, and remembers every resolution."""

    def __init__(self) -> None:
        self.resolutions: list[bytes | DragomanError] = []

    def done(self) -> bool:
        return bool(self.resolutions)

    def set_result(self, result: Raw) -> None:
        self.resolutions.append(bytes(result))

    def set_exception(self, exception: DragomanError) -> None:
        self.resolutions.append(exception)

    @property
    def outcome(self) -> bytes | DragomanError:
        (only,) = self.resolutions
        return only


class RecordingListener:
    """Hears what a server sends unasked."""

    def __init__(self) -> None:
        self.notifications: list[tuple[str, bytes]] = []
        self.requests: list[tuple[MessageId, str]] = []
        self.faults: list[tuple[str, str]] = []

    def notified(self, method: str, params: Raw) -> None:
        self.notifications.append((method, bytes(params)))

    def asked(self, request_id: MessageId, method: str, params: Raw) -> None:
        self.requests.append((request_id, method))

    def faulted(self, kind: str, sample: str) -> None:
        self.faults.append((kind, sample))


class Nobody:
    """Answers no server's questions, as a host does that declares nothing."""

    async def answer(self, method: str, params: Raw) -> Mapping[str, Any]:
        raise Refusal(METHOD_NOT_FOUND, f"this client does not offer {method}")


def definition(name: str, schema: Mapping[str, Any] | bytes | None = None, **more: Any) -> ToolDefinition:
    raw = schema if isinstance(schema, bytes) else msgspec.json.encode(schema or {"type": "object"})
    return ToolDefinition(name, Raw(raw), **more)


def tool(
    schema: Mapping[str, Any] | bytes | None = None, *, server: str = "box", name: str = "open"
) -> ServerTool:
    return ServerTool(ServerName(server), qualify(server, name), definition(name, schema))

"""The legacy era from the server's side: `initialize`, and the revision that has batches. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from dragoman.protocol import BATCHING_REVISION, UNSUPPORTED_PROTOCOL_VERSION
from dragoman.wire.server.service import Client, Json, RequestError, Service

METHODS: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""Methods that only this era has."""


class InitializeParams(Struct, rename="camel"):
    protocol_version: str
    capabilities: Json = {}
    client_info: Json = {}


def initialize(service: Service, params: InitializeParams) -> tuple[Client, Json]:
    """The client of the connection, and the result. Raises `RequestError` without a legacy revision."""
    ours = service.legacy_revisions
    wanted = params.protocol_version
    if not ours:
        raise unsupported(service, wanted)
    client = Client(
        era="legacy",
        revision=wanted if wanted in ours else ours[0],
        info=params.client_info,
        capabilities=params.capabilities,
        is_initialized=False,
    )
    result: Json = {
        "protocolVersion": client.revision,
        "capabilities": service.capabilities(),
        "serverInfo": service.info,
    }
    return client, {**result, "instructions": service.instructions} if service.instructions else result


def unsupported(service: Service, requested: str) -> RequestError:
    data = {"supported": list(service.revisions), "requested": requested}
    return RequestError(UNSUPPORTED_PROTOCOL_VERSION, "unsupported protocol version", data)


def accepts_batches(client: Client | None) -> bool:
    return client is not None and client.revision == BATCHING_REVISION

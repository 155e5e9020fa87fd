"""The modern era from the server's side: the metadata of requests, `server/discover`, the form of results,
and the part of `subscriptions/listen` that is honoured. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

from msgspec import Meta, Raw, Struct

from dragoman.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOG_LEVELS,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
)
from dragoman.wire.server.legacy import unsupported
from dragoman.wire.server.service import (
    LARGEST_ID,
    Client,
    InputRequired,
    Json,
    RequestError,
    RequestId,
    Result,
    Service,
)

METHODS: Final = frozenset({"server/discover", "subscriptions/listen"})
"""Methods that only this era has."""

_MAY_REQUIRE_INPUT: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
_LISTS: Final = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_CACHEABLE: Final = _LISTS | {"server/discover", "resources/read"}


class RequestMeta(
    Struct,
    rename={
        "protocol_version": META_PROTOCOL_VERSION,
        "client_info": META_CLIENT_INFO,
        "client_capabilities": META_CLIENT_CAPABILITIES,
        "log_level": META_LOG_LEVEL,
        "progress_token": "progressToken",
    },
):
    """The members of `_meta` that the protocol itself uses; in the legacy era only the last."""

    protocol_version: str | None = None
    client_info: Json | None = None
    client_capabilities: Json | None = None
    log_level: str | None = None
    progress_token: str | Annotated[int, Meta(ge=-LARGEST_ID, le=LARGEST_ID)] | None = None


class WantedChanges(Struct, rename="camel"):
    """The changes that a client wants to be notified of."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


class ListenParams(Struct):
    notifications: WantedChanges


def client_of(service: Service, revision: str, meta: RequestMeta) -> Client:
    """The client that sent a request with this metadata. Raises `RequestError`."""
    if revision not in service.modern_revisions:
        raise unsupported(service, revision)
    if meta.client_capabilities is None:
        raise RequestError(INVALID_PARAMS, f"no {META_CLIENT_CAPABILITIES} in _meta")
    if meta.log_level is not None and meta.log_level not in LOG_LEVELS:
        raise RequestError(INVALID_PARAMS, f"{META_LOG_LEVEL} is none of {', '.join(LOG_LEVELS)}")
    return Client(
        era="modern",
        revision=revision,
        info=meta.client_info or {},
        capabilities=meta.client_capabilities,
        log_level=meta.log_level,
    )


def discover(service: Service) -> Json:
    result: Json = {"supportedVersions": list(service.revisions), "capabilities": service.capabilities()}
    return {**result, "instructions": service.instructions} if service.instructions else result


def complete(service: Service, method: str, result: Result) -> Result:
    """The result with the members that this era requires; values set by the handler stay."""
    if isinstance(result, Raw):
        return result
    hints = {"ttlMs": 0, "cacheScope": "private"} if method in _CACHEABLE else {}
    meta = {META_SERVER_INFO: service.info, **cast("Mapping[str, Any]", result.get("_meta") or {})}
    return {"resultType": "complete", **hints, **result, "_meta": meta}


def input_required(client: Client, method: str, needed: InputRequired) -> Json:
    if client.era != "modern" or method not in _MAY_REQUIRE_INPUT:
        raise RequestError(INTERNAL_ERROR, f"{method} of revision {client.revision} has no input_required")
    requests = {"inputRequests": needed.requests} if needed.requests else {}
    state = {"requestState": needed.state} if needed.state is not None else {}
    return {"resultType": "input_required", **requests, **state}


def honoured(service: Service, wanted: WantedChanges) -> Json:
    """The part of the requested changes that the service reports."""
    capabilities = service.capabilities()
    found: Json = {
        f"{kind}ListChanged": True
        for kind in ("tools", "prompts", "resources")
        if getattr(wanted, f"{kind}_list_changed") and capabilities.get(kind, {}).get("listChanged")
    }
    if wanted.resource_subscriptions and capabilities.get("resources", {}).get("subscribe"):
        found["resourceSubscriptions"] = list(dict.fromkeys(wanted.resource_subscriptions))
    return found


def in_subscription(request_id: RequestId, params: Mapping[str, Any]) -> Json:
    """The parameters of a notification that belongs to this `subscriptions/listen`."""
    return {**params, "_meta": {META_SUBSCRIPTION_ID: request_id}}

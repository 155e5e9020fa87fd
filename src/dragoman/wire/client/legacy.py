"""The legacy era: `initialize`, then requests that rely on it (revisions 2024-11-05 to 2025-11-25).

Defines the form of requests in this era, and that servers may send requests and, in one revision, batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.protocol import BATCHING_REVISION, Era, LogLevel
from dragoman.wire.codec import encode_notification, encode_request


class LegacyDriver:
    era: Era = "legacy"
    servers_may_ask = True

    def __init__(
        self, revision: str, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]
    ) -> None:
        self.revision = revision
        self._client_info = client_info
        self._capabilities = capabilities

    @property
    def accepts_batches(self) -> bool:
        return self.revision == BATCHING_REVISION

    def encode(
        self, request_id: int, method: str, params: Mapping[str, Any] | None, wants_progress: bool
    ) -> bytes:
        if wants_progress:
            given: Mapping[str, Any] = (params or {}).get("_meta", {})
            params = {**(params or {}), "_meta": {**given, "progressToken": request_id}}
        return encode_request(request_id, method, params)

    def set_log_level(self, level: LogLevel | None) -> bool:
        """Returns whether requests carry the level. In this era they do not: the level is requested once,
        with `logging/setLevel`."""
        return False

    def headers(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, str]:
        """Returns no headers: in this era none depend on the request. The transport adds those of every
        request."""
        return {}

    def encode_cancel(self, request_id: int, reason: str) -> bytes:
        return encode_notification("notifications/cancelled", {"requestId": request_id, "reason": reason})

    def opening_params(self) -> dict[str, Any]:
        """The parameters of `initialize`."""
        return {
            "protocolVersion": self.revision,
            "capabilities": self._capabilities,
            "clientInfo": self._client_info,
        }

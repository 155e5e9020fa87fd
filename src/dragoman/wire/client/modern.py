"""The modern era: no handshake, every request describes itself (revision 2026-07-28).

Defines the form of requests in this era, and that servers send neither requests nor batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.protocol import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROTOCOL_VERSION,
    TASKS_EXTENSION,
    Era,
    LogLevel,
)
from dragoman.wire.codec import encode_notification, encode_request
from dragoman.wire.mirroring import request_headers

_encode = msgspec.json.Encoder().encode
_REQUEST: Final = b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b,"_meta":%b}}'
"""A request with parameters, whose last brace is left out, and with metadata that is encoded already."""
_ONLY_CAPABILITIES: Final = frozenset({META_CLIENT_CAPABILITIES})
NARROWED_LIMIT: Final = 1000
NARROWED_LIMIT_BYTES: Final = 4096
"""The number, and the size limit, of encoded client capabilities that a gateway caches."""


class ModernDriver:
    era: Era = "modern"
    servers_may_ask = False
    accepts_batches = False

    def __init__(
        self, revision: str, client_info: Mapping[str, Any], capabilities: Mapping[str, Any]
    ) -> None:
        self.revision = revision
        if "roots" in capabilities:  # changes of roots are announced in the legacy era only
            capabilities = {**capabilities, "roots": {}}
        # The same on every request, so it is encoded once.
        self._fixed: dict[str, Any] = {
            META_PROTOCOL_VERSION: revision,
            META_CLIENT_INFO: client_info,
            META_CLIENT_CAPABILITIES: _with_tasks(capabilities),
        }
        self._meta = {key: msgspec.Raw(_encode(value)) for key, value in self._fixed.items()}
        self.set_log_level(None)

    def set_log_level(self, level: LogLevel | None) -> bool:
        """Returns whether requests carry the level. In this era every later request does."""
        self._level = {} if level is None else {META_LOG_LEVEL: level}
        self._encoded_meta = _encode({**self._fixed, **self._level})
        self._encoded_narrowed: dict[bytes, bytes] = {}
        """By the capabilities that a request asks for: the encoded metadata with the capabilities that it
        declares."""
        return True

    def encode(
        self, request_id: int, method: str, params: Mapping[str, Any] | None, wants_progress: bool
    ) -> bytes:
        if params and not wants_progress and "_meta" not in params:
            return _REQUEST % (request_id, _encode(method), _encode(params)[:-1], self._encoded_meta)
        found: object = (params or {}).get("_meta")
        given: Mapping[str, Any] = cast("Any", found) if isinstance(found, Mapping) else {}
        if params and not wants_progress and given.keys() == _ONLY_CAPABILITIES:
            params = {key: value for key, value in params.items() if key != "_meta"}
            meta = self._narrowed_meta(given[META_CLIENT_CAPABILITIES])
            return _REQUEST % (request_id, _encode(method), _encode(params)[:-1], meta)
        # Keys from the caller (a trace context, a related task, a level) are kept; the protocol's own keys
        # take precedence, but a request may declare fewer capabilities.
        merged = {
            **self._level,
            **given,
            **self._meta,
            **({"progressToken": request_id} if wants_progress else {}),
        }
        if META_CLIENT_CAPABILITIES in given:
            merged[META_CLIENT_CAPABILITIES] = self._narrowed(given[META_CLIENT_CAPABILITIES])
        return encode_request(request_id, method, {**(params or {}), "_meta": merged})

    def _narrowed_meta(self, wanted: Mapping[str, Any]) -> bytes:
        """The encoded metadata of a request that declares fewer capabilities. Cached, because a gateway has
        many such requests from few clients."""
        key = _encode(wanted)
        if (known := self._encoded_narrowed.get(key)) is not None:
            return known
        meta = {**self._level, **self._fixed, META_CLIENT_CAPABILITIES: self._narrowed(wanted)}
        encoded = _encode(meta)
        if len(self._encoded_narrowed) < NARROWED_LIMIT and len(key) < NARROWED_LIMIT_BYTES:
            self._encoded_narrowed[key] = encoded
        return encoded

    def _narrowed(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """The capabilities that are both declared and requested; extensions stay."""
        own: Mapping[str, Any] = self._fixed[META_CLIENT_CAPABILITIES]
        found: dict[str, Any] = {name: part for name, part in own.items() if name == "extensions"}
        for name, part in own.items():
            if name in wanted and name != "extensions":
                found[name] = {key: part[key] for key in part if not wanted[name] or key in wanted[name]}
        return found

    def headers(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, str]:
        """The headers in which a request repeats parts of itself, for transports that carry headers."""
        return {"MCP-Protocol-Version": self.revision, **request_headers(method, params)}

    def encode_cancel(self, request_id: int, reason: str) -> bytes:
        return encode_notification("notifications/cancelled", {"requestId": request_id, "reason": reason})


def _with_tasks(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Declares in each request that the answer may be a task: servers decide whether to make one."""
    given: Mapping[str, Any] = capabilities.get("extensions", {})
    return {**capabilities, "extensions": {**given, TASKS_EXTENSION: {}}}

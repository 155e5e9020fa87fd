"""Constants of the Model Context Protocol: revisions, methods, reserved keys and error codes."""

from __future__ import annotations

from typing import Final, Literal, get_args

Era = Literal["legacy", "modern"]

LEGACY_REVISIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Revisions opened with `initialize`, newest first."""

MODERN_REVISIONS: Final = ("2026-07-28",)
"""Revisions whose every request describes itself, newest first."""

REVISIONS: Final = MODERN_REVISIONS + LEGACY_REVISIONS

REVISION_IN_HEADER: Final = ("2025-11-25", "2025-06-18")
"""Legacy revisions that require their name in a header of every HTTP request after the handshake."""

BATCHING_REVISION: Final = "2025-03-26"
"""The one revision in which a receiver must accept JSON-RPC batches."""

META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

HTTP_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
"""The names of HTTP headers, as a pattern (RFC 9110)."""

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
"""The log levels, least severe first."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
"""The error code for an unknown resource in legacy revisions; later ones use `INVALID_PARAMS`."""
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042


def era_of(revision: str) -> Era:
    return "modern" if revision in MODERN_REVISIONS else "legacy"

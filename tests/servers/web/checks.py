"""The checks of revision 2026-07-28 for HTTP requests, as a server makes them.

`complaint_about` is a pure function: the error for a request, or None if it is valid.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.protocol import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    META_CLIENT_CAPABILITIES,
    META_PROTOCOL_VERSION,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from tests.servers.web.site import Ask

Json = dict[str, Any]
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def complaint_about(ask: Ask, revisions: tuple[str, ...], schema: Mapping[str, Any] | None) -> Json | None:
    """The error for a request that is not in order; `schema` is that of the called tool."""
    version = ask.meta.get(META_PROTOCOL_VERSION)
    if version is None or META_CLIENT_CAPABILITIES not in ask.meta:
        return {"code": INVALID_PARAMS, "message": "_meta lacks the protocol version or the capabilities"}
    if (wrong := _wrong_header(ask, "MCP-Protocol-Version", version)) is not None:
        return wrong
    if version not in revisions:
        data = {"supported": list(revisions), "requested": version}
        return {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": "unsupported protocol version", "data": data}
    for header, value in _mirrored(ask, schema or {}):
        if (wrong := _wrong_header(ask, header, value)) is not None:
            return wrong
    return None


def _mirrored(ask: Ask, schema: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Each header that must repeat something of the body, with the value it must have (None: be absent)."""
    yield "Mcp-Method", ask.rpc
    if ask.rpc in NAMED:
        yield "Mcp-Name", ask.params.get(NAMED[ask.rpc])
    for name, rule in schema.get("properties", {}).items():
        if isinstance(rule, dict) and "x-mcp-header" in rule:
            given = (ask.params.get("arguments") or {}).get(name)
            yield f"Mcp-Param-{rule['x-mcp-header']}", _spelled(given)


def _spelled(value: Any) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _wrong_header(ask: Ask, header: str, expected: str | None) -> Json | None:
    got = ask.headers.getall(header, [])
    if [decoded(each) for each in got] == ([] if expected is None else [expected]):
        return None
    return {"code": HEADER_MISMATCH, "message": f"{header} is {got!r}, the body says {expected!r}"}


def decoded(value: str) -> str:
    if value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[len("=?base64?") : -2]).decode()
    return value

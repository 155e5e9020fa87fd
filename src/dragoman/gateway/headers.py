"""Compares the headers of a request over HTTP with its body. Pure.

A proxy in front of the gateway may route or judge by headers: what they say must be what is carried out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Raw, Struct

from dragoman.protocol import HEADER_MISMATCH, META_PROTOCOL_VERSION, MODERN_REVISIONS
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT
from dragoman.wire.server.service import RequestError

VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
SESSION: Final = "Mcp-Session-Id"
_NAMED_BY: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BEGIN, _END = "=?base64?", "?="


class _Params(Struct, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None
    name: Any = None
    uri: Any = None


class Headers(Struct, frozen=True):
    """Those that repeat something of the body; each may be there several times."""

    version: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    name: tuple[str, ...] = ()


def is_modern(headers: Headers, params: Raw) -> bool:
    """Whether the request is of the modern era: its header or its body says so."""
    return bool(set(headers.version) & set(MODERN_REVISIONS)) or revision_in(params) is not None


def revision_in(params: Raw) -> str | None:
    """The revision that the parameters of a request of the modern era name."""
    found = (_read(params).meta or {}).get(META_PROTOCOL_VERSION)
    return found if isinstance(found, str) else None


def check(headers: Headers, method: str, params: Raw) -> None:
    """`RequestError` unless the headers of a request of the modern era repeat what its body says."""
    body = _read(params)
    _same(VERSION, headers.version, revision_in(params))
    _same(METHOD, headers.method, method)
    named_by = _NAMED_BY.get(method)
    if named_by is not None:
        named = getattr(body, named_by)
        _same(NAME, tuple(map(_decoded, headers.name)), named if isinstance(named, str) else None)
    elif headers.name:
        raise RequestError(
            HEADER_MISMATCH, f"{method[:100]} has no name: the header {NAME} does not belong here"
        )


def _read(params: Raw) -> _Params:
    if params is ABSENT:
        return _Params()
    try:
        return decode_as(_Params, params)
    except Unreadable:
        return _Params()


def _same(header: str, given: tuple[str, ...], wanted: str | None) -> None:
    if len(given) != 1 or given[0] != wanted:
        problem = "is missing" if not given else "is not what the body says"
        raise RequestError(HEADER_MISMATCH, f"the header {header} {problem}")


def _decoded(value: str) -> str:
    """The value of a header that is perhaps in base64."""
    if not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    try:
        return base64.b64decode(value[len(_BEGIN) : -len(_END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise RequestError(HEADER_MISMATCH, f"the header {NAME} is not valid base64") from None


def values(headers: Any, name: str) -> tuple[str, ...]:
    return tuple(cast("list[str]", headers.getall(name, [])))

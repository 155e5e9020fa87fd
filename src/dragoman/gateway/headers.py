"""Compares the headers of a request over HTTP with its body. Pure.

A proxy in front of the gateway may route or filter by headers, so they must match the request that is
executed.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, Self

from msgspec import Raw, Struct
from multidict import MultiMapping

from dragoman.catalog.tools import ServerTool
from dragoman.protocol import HEADER_MISMATCH, META_PROTOCOL_VERSION, MODERN_REVISIONS
from dragoman.version import VERSION as OWN_VERSION
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT
from dragoman.wire.mirroring import argument_headers, request_headers
from dragoman.wire.server import incoming
from dragoman.wire.server.service import RequestError, Service

VERSION: Final = "MCP-Protocol-Version"
SESSION: Final = "Mcp-Session-Id"
_STANDARD: Final = ("Mcp-Method", "Mcp-Name")
_PARAMETER: Final = "mcp-param-"
_NOT_REPEATED: Final = frozenset({VERSION.lower(), SESSION.lower()})
_REVISION_KEY: Final = META_PROTOCOL_VERSION.encode()
_BEGIN, _END = "=?base64?", "?="
_EMPTY: Final = Service(name="dragoman", version=OWN_VERSION, handlers={})


class _Params(Struct, rename={"meta": "_meta"}):
    meta: dict[str, Any] | None = None
    name: Any = None
    uri: Any = None
    arguments: Raw = ABSENT


class Headers(Struct, frozen=True):
    """The headers that repeat parts of the body; each may occur several times."""

    version: tuple[str, ...] = ()
    standard: dict[str, tuple[str, ...]] = {}
    """`Mcp-Method` and `Mcp-Name`, where they are given."""
    arguments: dict[str, tuple[str, ...]] = {}
    """`Mcp-Param-…` by their names in small letters."""

    @property
    def repeat_nothing(self) -> bool:
        """Whether no header repeats a part of a call."""
        return not self.arguments and not self.standard

    @classmethod
    def of(cls, headers: MultiMapping[str]) -> Self:
        names = {name.lower() for name in headers if name[:4].lower() == "mcp-"}
        if names <= _NOT_REPEATED:  # as most are
            return cls(tuple(headers.getall(VERSION, ())))

        def values(name: str) -> tuple[str, ...]:
            return tuple(headers.getall(name, ()))

        return cls(
            values(VERSION),
            {name: values(name) for name in _STANDARD if name in headers},
            {name: values(name) for name in names if name.startswith(_PARAMETER)},
        )


def is_modern(headers: Headers, params: Raw) -> bool:
    """Whether the request is of the modern era, by its header or its body."""
    if any(each in MODERN_REVISIONS for each in headers.version):
        return True
    # Decoded only if the key can be in it; with a backslash it may be spelled differently.
    may_say_so = b"\\" in bytes(params) or _REVISION_KEY in bytes(params)
    return may_say_so and _revision(params) is not None


def check(headers: Headers, method: str, params: Raw) -> None:
    """`RequestError` unless a request of the modern era has valid metadata, and its headers repeat it."""
    meta = incoming.read_meta(params)
    if meta.protocol_version is not None:
        _same(VERSION, headers.version, meta.protocol_version)
    incoming.client_of(_EMPTY, None, method, meta)
    _check_standard(headers, method, params, are_needed=True)


def check_given(headers: Headers, method: str, params: Raw) -> None:
    """Raises `RequestError` if headers of a legacy message are wrong; it needs none."""
    _check_standard(headers, method, params, are_needed=False)


def check_batch(headers: Headers) -> None:
    """`RequestError` for a header that describes a single message."""
    for name, given in (headers.standard | headers.arguments).items():
        _same(name, given, None)


def _check_standard(headers: Headers, method: str, params: Raw, *, are_needed: bool) -> None:
    body = _read(params)
    wanted = request_headers(method, {"name": body.name, "uri": body.uri})
    for name in _STANDARD:
        given = headers.standard.get(name, ())
        if given or (are_needed and name in wanted):
            _same(name, given, wanted.get(name))


def name_in(params: Raw) -> str:
    """The name of the tool that is called; empty if there is none."""
    name = _read(params).name
    return name if isinstance(name, str) else ""


def check_arguments(headers: Headers, params: Raw, tool: ServerTool | None) -> None:
    """`RequestError` unless the headers repeat the arguments of a call that its tool wants repeated."""
    if tool is None or not tool.mirrored:
        return
    arguments = _arguments_in(params)
    wanted = {name.lower(): value for name, value in argument_headers(tool.mirrored, arguments).items()}
    for name in {f"{_PARAMETER}{each.lower()}" for each in tool.mirrored.values()}:
        given = headers.arguments.get(name, ())
        if given or name in wanted:
            _same(name, given, wanted.get(name))


def _arguments_in(params: Raw) -> dict[str, Any]:
    raw = _read(params).arguments
    try:
        return {} if raw is ABSENT else decode_as(dict[str, Any], raw)
    except Unreadable:
        return {}


def _revision(params: Raw) -> str | None:
    found = (_read(params).meta or {}).get(META_PROTOCOL_VERSION)
    return found if isinstance(found, str) else None


def _read(params: Raw) -> _Params:
    try:
        return _Params() if params is ABSENT else decode_as(_Params, params)
    except Unreadable:
        return _Params()


def _same(header: str, given: tuple[str, ...], wanted: str | None) -> None:
    if len(given) != 1 or wanted is None or _decoded(header, given[0]) != _decoded(header, wanted):
        problem = "is missing" if not given else "differs from the body"
        raise RequestError(HEADER_MISMATCH, f"the header {header} {problem}")


def _decoded(header: str, value: str) -> str:
    """The value of a header that is perhaps in base64."""
    if not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    try:
        return base64.b64decode(value[len(_BEGIN) : -len(_END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise RequestError(HEADER_MISMATCH, f"the header {header} is not valid base64") from None

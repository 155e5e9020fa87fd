"""Checks an organisation's connectors: the fields of an entry, its address, and where the token is sent.
Pure.

A connector list comes over the network, so its entries are admitted field by field: they name public remote
servers, and cannot run a command, read this machine's variables or files, choose a proxy, or claim trust.
Names are not resolved here: a public name that resolves to an address of this network is not noticed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, cast

from dragoman import addresses
from dragoman.addresses import parse_address
from dragoman.cleaning import one_line
from dragoman.config.model import FIELDS, ServerConfig, check_restrictions, with_own_field_names
from dragoman.config.policy_subjects import reroutes
from dragoman.config.scopes import MAY_TRUST, Scope
from dragoman.errors import ConfigError
from dragoman.transport_types import REMOTE, TRANSPORT_TYPES
from dragoman.urls import ServerUrl, is_loopback, parse_url

TYPES: Final = tuple(name for name in REMOTE if not TRANSPORT_TYPES[name].is_editor)
_ADMITTED: Final = frozenset(
    {"type", "url", "headers", "timeout", "protocol", "enabledTools", "disabledTools"}
)
_NAMES_OF_THIS_MACHINE: Final = frozenset(
    {"localhost.localdomain", "localhost4", "localhost6", "localhost6.localdomain6", "ip6-localhost"}
    | {"ip6-loopback"}
)
"""Names of this machine, as in `/etc/hosts`. Not `is_loopback`: another resolver may resolve them
differently."""


def connector_entry(entry: Any, *, is_local: bool) -> dict[str, Any]:
    """The entry with the fields a connector may have; `ConfigError` says why it cannot be used.

    A field that no entry knows, such as a description, is dropped. One that an entry knows and a connector
    may not set makes the whole entry unusable: without it the entry would mean another server.
    """
    if not isinstance(entry, dict):
        raise ConfigError("it is not an object")
    given = cast("dict[str, Any]", entry)
    check_restrictions(given)
    fields = with_own_field_names(given)
    if "${" in repr(fields):
        raise ConfigError("a connector may not use variables of this machine")
    for field in fields:
        if field in FIELDS - _ADMITTED:
            raise ConfigError(f"a connector may not set {field}")
    if fields.get("type", "http") not in TYPES:
        raise ConfigError(f"its type is none of {', '.join(TYPES[:-1])} and {TYPES[-1]}")
    _check_address(fields.get("url"), is_local=is_local)
    _check_headers(fields.get("headers", {}))
    return {field: value for field, value in fields.items() if field in _ADMITTED}


def _check_address(text: Any, *, is_local: bool) -> None:
    if not isinstance(text, str):
        raise ConfigError("it has no URL")
    url = parse_url(text)
    if is_local and is_loopback(url):
        return
    if not is_public(url):
        raise ConfigError("the host of its URL is not public")
    if url.scheme not in ("https", "wss"):
        raise ConfigError("its URL does not begin with https:// or wss://")


def _check_headers(headers: Any) -> None:
    pairs: Any = list(cast("dict[Any, Any]", headers).items()) if isinstance(headers, dict) else None
    if pairs is None or not all(isinstance(value, str) for _, value in pairs):
        raise ConfigError("its headers are not an object of texts")
    for name, _ in pairs:
        if reroutes(name):
            raise ConfigError(f"a connector may not set the header {one_line(name, 60)}")


# Addresses.


def is_public(url: ServerUrl) -> bool:
    """Whether the address is public; every name is, unless it means this machine."""
    address = parse_address(url.host)
    if address is None:
        return not is_loopback(url) and url.host not in _NAMES_OF_THIS_MACHINE
    return addresses.is_public(address)


# The organisation's token.


def safe_origins(texts: Iterable[str]) -> frozenset[str]:
    """The origins of these addresses that a token may be sent to: https, or this machine."""
    found: set[str] = set()
    for text in texts:
        try:
            url = parse_url(text)
        except ConfigError:
            continue
        if url.scheme == "https" or is_loopback(url):
            found.add(url.origin)
    return frozenset(found)


def check_token_target(name: str, config: ServerConfig, scope: Scope, origins: Collection[str]) -> None:
    """Raises `ConfigError` if connecting to the server would give away the organisation's token."""
    if config.transport.credentials != "bearer":
        return
    origin = parse_url(config.url or "").origin
    if origin not in origins:
        raise ConfigError(
            f"server {name!r}: the organisation's token is not sent to {origin}",
            hint="Name it in `connectors.bearerOrigins` of your settings, or in Host(bearer_origins=…).",
        )
    if scope not in MAY_TRUST and (field := _rerouting_field(config)):
        raise ConfigError(
            f"server {name!r}: an entry of scope {scope} may not set {field}: "
            "the organisation's token could be sent elsewhere",
            hint="Put the entry into your own settings (-s user) if you mean it.",
        )


def _rerouting_field(config: ServerConfig) -> str | None:
    """A field that sends requests to another host than the URL names."""
    if config.proxy is not None:
        return "proxy"
    if config.tls is not None:
        return "tls"
    header = next(filter(reroutes, cast("Mapping[str, str]", config.headers)), None)
    return None if header is None else f"the header {header}"

"""One server entry, as written in configuration and as understood.

I own: the fields of an entry, their types, and clear errors for entries that cannot be used. An
unknown field is kept and warned about, never fatal. Where entries come from is the other modules'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from dragoman.errors import ConfigError
from dragoman.protocol import REVISIONS

TRANSPORTS: Final = ("stdio", "http", "sse", "ws", "sse-ide", "ws-ide", "sdk", "claudeai-proxy")

IN_PROCESS: Final = "in-process"
"""The type of servers that were handed over as objects."""

UNUSABLE: Final = "unusable"
"""Stands for the type of an entry that could not be understood."""


class ServerConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is needed to reach one server."""

    type: str = "stdio"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    timeout: int | None = None
    """Time a call may take, in milliseconds; overrides MCP_TOOL_TIMEOUT."""
    protocol: str = "auto"
    unknown: dict[str, Any] = {}
    """Fields this version does not know."""

    def __repr__(self) -> str:
        """Says which server it is, and keeps to itself whatever may be secret."""
        return f"<ServerConfig {self.type} {self.command or ''}>"

    def fingerprint(self) -> str:
        """Changes whenever anything about the entry does. Reveals nothing of its values."""
        text = repr(_ordered(msgspec.structs.asdict(self)))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _ordered(value: Any) -> Any:
    """The value with the order of keys, which means nothing, taken out."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return sorted((str(key), _ordered(item)) for key, item in pairs)
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in cast("list[Any]", value)]
    return repr(value)


_FIELDS = {field.encode_name for field in msgspec.structs.fields(ServerConfig)} - {"unknown"}


def parse_entry(name: str, entry: Mapping[str, Any]) -> ServerConfig:
    """The entry as understood, or a `ConfigError` that names server and field."""
    known = {key: value for key, value in entry.items() if key in _FIELDS}
    unknown = {key: value for key, value in entry.items() if key not in _FIELDS}
    if "type" not in known:
        known["type"] = _implied_type(name, entry)
    try:
        config = msgspec.convert({**known, "unknown": unknown}, ServerConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"server {name!r}: {error}", hint="Correct the entry; the others are not affected."
        ) from None
    _check(name, config)
    return config


def parse_servers(document: Any, source: str) -> dict[str, Any]:
    """The `mcpServers` block of a configuration document; each entry is judged later, on its own."""
    if not isinstance(document, dict):
        raise ConfigError(
            f"{source}: expected a JSON object", hint='Write {"mcpServers": {"name": {"command": …}}}.'
        )
    servers: Any = cast("dict[str, Any]", document).get("mcpServers")
    if servers is None and "servers" in document:
        raise ConfigError(f'{source}: found "servers"', hint='The block is called "mcpServers".')
    if not isinstance(servers, dict):
        raise ConfigError(
            f'{source}: "mcpServers" must be an object', hint="Map each server's name to its entry."
        )
    return cast("dict[str, Any]", servers)


def _implied_type(name: str, entry: Mapping[str, Any]) -> str:
    if "command" in entry:
        return "stdio"
    if "url" in entry:
        return "http"
    raise ConfigError(f"server {name!r} has neither a command nor a url", hint="Give one of them.")


def _check(name: str, config: ServerConfig) -> None:
    if not name.strip():
        raise ConfigError("a server needs a name", hint="Names are the keys of mcpServers.")
    if config.type not in TRANSPORTS:
        raise ConfigError(
            f"server {name!r}: unknown type {config.type!r}", hint=f"Types: {', '.join(TRANSPORTS)}."
        )
    if config.type == "stdio" and not config.command:
        raise ConfigError(f"server {name!r}: a stdio server needs a command", hint="Add `command`.")
    if config.type in ("http", "sse", "ws") and not config.url:
        raise ConfigError(f"server {name!r}: a server of type {config.type} needs a url", hint="Add `url`.")
    if config.protocol not in ("auto", "legacy", *REVISIONS):
        raise ConfigError(
            f"server {name!r}: unknown protocol {config.protocol!r}",
            hint=f"Use auto, legacy, or one of {', '.join(REVISIONS)}.",
        )
    if config.timeout is not None and config.timeout <= 0:
        raise ConfigError(f"server {name!r}: timeout must be positive (milliseconds)")
    for value in (config.command or "", *config.args, *config.env, *config.env.values(), config.cwd or ""):
        if "\0" in value:
            raise ConfigError(f"server {name!r}: a NUL character cannot be passed to a program")

"""Introduces configuration to transports: the only place that knows both.

I own: which transport an entry asks for.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman.config.model import ServerConfig
from dragoman.connections.turns import Kind
from dragoman.errors import ConfigError
from dragoman.settings import Settings
from dragoman.transports.base import Transport
from dragoman.transports.inprocess import InProcessServer, InProcessTransport
from dragoman.transports.sdk_objects import adapt
from dragoman.transports.stdio import StdioTransport

MakeTransport = Callable[[], Transport]


def kind_of(config: ServerConfig) -> Kind:
    """A process on this machine, something elsewhere, or neither."""
    if config.type == "stdio":
        return "local"
    return "remote" if config.url is not None else "in-process"


def transport_maker(name: str, config: ServerConfig, settings: Settings) -> MakeTransport:
    """Something that makes a fresh transport for the entry each time it is called."""
    if config.type != "stdio" or config.command is None:
        raise ConfigError(
            f"server {name!r}: the transport {config.type!r} is not available in this version",
            hint="This version connects to stdio and in-process servers.",
        )
    command = (config.command, *config.args)

    def make() -> Transport:
        return StdioTransport(
            name,
            command,
            env=config.env,
            cwd=config.cwd,
            limit_bytes=settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"],
            stall_seconds=settings.seconds("DRAGOMAN_WRITE_STALL_MS"),
        )

    return make


def refusing_maker(error: ConfigError) -> MakeTransport:
    """For an entry that cannot be used: says so when its server is to be connected."""

    def refuse() -> Transport:
        raise error

    return refuse


def inprocess_maker(name: str, candidate: object) -> MakeTransport:
    served: InProcessServer = adapt(name, candidate)
    return lambda: InProcessTransport(name, served)

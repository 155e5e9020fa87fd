"""Makes the transport that a server's entry describes, with its network settings and its credentials.

This is the only module that imports the packages `config`, `transports` and `auth` together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from dragoman import paths
from dragoman.config.masking import masked_text
from dragoman.config.model import ServerConfig, TlsConfig
from dragoman.config.urls import parse_url
from dragoman.connections.connect_limiter import Kind
from dragoman.errors import ConfigError, Unreachable
from dragoman.settings import Settings
from dragoman.transports.base import Transport
from dragoman.transports.inprocess import InProcessServer, InProcessTransport
from dragoman.transports.orphans import guard
from dragoman.transports.process import minimal_environment
from dragoman.transports.sdk_objects import adapt
from dragoman.transports.stdio import StdioTransport

if TYPE_CHECKING:  # aiohttp is loaded when the first remote server is connected
    from dragoman.credentials import Credentials
    from dragoman.transports.control import ControlChannel
    from dragoman.transports.web import Network

MakeTransport = Callable[[], Transport]

IDE_TYPES = ("sse-ide", "ws-ide")
HELPED_TYPES = ("http", "sse", "ws")
"""Kinds of servers for which a `headersHelper` can give authentication headers."""


class TransportDependencies:
    """What an embedding program hands in for the transports that need it."""

    def __init__(
        self,
        control: ControlChannel | None = None,
        bearer: Callable[[str], Credentials] | None = None,
        cwd: Path | None = None,
        session_id: str | None = None,
    ) -> None:
        self.cwd = cwd or Path.cwd()
        """The folder a person works in: which editor is theirs."""
        self.session_id = session_id or os.urandom(8).hex()
        """The host's session, which servers over HTTP and SSE are told in a header."""
        self.control = control
        """Carries the messages of servers of type `sdk`."""
        self.bearer = bearer
        """By server: who signs requests to organisation connectors (`claudeai-proxy`)."""
        self.bearer_origins: frozenset[str] = frozenset()
        """The origins that the program itself names for that token."""
        self.learned: Callable[[str, Iterable[str]], None] = lambda server, secrets: None
        """Called with the server and the authentication headers that a helper gave."""


def kind_of(config: ServerConfig) -> Kind:
    """A process on this machine, something elsewhere, or neither."""
    if config.type == "stdio":
        return "local"
    return "remote" if config.url is not None or config.type in IDE_TYPES else "in-process"


def transport_maker(
    name: str, config: ServerConfig, settings: Settings, dependencies: TransportDependencies
) -> MakeTransport:
    """Something that makes a fresh transport for the entry each time it is called."""
    match config.type:
        case "stdio":
            return _stdio_maker(name, config, settings)
        case "sdk":
            return _control_maker(name, dependencies)
        case "http" | "sse" | "ws" | "claudeai-proxy" | "sse-ide" | "ws-ide":
            return lambda: _remote(name, config, settings, dependencies)
        case _:
            raise ConfigError(f"server {name!r}: there is no transport {config.type!r}")


def older_maker(
    name: str, config: ServerConfig, settings: Settings, dependencies: TransportDependencies
) -> MakeTransport | None:
    """The transport before Streamable HTTP, for servers that were never updated."""
    if config.type != "http":
        return None

    def make() -> Transport:
        network = network_of(config)
        return _sse(name, network, settings, dependencies, _helper_of(name, config, network, dependencies))

    return make


def network_of(config: ServerConfig, environ: Mapping[str, str] = os.environ) -> Network:
    """How a remote server is reached."""
    from dragoman.transports.web import Network, checked_proxy, proxy_for

    url = str(parse_url(config.url or ""))
    tls = config.tls or TlsConfig()
    # A pair: the entry's certificate does not go with the environment's key.
    cert, key = tls.cert, tls.key
    if cert is None:
        cert, key = environ.get("DRAGOMAN_CLIENT_CERT"), environ.get("DRAGOMAN_CLIENT_KEY")
    return Network(
        url=url,
        headers=config.headers,
        proxy=checked_proxy(config.proxy) if config.proxy else proxy_for(url, environ),
        ca_file=tls.ca or environ.get("DRAGOMAN_CA_FILE") or environ.get("NODE_EXTRA_CA_CERTS"),
        cert_file=cert,
        key_file=key,
    )


def refusing_maker(error: ConfigError) -> MakeTransport:
    """For an entry that cannot be used: says so when its server is to be connected."""

    def refuse() -> Transport:
        raise error

    return refuse


def inprocess_maker(name: str, candidate: object) -> MakeTransport:
    served: InProcessServer = adapt(name, candidate)
    return lambda: InProcessTransport(name, served)


def _stdio_maker(name: str, config: ServerConfig, settings: Settings) -> MakeTransport:
    command = (config.command or "", *config.args)

    def make() -> Transport:
        return StdioTransport(
            name,
            command,
            env=config.env,
            cwd=config.cwd,
            limit_bytes=settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"],
            stall_seconds=settings.seconds("DRAGOMAN_WRITE_STALL_MS"),
            stop_seconds=settings.seconds("DRAGOMAN_STOP_WAIT_MS"),
            shown_command=masked_text(command[0]),
        )

    return make


def _control_maker(name: str, dependencies: TransportDependencies) -> MakeTransport:
    channel = dependencies.control
    if channel is None:
        raise ConfigError(
            f"server {name!r} runs in an embedding program, and no program is connected",
            hint="Pass `control=` to the host, or remove the entry.",
        )

    def make() -> Transport:
        from dragoman.transports.control import ControlTransport

        return ControlTransport(name, channel)

    return make


def _remote(
    name: str, config: ServerConfig, settings: Settings, dependencies: TransportDependencies
) -> Transport:
    if config.type in IDE_TYPES:
        return _ide(name, config, settings, dependencies)
    network = network_of(config)
    match config.type:
        case "sse":
            return _sse(
                name, network, settings, dependencies, _helper_of(name, config, network, dependencies)
            )
        case "ws":
            return _websocket(name, network, settings, _helper_of(name, config, network, dependencies))
        case "claudeai-proxy":
            if dependencies.bearer is None:
                raise ConfigError(
                    f"server {name!r} is reached through an organisation's proxy, which needs a sign-in",
                    hint="Pass `bearer=` to the host.",
                )
            return _http(name, network, settings, dependencies, dependencies.bearer(name))
        case _:
            return _http(
                name, network, settings, dependencies, _helper_of(name, config, network, dependencies)
            )


def _helper_of(
    name: str, config: ServerConfig, network: Network, dependencies: TransportDependencies
) -> Credentials | None:
    """The command that prints authentication headers, if the entry has one.

    It gets as little of our environment as a server. It does not run in the folder the person works in:
    git, Python and others obey what lies there.
    """
    if config.headers_helper is None:
        return None
    from dragoman.auth.headers import HeadersHelper

    return HeadersHelper(
        name,
        config.headers_helper,
        url=network.url,
        env=minimal_environment(os.environ, config.env),
        cwd=str(Path.home() / (config.cwd or "")),
        guard=guard,
        learned=lambda values: dependencies.learned(name, values),
    )


def _ide(
    name: str, config: ServerConfig, settings: Settings, dependencies: TransportDependencies
) -> Transport:
    """An editor's server: at its address if the entry has one, else found by the editor's lockfile."""
    from dragoman.transports.ide import TOKEN_HEADER, find_ides

    is_websocket = config.type == "ws-ide"
    if config.url is not None:
        network = network_of(config)
    else:
        wanted = "ws" if is_websocket else "sse"
        found = find_ides(paths.config_dir() / "ide", dependencies.cwd)
        ides = [ide for ide in found if ide.transport == wanted and ide.workspace is not None]
        if not ides:
            raise Unreachable(
                name, "start", "no editor is running here", hint="Start the editor, with its extension."
            )
        network = ides[0].network(config.token_header or TOKEN_HEADER)
    return (
        _websocket(name, network, settings) if is_websocket else _sse(name, network, settings, dependencies)
    )


def _http(
    name: str,
    network: Network,
    settings: Settings,
    dependencies: TransportDependencies,
    credentials: Credentials | None,
) -> Transport:
    from dragoman.transports.http import HttpTransport

    return HttpTransport(name, network, credentials=credentials, **_http_options(settings, dependencies))


def _sse(
    name: str,
    network: Network,
    settings: Settings,
    dependencies: TransportDependencies,
    credentials: Credentials | None = None,
) -> Transport:
    from dragoman.transports.sse import SseTransport

    return SseTransport(name, network, credentials=credentials, **_http_options(settings, dependencies))


def _websocket(
    name: str, network: Network, settings: Settings, credentials: Credentials | None = None
) -> Transport:
    from dragoman.transports.websocket import WebSocketTransport

    limit_bytes = settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"]
    return WebSocketTransport(name, network, limit_bytes=limit_bytes, credentials=credentials)


class _HttpOptions(TypedDict):
    limit_bytes: int
    request_seconds: float
    client_session_id: str


def _http_options(settings: Settings, dependencies: TransportDependencies) -> _HttpOptions:
    return {
        "client_session_id": dependencies.session_id,
        "limit_bytes": settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"],
        "request_seconds": settings.seconds("MCP_REQUEST_TIMEOUT_MS"),
    }

"""Makes the transport that a server's entry describes, with its network settings and its credentials.

This is the only module that imports the packages `config`, `transports` and `auth` together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from msgspec import structs

from dragoman import paths
from dragoman.config.masking import masked_text
from dragoman.config.model import OAuthConfig, ServerConfig, TlsConfig
from dragoman.errors import ConfigError, Unreachable
from dragoman.settings import Settings
from dragoman.transports.base import Transport
from dragoman.transports.inprocess import InProcessServer, InProcessTransport
from dragoman.transports.orphans import watchdog
from dragoman.transports.process import minimal_environment
from dragoman.transports.sdk_objects import adapt
from dragoman.transports.stdio import Program, StdioTransport
from dragoman.urls import parse_url

if TYPE_CHECKING:  # aiohttp is loaded when the first remote server is connected
    import ssl

    from dragoman.auth.callback import BrowserReturn
    from dragoman.auth.entry import OAuthSettings
    from dragoman.auth.http import NetworkAccess
    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.auth.stores.base import AccountStore
    from dragoman.auth.xaa import IdentityProvider
    from dragoman.config.schema import XaaIdpConfig
    from dragoman.credentials import Credentials
    from dragoman.transports.control import ControlChannel
    from dragoman.transports.web import Network

MakeTransport = Callable[[], Transport]


class AccountOptions(NamedTuple):
    """How the servers of one account's host are signed in to (`Host.for_account`)."""

    identity: str
    """Takes the place of `oauth.identity` in every entry."""
    browser_return: Callable[[str], BrowserReturn] | None = None
    """By server: to where the browser returns, if not to a port of this machine."""
    advice: Callable[[str], str] | None = None
    """By server: what to do where a sign-in is needed."""


class TransportDependencies:
    """What an embedding program passes in for the transports that need it."""

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
        """The host's session, which is sent to servers over HTTP and SSE in a header."""
        self.control = control
        """Carries the messages of servers of type `sdk`."""
        self.bearer = bearer
        """By server: who signs requests to organisation connectors (`claudeai-proxy`)."""
        self.bearer_origins: frozenset[str] = frozenset()
        """The origins that the program itself names for that token."""
        self.identity_provider: Callable[[], XaaIdpConfig | None] = lambda: None
        """The company's identity provider, for servers with `oauth.xaa`."""
        self.account: AccountOptions | None = None
        """Set for the host of one account."""
        self.accounts: AccountStore | None = None
        """Where accounts are, if not in the secret store of this machine."""
        self.learned: Callable[[str, Iterable[str]], None] = lambda server, secrets: None
        """Called with the server and the authentication headers that a helper gave."""

    @property
    def vault(self) -> AccountStore:
        """The stored accounts, one object for all servers of a host."""
        if self.accounts is None:
            from dragoman.auth.stores.base import Vault

            self.accounts = Vault()
        return self.accounts


def transport_maker(
    name: str,
    config: ServerConfig,
    settings: Settings,
    dependencies: TransportDependencies,
    sign_in: OAuthCredentials | None = None,
) -> MakeTransport:
    """A function that makes a new transport for the entry each time it is called.

    `sign_in`: the tokens of the server, which all its transports share.
    """
    maker = _MAKERS.get(config.transport.kind)
    if maker is None:
        raise ConfigError(f"server {name!r}: there is no transport {config.type!r}")
    return maker(_Wanted(name, config, settings, dependencies, sign_in))


def older_maker(
    name: str,
    config: ServerConfig,
    settings: Settings,
    dependencies: TransportDependencies,
    sign_in: OAuthCredentials | None = None,
) -> MakeTransport | None:
    """The transport before Streamable HTTP, for servers that were never updated."""
    older = config.transport.older
    wanted = _Wanted(name, config, settings, dependencies, sign_in)
    return None if older is None else _remote_maker(wanted, older)


def uses_oauth(config: ServerConfig) -> bool:
    """Whether a sign-in is used: not where the entry itself has other credentials."""
    if config.transport.name not in ("http", "sse") or config.headers_helper is not None:
        return False
    return not any(name.lower() == "authorization" for name in config.headers)


def oauth_unused(name: str) -> ConfigError:
    """The error for a sign-in to a server that does not use OAuth."""
    return ConfigError(
        f"server {name!r} does not use OAuth",
        hint="Only servers of type http and sse without Authorization header or headersHelper do.",
    )


def oauth_credentials(
    name: str, config: ServerConfig, dependencies: TransportDependencies, *, is_given: bool = False
) -> OAuthCredentials | None:
    """The tokens of one server, shared by its transports; None if no sign-in is used. `is_given`: no file
    defines the server."""
    account = dependencies.account
    if account is not None:
        check_takes_accounts(name, config)
    if not uses_oauth(config):
        return None
    from dragoman.auth.oauth import OAuthCredentials

    entry = _oauth_entry(name, config, dependencies.identity_provider())
    entry = structs.replace(entry, is_given=is_given)
    credentials = OAuthCredentials(
        entry if account is None else structs.replace(entry, identity=account.identity),
        dependencies.vault,
        lambda: _network_access(name, config),
        lambda secrets: dependencies.learned(name, secrets),
    )
    if account is not None and account.browser_return is not None:
        credentials.browser_return = partial(account.browser_return, name)
    if account is not None and account.advice is not None:
        credentials.advice = account.advice(name)
    return credentials


def check_takes_accounts(name: str, config: ServerConfig) -> None:
    """`ConfigError` for a server at which several people cannot have an account each."""
    oauth = config.oauth or OAuthConfig()
    if not uses_oauth(config):
        cause = "does not use OAuth"
    elif oauth.xaa or oauth.grant != "authorization_code":
        cause = "gets its tokens without the sign-in of a person"
    else:
        return
    raise ConfigError(
        f"server {name!r} {cause}, so that callers cannot have accounts of their own there",
        hint="Needed is a server of type http or sse, whose entry has none of: Authorization header, "
        "headersHelper, oauth.grant, oauth.xaa.",
    )


def _oauth_entry(name: str, config: ServerConfig, provider: XaaIdpConfig | None) -> OAuthSettings:
    from dragoman.auth.challenges import scopes_in
    from dragoman.auth.entry import ConfiguredClient, OAuthSettings
    from dragoman.auth.metadata import TrustRules

    oauth = config.oauth or OAuthConfig()
    scopes = oauth.scopes if isinstance(oauth.scopes, str) else list(oauth.scopes or ())
    return OAuthSettings(
        server=name,
        url=config.url or "",
        headers=config.headers,
        route=_route(config),
        identity=oauth.identity or "",
        client=ConfiguredClient(
            oauth.client_id, oauth.client_secret, oauth.client_metadata_url, oauth.token_auth_method
        ),
        grant="xaa" if oauth.xaa else oauth.grant,
        identity_provider=None if provider is None else _identity_provider(provider),
        scopes=scopes_in(scopes),
        callback_port=oauth.callback_port,
        metadata_url=oauth.auth_server_metadata_url,
        issuer=oauth.issuer,
        resource=oauth.resource,
        sends_resource=oauth.send_resource,
        rules=TrustRules(frozenset(oauth.endpoint_origins), needs_pkce=not oauth.assume_pkce),
        allow_private=oauth.allow_private_network,
        private_key=oauth.private_key,
        signing_algorithm=oauth.signing_algorithm,
        workload_token=oauth.workload_token,
        dpop=oauth.dpop,
    )


def _route(config: ServerConfig) -> tuple[str, ...]:
    tls = config.tls or TlsConfig()
    return tuple(f"{each}" for each in (config.proxy, tls.ca, tls.cert, tls.key) if each)


def company_credentials(config: XaaIdpConfig, dependencies: TransportDependencies) -> OAuthCredentials:
    """The sign-in at the company's identity provider, shared by all servers."""
    from dragoman.auth.xaa import idp_credentials

    return idp_credentials(_identity_provider(config), dependencies.vault, lambda secrets: None)


def _identity_provider(config: XaaIdpConfig) -> IdentityProvider:
    """The identity provider. It is reached by the settings of the environment, never through a proxy, or with
    authorities, of a server's entry."""
    from dragoman.auth.xaa import IdentityProvider

    return IdentityProvider(
        access=_network_access("company sign-on", ServerConfig(type="http", url=config.issuer)),
        issuer=config.issuer,
        client_id=config.client_id,
        client_secret=config.client_secret,
        scopes=config.scopes,
        callback_port=config.callback_port,
        id_token=config.id_token,
    )


def _network_access(name: str, config: ServerConfig) -> NetworkAccess:
    """The network access of its authorization server: with the entry's proxy and certificate authorities,
    without its client certificate."""
    from dragoman.auth.http import NetworkAccess
    from dragoman.transports.web import proxy_for, tls_of

    network = network_of(config)

    def tls(url: str) -> ssl.SSLContext | bool:
        return tls_of(name, structs.replace(network, url=url, cert_file=None, key_file=None))

    return NetworkAccess(lambda url: network.proxy if config.proxy else proxy_for(url), tls)


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


def inprocess_maker(name: str, candidate: object) -> MakeTransport:
    served: InProcessServer = adapt(name, candidate)
    return lambda: InProcessTransport(name, served)


class _Wanted(NamedTuple):
    """The server whose transport is made."""

    name: str
    config: ServerConfig
    settings: Settings
    dependencies: TransportDependencies
    sign_in: OAuthCredentials | None = None


def _stdio_maker(wanted: _Wanted) -> MakeTransport:
    name, config, settings = wanted[:3]
    command = config.command or ""
    program = Program((command, *config.args), config.env, config.cwd, masked_text(command))

    def make() -> Transport:
        return StdioTransport(
            name,
            program,
            limit_bytes=settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"],
            stall_seconds=settings.seconds("DRAGOMAN_WRITE_STALL_MS"),
            stop_seconds=settings.seconds("DRAGOMAN_STOP_WAIT_MS"),
        )

    return make


def _control_maker(wanted: _Wanted) -> MakeTransport:
    name, channel = wanted.name, wanted.dependencies.control
    if channel is None:
        raise ConfigError(
            f"server {name!r} runs in an embedding program, and no program is connected",
            hint="Pass `control=` to the host, or remove the entry.",
        )

    def make() -> Transport:
        from dragoman.transports.control import ControlTransport

        return ControlTransport(name, channel)

    return make


def _remote_maker(wanted: _Wanted, older: str | None = None) -> MakeTransport:
    make = _REMOTE_TRANSPORTS[older or wanted.config.transport.kind or ""]

    def make_remote() -> Transport:
        network = _network_of_editor(wanted) if _is_searched(wanted.config) else network_of(wanted.config)
        return make(wanted, network, _credentials_of(wanted, network))

    return make_remote


def _credentials_of(wanted: _Wanted, network: Network) -> Credentials | None:
    match wanted.config.transport.credentials:
        case "helper":
            return _helper_of(wanted, network) or wanted.sign_in
        case "bearer":
            if wanted.dependencies.bearer is None:
                cause = "is reached through an organisation's proxy, which needs a sign-in"
                raise ConfigError(f"server {wanted.name!r} {cause}", hint="Pass `bearer=` to the host.")
            return wanted.dependencies.bearer(wanted.name)
        case None:
            return None


def _helper_of(wanted: _Wanted, network: Network) -> Credentials | None:
    """The command that prints authentication headers, if the entry has one.

    It gets as little of our environment as a server. It does not run in the folder the person works in:
    git, Python and others obey what lies there.
    """
    name, config, _, dependencies, _ = wanted
    if config.headers_helper is None:
        return None
    from dragoman.auth.headers_helper import HeadersHelper, facts

    return HeadersHelper(
        name,
        config.headers_helper,
        env={**minimal_environment(os.environ, config.env), **facts(name, network.url)},
        cwd=str(Path.home() / (config.cwd or "")),
        watchdog=watchdog,
        learned=lambda values: dependencies.learned(name, values),
    )


def _is_searched(config: ServerConfig) -> bool:
    return config.transport.is_editor and config.url is None


def _network_of_editor(wanted: _Wanted) -> Network:
    """An editor's server whose entry has no address is found by the editor's lockfile."""
    from dragoman.transports.ide import TOKEN_HEADER, find_ides

    found = find_ides(paths.config_dir() / "ide", wanted.dependencies.cwd)
    kind = wanted.config.transport.kind
    ides = [ide for ide in found if ide.transport == kind and ide.workspace is not None]
    if not ides:
        raise Unreachable(
            wanted.name, "start", "no editor is running here", hint="Start the editor, with its extension."
        )
    return ides[0].network(wanted.config.token_header or TOKEN_HEADER)


def _http(wanted: _Wanted, network: Network, credentials: Credentials | None) -> Transport:
    from dragoman.transports.http import HttpTransport

    return HttpTransport(wanted.name, network, credentials=credentials, **_http_options(wanted))


def _sse(wanted: _Wanted, network: Network, credentials: Credentials | None) -> Transport:
    from dragoman.transports.sse import SseTransport

    return SseTransport(wanted.name, network, credentials=credentials, **_http_options(wanted))


def _websocket(wanted: _Wanted, network: Network, credentials: Credentials | None) -> Transport:
    from dragoman.transports.websocket import WebSocketTransport

    limit_bytes = wanted.settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"]
    return WebSocketTransport(wanted.name, network, limit_bytes=limit_bytes, credentials=credentials)


class _HttpOptions(TypedDict):
    limit_bytes: int
    request_seconds: float
    client_session_id: str


def _http_options(wanted: _Wanted) -> _HttpOptions:
    return {
        "client_session_id": wanted.dependencies.session_id,
        "limit_bytes": wanted.settings["DRAGOMAN_MESSAGE_LIMIT_BYTES"],
        "request_seconds": wanted.settings.seconds("MCP_REQUEST_TIMEOUT_MS"),
    }


_REMOTE_TRANSPORTS: Final = {"http": _http, "sse": _sse, "ws": _websocket}
"""By `TransportKind`: makes the transport of a server that is reached by a URL."""
_MAKERS: Final[Mapping[str | None, Callable[[_Wanted], MakeTransport]]] = {
    "stdio": _stdio_maker,
    "control": _control_maker,
    **dict.fromkeys(_REMOTE_TRANSPORTS, _remote_maker),
}
"""By `TransportKind` (see `transport_types.py`); objects in this process have `inprocess_maker`."""

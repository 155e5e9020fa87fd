"""Metadata of protected resources (RFC 9728) and authorization servers (RFC 8414, OIDC discovery). Pure.

Defines where documents are looked for and in which order, which fields are read, and which documents are
refused. Every rule is applied before a browser is opened or a secret is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from dragoman.auth.challenges import scopes_in
from dragoman.auth.errors import Refused
from dragoman.errors import ConfigError
from dragoman.urls import ServerUrl, parse_page_url, parse_url

PROTECTED_RESOURCE: Final = "/.well-known/oauth-protected-resource"
AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"
SERVER_LIMIT: Final = 10
"""The maximum number of authorization servers of one resource that are tried."""

KNOWN_ENDPOINT_ORIGINS: Final[Mapping[str, frozenset[str]]] = {
    "https://accounts.google.com": frozenset(
        {
            "https://oauth2.googleapis.com",
            "https://openidconnect.googleapis.com",
            "https://www.googleapis.com",
        }
    ),
    "https://cf.mcp.atlassian.com": frozenset({"https://mcp.atlassian.com"}),
}
"""By issuer: origins of endpoints that are known to belong to it."""


class ProtectedResource(Struct, frozen=True):
    """Metadata of a protected resource: which authorization servers issue tokens for it."""

    resource: str
    authorization_servers: tuple[str, ...]
    scopes: tuple[str, ...] = ()


class AuthServer(Struct, frozen=True, omit_defaults=True):
    """An authorization server whose metadata was checked."""

    issuer: str
    """Exactly as the document has it; never normalized."""
    token_endpoint: str = ""
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes: tuple[str, ...] = ()
    token_auth_methods: tuple[str, ...] = ("client_secret_basic",)
    token_signing_algorithms: tuple[str, ...] = ()
    challenge_methods: tuple[str, ...] | None = None
    """None: the document has no `code_challenge_methods_supported`."""
    takes_client_documents: bool = False
    sends_issuer: bool = False
    """`authorization_response_iss_parameter_supported`."""


class TrustRules(Struct, frozen=True):
    """The trust settings of the person's entry."""

    endpoint_origins: frozenset[str] = frozenset()
    """Origins that endpoints may have besides the issuer's."""
    needs_pkce: bool = True


def canonical_resource(url: str) -> str:
    """The resource identifier of a server (RFC 8707): its URL without query and trailing slash."""
    parsed = parse_url(url)
    return f"{parsed.origin}{parsed.path.rstrip('/')}"


def resource_locations(url: ServerUrl) -> list[str]:
    """The default locations of a server's metadata: for its path, then for its origin."""
    path = url.path.rstrip("/")
    at_origin = f"{url.origin}{PROTECTED_RESOURCE}"
    return [f"{at_origin}{path}", at_origin] if path else [at_origin]


def server_locations(issuer: str) -> list[str]:
    """Where the metadata of an authorization server may be, in the order of the specification."""
    url = _parsed(issuer, "authorization_servers")
    path = url.path.rstrip("/")
    if not path:
        return [f"{url.origin}{AUTHORIZATION_SERVER}", f"{url.origin}{OPENID}"]
    return [
        f"{url.origin}{AUTHORIZATION_SERVER}{path}",
        f"{url.origin}{OPENID}{path}",
        f"{url.origin}{path}{OPENID}",
    ]


def read_protected_resource(document: Mapping[str, Any]) -> ProtectedResource:
    named = document.get("authorization_servers")
    servers = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []  # pyright: ignore[reportUnknownVariableType]
    if not servers:
        raise Refused("its protected-resource metadata names no authorization server")
    resource = document.get("resource")
    if not isinstance(resource, str) or not resource:
        raise Refused("its protected-resource metadata has no `resource`")
    return ProtectedResource(
        resource, tuple(dict.fromkeys(servers))[:SERVER_LIMIT], scopes_in(document.get("scopes_supported"))
    )


def check_resource(resource: str, server_url: str, location: str, configured: str | None) -> str:
    """The resource identifier for token requests; `Refused` if the document is about another resource.

    A document belongs to the URL it was found at (RFC 9728 §3.3): the one below the server's path to the
    server's URL, the one of the origin to the origin too. `configured`: a wider resource that the person's
    entry names.
    """
    server = parse_url(server_url)
    allowed = {f"{server.origin}{server.path.rstrip('/')}"}
    if location == f"{server.origin}{PROTECTED_RESOURCE}":
        allowed.add(server.origin)
    if configured is not None:
        allowed.add(_parsed_text(configured))
    try:
        stated = _parsed_text(resource)
    except ConfigError:
        stated = None
    if stated is None or stated not in allowed:
        raise Refused(
            f"its protected-resource metadata is about another resource, {_shown(resource)}",
            "Tokens for that resource would be sent to this server. If that is meant, name the resource in "
            "the entry: oauth.resource.",
        )
    return resource


def _parsed_text(resource: str) -> str:
    url = parse_url(resource)
    return f"{url.origin}{url.path.rstrip('/')}" + (f"?{url.query}" if url.query else "")


_ENDPOINTS: Final = (
    "token_endpoint",
    "authorization_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
    "device_authorization_endpoint",
    "jwks_uri",
)


def read_auth_server(
    document: Mapping[str, Any], *, expected_issuer: str | None, rules: TrustRules
) -> AuthServer:
    """The authorization server of a document. `expected_issuer`: the identifier by which it was found; None
    if the person's entry names the document itself."""
    issuer = document.get("issuer")
    if not isinstance(issuer, str) or not issuer:
        raise Refused("the metadata of its authorization server names no issuer")
    if expected_issuer is not None and not is_same_issuer(issuer, expected_issuer):
        raise Refused(
            f"the metadata of its authorization server is that of another issuer: {_shown(issuer)} instead "
            f"of {_shown(expected_issuer)}"
        )
    origin = _parsed(issuer, "issuer").origin
    origins = {origin, *KNOWN_ENDPOINT_ORIGINS.get(origin, ()), *rules.endpoint_origins}
    endpoints = {name: _endpoint(document, name, origins) for name in _ENDPOINTS}
    token_endpoint = endpoints["token_endpoint"]
    if token_endpoint is None:
        raise Refused("the metadata of its authorization server has no token_endpoint")
    return AuthServer(
        issuer=issuer,
        token_endpoint=token_endpoint,
        authorization_endpoint=endpoints["authorization_endpoint"],
        registration_endpoint=endpoints["registration_endpoint"],
        revocation_endpoint=endpoints["revocation_endpoint"],
        device_authorization_endpoint=endpoints["device_authorization_endpoint"],
        jwks_uri=endpoints["jwks_uri"],
        scopes=scopes_in(document.get("scopes_supported")),
        token_auth_methods=_texts(document, "token_endpoint_auth_methods_supported")
        or ("client_secret_basic",),
        token_signing_algorithms=_texts(document, "token_endpoint_auth_signing_alg_values_supported") or (),
        challenge_methods=_texts(document, "code_challenge_methods_supported"),
        takes_client_documents=document.get("client_id_metadata_document_supported") is True,
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def implied_auth_server(server_url: str) -> AuthServer:
    """The endpoints of a server of 2025-03-26 without any metadata: fixed paths of its own origin."""
    origin = parse_url(server_url).origin
    return AuthServer(
        issuer=origin,
        token_endpoint=f"{origin}/token",
        authorization_endpoint=f"{origin}/authorize",
        registration_endpoint=f"{origin}/register",
        token_auth_methods=("none", "client_secret_post", "client_secret_basic"),
        challenge_methods=("S256",),
    )


def check_pkce(server: AuthServer, rules: TrustRules) -> None:
    if "S256" in (server.challenge_methods or ()) or not rules.needs_pkce:
        return
    raise Refused(
        "its authorization server does not state that it supports PKCE with S256",
        "A stolen code could be used by others. If the server is known to support it nevertheless: "
        "oauth.assumePkce in the entry.",
    )


def is_same_issuer(stated: str, expected: str) -> bool:
    """Whether the issuers are equal. A trailing slash is ignored if there is no path: many servers add one to
    an origin."""
    if stated == expected:
        return True
    try:
        first, second = parse_url(stated), parse_url(expected)
    except ConfigError:
        return False
    return (first.path, second.path) == ("/", "/") and stated.rstrip("/") == expected.rstrip("/")


def _endpoint(document: Mapping[str, Any], name: str, origins: set[str]) -> str | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Refused(f"{name} of its authorization server is not a text")
    origin = _parsed(value, name).origin
    if origin not in origins:
        raise Refused(
            f"{name} of its authorization server is at another origin, {_shown(origin)}",
            f"If it is known to belong to the issuer: oauth.endpointOrigins: [{origin!r}] in the entry.",
        )
    return value


def _parsed(value: str, name: str) -> ServerUrl:
    """A URL of a document that may be fetched or opened."""
    try:
        url = parse_url(value)
    except ConfigError as error:
        raise Refused(f"{name}: {error}") from None
    if parse_page_url(value) is None:
        raise Refused(f"{name} is not a plain https URL: {_shown(value)}")
    return url


def _texts(document: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = document.get(name)
    if not isinstance(value, list):
        return None
    return tuple(each for each in value[:100] if isinstance(each, str) and len(each) <= 256)  # pyright: ignore


def _shown(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"

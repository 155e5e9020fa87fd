"""The client identity at an authorization server: configured, a client metadata document, or registered.

A configured secret is used only with the issuer it belongs to; a registration only with the issuer that made
it.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from dragoman.auth.entry import ConfiguredClient
from dragoman.auth.errors import Refused, Rejected
from dragoman.auth.http import OAuthHttp
from dragoman.auth.metadata import AuthServer
from dragoman.auth.token_endpoint import choose_auth_method
from dragoman.auth.tokens import OAuthClient, positive_number, rejected
from dragoman.urls import is_loopback, parse_url

CLIENT_NAME: Final = "Dragoman"
DEVICE_CODE: Final = "urn:ietf:params:oauth:grant-type:device_code"


class RegistrationRequest(Struct, frozen=True):
    """The content of a new registration."""

    redirect_uri: str
    """The redirect URIs; empty for a sign-in on another device."""
    scopes: tuple[str, ...] = ()


async def identify(
    http: OAuthHttp,
    server: AuthServer,
    configured: ConfiguredClient,
    known: OAuthClient | None,
    wanted: RegistrationRequest,
) -> OAuthClient:
    """Determines the client. `known`: the client that this issuer registered before, with the same redirect
    URI."""
    if configured.client_id is not None:
        method = choose_auth_method(
            server, has_secret=configured.client_secret is not None, preferred=configured.auth_method
        )
        return OAuthClient(configured.client_id, configured.client_secret, method)
    if configured.metadata_url is not None and server.takes_client_documents:
        return OAuthClient(configured.metadata_url)
    if known is not None and _serves(known, wanted):
        return known
    if server.registration_endpoint is not None:
        return await register(http, server, wanted)
    raise Refused(
        "its authorization server registers no clients by itself",
        "Register one there, and write its id into the entry: oauth.clientId "
        f"(its redirect URI: {wanted.redirect_uri}).",
    )


def _serves(known: OAuthClient, wanted: RegistrationRequest) -> bool:
    """Whether a client that was registered before can make this request."""
    if not known.is_registered or known.redirect_uri != wanted.redirect_uri:
        return False
    return not known.scopes or set(wanted.scopes) <= set(known.scopes)


async def register(http: OAuthHttp, server: AuthServer, wanted: RegistrationRequest) -> OAuthClient:
    """Dynamic client registration (RFC 7591)."""
    assert server.registration_endpoint is not None
    method = next((each for each in _METHODS if each in server.token_auth_methods), "none")
    document: dict[str, Any] = {
        "client_name": CLIENT_NAME,
        "token_endpoint_auth_method": method,
        "application_type": "native" if _is_on_this_machine(wanted.redirect_uri) else "web",
    }
    if wanted.redirect_uri:
        document |= {
            "redirect_uris": [wanted.redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        }
    else:
        document |= {"redirect_uris": [], "grant_types": [DEVICE_CODE, "refresh_token"], "response_types": []}
    if wanted.scopes:
        document["scope"] = " ".join(wanted.scopes)
    answer = await http.post_json(server.registration_endpoint, document)
    reply = answer.document()
    if answer.status not in (200, 201):
        if reply is not None and "error" in reply:
            raise rejected(reply)
        raise Rejected(f"HTTP {answer.status}", "its authorization server did not register this client")
    return _registered(reply, method, wanted)


def _is_on_this_machine(redirect_uri: str) -> bool:
    """Whether the redirect URI is on this machine; also true without one, for a sign-in on another device,
    where this machine polls."""
    return not redirect_uri or is_loopback(parse_url(redirect_uri))


_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")


def _registered(reply: dict[str, Any] | None, asked: str, wanted: RegistrationRequest) -> OAuthClient:
    client_id = (reply or {}).get("client_id")
    if reply is None or not isinstance(client_id, str) or not client_id or len(client_id) > 4096:
        raise Refused("its authorization server answered the registration without a client id")
    secret = reply.get("client_secret")
    secret = secret if isinstance(secret, str) and secret else None
    stated = reply.get("token_endpoint_auth_method", asked)
    method = stated if stated in _METHODS else asked
    if method != "none" and secret is None:
        raise Refused("its authorization server registered this client without the secret that it demands")
    return OAuthClient(
        client_id,
        secret if method != "none" else None,
        method,
        wanted.redirect_uri,
        positive_number(reply.get("client_secret_expires_at")),
        is_registered=True,
        scopes=wanted.scopes,
    )

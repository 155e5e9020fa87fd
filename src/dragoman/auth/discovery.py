"""Finds the authorization server of a protected server: its metadata, then the authorization server's.

The order of locations and the rules for documents are in `metadata.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from dragoman.auth.entry import SignInTarget
from dragoman.auth.errors import AuthProblem, Refused, Unavailable
from dragoman.auth.http import RETRY_STATUSES, Answer, OAuthHttp
from dragoman.auth.metadata import (
    AUTHORIZATION_SERVER,
    AuthServer,
    ProtectedResource,
    TrustRules,
    canonical_resource,
    check_resource,
    implied_auth_server,
    is_same_issuer,
    read_auth_server,
    read_protected_resource,
    resource_locations,
    server_locations,
)
from dragoman.urls import parse_url

_REVISION_HEADER: Final = {"MCP-Protocol-Version": "2025-03-26"}


class DiscoveredServer(Struct, frozen=True):
    """The authorization server that issues tokens for a server."""

    resource: str
    auth_server: AuthServer
    scopes: tuple[str, ...] = ()
    """`scopes_supported` of the protected resource."""
    is_resource_known: bool = True
    """False: the server publishes no metadata, as in 2025-03-26; `resource` is not sent then."""


async def discover(http: OAuthHttp, wanted: SignInTarget, challenge: Mapping[str, str]) -> DiscoveredServer:
    """Finds the authorization server. `challenge`: the parameters of the server's `WWW-Authenticate`."""
    if wanted.is_identity_provider:
        return DiscoveredServer(
            wanted.url, await read_issuer(http, wanted.url, wanted.rules), is_resource_known=False
        )
    protected, resource = await _find_resource(http, wanted, challenge)
    if wanted.metadata_url is not None:
        server = await _read_configured(http, wanted)
    elif protected is not None:
        server = await _find_server(http, wanted, protected)
    else:
        server = await _find_old_server(http, wanted)
    scopes = () if protected is None else protected.scopes
    is_known = protected is not None or wanted.metadata_url is not None
    return DiscoveredServer(resource or canonical_resource(wanted.url), server, scopes, is_known)


async def _find_resource(
    http: OAuthHttp, wanted: SignInTarget, challenge: Mapping[str, str]
) -> tuple[ProtectedResource | None, str | None]:
    named = challenge.get("resource_metadata")
    locations = [named] if named else resource_locations(parse_url(wanted.url))
    for location in locations:
        answer = await _look(http, location)
        if answer.status != 200:
            continue
        document = answer.document()
        if document is None:
            continue
        protected = read_protected_resource(document)
        return protected, check_resource(protected.resource, wanted.url, location, wanted.resource)
    if named:
        raise Refused("the metadata that its `resource_metadata` names cannot be read")
    return None, None


async def _find_server(http: OAuthHttp, wanted: SignInTarget, protected: ProtectedResource) -> AuthServer:
    """The first authorization server that can be used; the pinned one, if one is pinned."""
    issuers: Sequence[str] = protected.authorization_servers
    if wanted.issuer is not None:
        pinned = [each for each in issuers if is_same_issuer(each, wanted.issuer)]
        if not pinned:
            raise IssuerChanged(wanted.issuer, issuers[0])
        issuers = pinned
    problem: AuthProblem | None = None
    for issuer in issuers:
        try:
            return await read_issuer(http, issuer, wanted.rules)
        except AuthProblem as refused:
            problem = problem or refused
    assert problem is not None
    raise problem


class IssuerChanged(Refused):
    """The server names another authorization server than the one that credentials belong to."""

    def __init__(self, pinned: str, named: str | None) -> None:
        """`named`: None if the server no longer names any."""
        self.pinned = pinned
        self.named = named
        super().__init__(
            f"it names no authorization server any more; before it was {pinned}"
            if named is None
            else f"it names another authorization server than before: {named} instead of {pinned}",
            "Nothing was sent to it. If the change is meant: sign out, correct oauth.issuer and the client "
            "id, and sign in again.",
        )


async def read_issuer(http: OAuthHttp, issuer: str, rules: TrustRules) -> AuthServer:
    """The metadata of an issuer, from the first location that has a document."""
    for location in server_locations(issuer):
        answer = await _look(http, location)
        if answer.status == 200 and (document := answer.document()) is not None:
            return read_auth_server(document, expected_issuer=issuer, rules=rules)
    raise Refused(f"its authorization server {issuer} publishes no metadata")


async def _read_configured(http: OAuthHttp, wanted: SignInTarget) -> AuthServer:
    assert wanted.metadata_url is not None
    answer = await _look(http, wanted.metadata_url)
    document = answer.document() if answer.status == 200 else None
    if document is None:
        raise Refused("there is no metadata at oauth.authServerMetadataUrl")
    return read_auth_server(document, expected_issuer=wanted.entry_issuer, rules=wanted.rules)


async def _look(http: OAuthHttp, url: str, headers: Mapping[str, str] | None = None) -> Answer:
    """The answer to a request for a document. Raises `Unavailable` if the server is overloaded, because it is
    then unknown whether there is one."""
    answer = await http.get(url, headers)
    if answer.status in RETRY_STATUSES:
        raise Unavailable(f"{parse_url(url).origin} answered with HTTP {answer.status}")
    return answer


async def _find_old_server(http: OAuthHttp, wanted: SignInTarget) -> AuthServer:
    """A server of 2025-03-26 is its own authorization server. Never used where a secret would be sent."""
    origin = parse_url(wanted.url).origin
    if wanted.issuer is not None and not is_same_issuer(wanted.issuer, origin):
        raise IssuerChanged(wanted.issuer, None)
    if wanted.issuer is None and wanted.has_secret:
        raise Refused(
            "it does not say which authorization server it uses, so the client secret is not sent",
            "Name the issuer in the entry: oauth.issuer.",
        )
    answer = await _look(http, f"{origin}{AUTHORIZATION_SERVER}", _REVISION_HEADER)
    document = answer.document() if answer.status == 200 else None
    if document is not None:
        return read_auth_server(document, expected_issuer=origin, rules=wanted.rules)
    if answer.status == 200:
        raise Refused("the metadata of its authorization server cannot be read")
    return implied_auth_server(wanted.url)

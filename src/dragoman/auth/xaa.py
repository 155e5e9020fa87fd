"""Company sign-on (enterprise-managed authorization, "XAA"): one sign-in at the company's identity provider
serves every server.

The identity provider is named by settings, never by a server. Its ID token is verified when it arrives,
exchanged there for an assertion about one authorization server (ID-JAG, RFC 8693), and that assertion at the
authorization server for an access token (RFC 7523). Each of the two has its own client credentials.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from dragoman.auth import grants
from dragoman.auth.discovery import DiscoveredServer, read_issuer
from dragoman.auth.entry import ConfiguredClient, OAuthSettings
from dragoman.auth.errors import AuthProblem, Refused
from dragoman.auth.http import NetworkAccess
from dragoman.auth.metadata import AuthServer, TrustRules
from dragoman.auth.oauth import OAuthCredentials
from dragoman.auth.token_endpoint import choose_auth_method, client_authentication, request_token
from dragoman.auth.token_files import given_token
from dragoman.auth.tokens import Account, HiddenRepr, OAuthClient, positive_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dragoman.auth.stores.base import AccountStore

TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
LEEWAY_SECONDS: Final = 60.0


class IdentityProvider(HiddenRepr, frozen=True, kw_only=True):
    """`xaaIdp` of the settings."""

    issuer: str
    client_id: str
    access: NetworkAccess
    """How the identity provider is reached."""
    client_secret: str | None = None
    scopes: tuple[str, ...] = ("openid", "offline_access")
    callback_port: int | None = None
    id_token: str | None = None
    """An ID token that another program obtains, or the file that holds it (`@/path`); then no browser."""

    @property
    def entry(self) -> OAuthSettings:
        return OAuthSettings(
            server="company sign-on",
            url=self.issuer,
            client=ConfiguredClient(self.client_id, self.client_secret),
            scopes=self.scopes,
            callback_port=self.callback_port,
            issuer=self.issuer,
            sends_resource=False,
            # The settings name it: its documents need not state what every provider supports.
            rules=TrustRules(needs_pkce=False),
            is_identity_provider=True,
        )


def idp_credentials(
    idp: IdentityProvider, vault: AccountStore, learned: Callable[[Iterable[str]], None]
) -> OAuthCredentials:
    """The sign-in at the identity provider, shared by all servers and processes."""
    learned([secret for secret in (idp.client_secret, idp.id_token) if secret])
    return OAuthCredentials(idp.entry, vault, lambda: idp.access, learned)


async def obtain(credentials: OAuthCredentials, stored: Account | None) -> Account:
    """Obtains an access token for a server, without a person while the sign-in at the provider is valid."""
    entry = credentials.entry
    idp = entry.identity_provider
    if idp is None:
        raise Refused(
            "its entry wants the company's sign-on (oauth.xaa), and no identity provider is set",
            "Set `xaaIdp` in the settings.",
        )
    found, scopes = await grants.find_unattended(credentials, stored)
    client = _client(credentials, found.auth_server)
    company = idp_credentials(idp, credentials.vault, credentials.learn)
    id_token = await _id_token(company, idp)
    credentials.learn([id_token])
    assertion = await _exchange(company, idp, id_token, found, scopes)
    credentials.learn([assertion])
    account = grants.new_account(credentials, found, client, scopes)
    form = {"grant_type": grants.JWT_BEARER, "assertion": assertion}
    return await grants.request(credentials, account, form, scopes)


def _client(credentials: OAuthCredentials, server: AuthServer) -> OAuthClient:
    configured = credentials.entry.client
    if configured.client_id is None:
        if configured.metadata_url is None:
            raise Refused("company sign-on needs oauth.clientId in the entry: the client id at its server")
        return OAuthClient(configured.metadata_url)
    has_secret = configured.client_secret is not None
    method = choose_auth_method(server, has_secret=has_secret, preferred=configured.auth_method)
    return OAuthClient(configured.client_id, configured.client_secret, method)


async def has_session(company: OAuthCredentials, idp: IdentityProvider) -> bool:
    """Whether an ID token exists or can be obtained without a person."""
    try:
        await _id_token(company, idp)
    except AuthProblem:
        return False
    return True


async def _id_token(company: OAuthCredentials, idp: IdentityProvider) -> str:
    """A valid ID token: given, stored, or refreshed."""
    if idp.id_token is not None:
        return await given_token(idp.id_token, "xaaIdp.idToken")
    if (token := _valid_token(await company.load(fresh=True))) is not None:
        return token
    async with company.vault.locked(company.entry.key):
        account = await company.load(fresh=True)
        if (token := _valid_token(account)) is not None:
            return token  # another process has already refreshed it
        if account is None or account.tokens is None or account.tokens.refresh_token is None:
            raise AuthProblem("it needs the company's sign-on")
        renewed = await grants.refresh(company, account)
        assert renewed.tokens is not None
        # First without the ID token: the refresh token that was sent may be used up, whatever follows.
        await company.save(replace(renewed, tokens=replace(renewed.tokens, id_token=None)))
        if renewed.tokens.id_token == account.tokens.id_token:
            raise AuthProblem("the company's identity provider gave no new ID token")
        token = await verify(company, renewed, nonce=None)
        await company.save(renewed)
        return token


def _valid_token(account: Account | None) -> str | None:
    token = None if account is None or account.tokens is None else account.tokens.id_token
    return token if token is not None and _expiry(token) - time.time() > LEEWAY_SECONDS else None


async def _exchange(
    company: OAuthCredentials,
    idp: IdentityProvider,
    id_token: str,
    found: DiscoveredServer,
    scopes: tuple[str, ...],
) -> str:
    """The assertion of the identity provider about one authorization server."""
    provider = await read_issuer(company.http, idp.issuer, company.entry.rules)
    method = choose_auth_method(provider, has_secret=idp.client_secret is not None)
    fields, headers = client_authentication(OAuthClient(idp.client_id, idp.client_secret, method))
    form = {
        "grant_type": TOKEN_EXCHANGE,
        "requested_token_type": ID_JAG,
        "audience": found.auth_server.issuer,
        "resource": found.resource,
        "subject_token": id_token,
        "subject_token_type": ID_TOKEN,
        **fields,
    }
    if scopes:
        form["scope"] = " ".join(scopes)
    document = await request_token(company.http, provider, form, headers=headers)
    token = document.get("access_token")
    if document.get("issued_token_type") != ID_JAG or not isinstance(token, str) or not token:
        raise Refused("the company's identity provider answered without an assertion (ID-JAG)")
    return token


async def verify(company: OAuthCredentials, account: Account, nonce: str | None) -> str:
    """The ID token of an answer, after its signature, issuer, audience, time and nonce were checked."""
    token = None if account.tokens is None else account.tokens.id_token
    if token is None:
        raise Refused("the company's identity provider gave no ID token")
    if account.auth_server.jwks_uri is None:
        raise Refused("the company's identity provider publishes no keys (jwks_uri)")
    answer = await company.http.get(account.auth_server.jwks_uri)
    verify_id_token(token, answer.document() or {}, account.issuer, account.client.client_id, nonce)
    return token


def verify_id_token(token: str, keys: dict[str, Any], issuer: str, client_id: str, nonce: str | None) -> None:
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    from dragoman.auth.assertions import SIGNING_ALGORITHMS, without_warnings

    try:
        with without_warnings():
            known = KeySet.import_key_set(keys)  # pyright: ignore[reportArgumentType]
            claims = jwt.decode(token, known, algorithms=list(SIGNING_ALGORITHMS)).claims
        jwt.JWTClaimsRegistry(
            leeway=int(LEEWAY_SECONDS),
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": client_id},
            exp={"essential": True},
            sub={"essential": True},
        ).validate(claims)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise Refused(
            f"the ID token of the company's identity provider is not valid: {type(error).__name__}"
        ) from None
    if nonce is not None and claims.get("nonce") != nonce:
        raise Refused("the ID token of the company's identity provider belongs to another sign-in")


def _expiry(token: str) -> float:
    """The expiry of a token that was verified before; 0 if it is not stated."""
    import base64

    import msgspec

    try:
        part = token.split(".")[1]
        claims = msgspec.json.decode(
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=dict[str, Any]
        )
    except (IndexError, ValueError, msgspec.DecodeError):
        return 0.0
    return positive_number(claims.get("exp")) or 0.0

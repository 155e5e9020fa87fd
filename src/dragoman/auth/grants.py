"""Requests for tokens by each grant: a code, a refresh token, client credentials, a workload's own token."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from dragoman.auth.authorization import Attempt, scopes_to_request
from dragoman.auth.discovery import DiscoveredServer, discover
from dragoman.auth.errors import AuthProblem, Refused
from dragoman.auth.metadata import AuthServer
from dragoman.auth.token_endpoint import choose_auth_method, client_authentication, request_token
from dragoman.auth.token_files import given_token
from dragoman.auth.tokens import Account, OAuthClient, Tokens, read_tokens
from dragoman.names import shell_quoted

if TYPE_CHECKING:
    from dragoman.auth.dpop import DpopKey
    from dragoman.auth.oauth import OAuthCredentials

JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


async def exchange_code(
    credentials: OAuthCredentials, account: Account, attempt: Attempt, code: str
) -> Account:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": attempt.redirect_uri,
        "code_verifier": attempt.verifier,
    }
    return await request(credentials, account, form, attempt.scopes)


async def refresh(credentials: OAuthCredentials, account: Account) -> Account:
    assert account.tokens is not None
    if account.tokens.refresh_token is None:
        raise AuthProblem("the stored token has expired, and there is none to refresh it with")
    form = {"grant_type": "refresh_token", "refresh_token": account.tokens.refresh_token}
    account = replace(account, client=_current_client(credentials, account.client))
    return await request(credentials, account, form, account.requested_scopes, before=account.tokens)


def _current_client(credentials: OAuthCredentials, client: OAuthClient) -> OAuthClient:
    """The client with its current secret: a configured client has the secret of the entry, a registered one
    its own."""
    configured = credentials.entry.client
    if client.is_registered or configured.client_id != client.client_id or configured.client_secret is None:
        return client
    return replace(client, client_secret=configured.client_secret)


async def unattended(credentials: OAuthCredentials, stored: Account | None) -> Account:
    """Obtains a token without a person: client credentials, workload identity, or company sign-on."""
    entry = credentials.entry
    if entry.grant == "xaa":
        from dragoman.auth.xaa import obtain

        return await obtain(credentials, stored)
    found, scopes = await find_unattended(credentials, stored)
    if entry.grant == "workload_identity":
        account = new_account(credentials, found, OAuthClient(""), scopes)
        return await request(credentials, account, await _workload_form(credentials), scopes)
    if entry.client.client_id is None:
        raise Refused("client credentials need oauth.clientId in the entry")
    client = _unattended_client(credentials, found.auth_server)
    account = new_account(credentials, found, client, scopes)
    return await request(credentials, account, {"grant_type": "client_credentials"}, scopes)


async def find_unattended(
    credentials: OAuthCredentials, stored: Account | None
) -> tuple[DiscoveredServer, tuple[str, ...]]:
    """The authorization server that the entry's secrets belong to, and the scopes to request."""
    entry = credentials.entry
    issuer = credentials.confirmed_issuer or (None if stored is None else stored.issuer)
    if entry.has_secret and credentials.confirmed_issuer is None and not entry.is_pinned(stored):
        raise Refused(
            "it is not known which authorization server the secrets of the entry belong to",
            "Name it in the entry: oauth.issuer. "
            f"Or confirm it once: `dragoman mcp login {shell_quoted(entry.server)}`.",
        )
    found = await discover(credentials.http, entry.wanted(issuer), credentials.challenge)
    is_step_up = stored is not None and credentials.missing_scopes
    before = (*(stored.requested_scopes if is_step_up and stored else ()), *credentials.missing_scopes)
    challenged = scopes_of_challenge(credentials)
    return found, scopes_to_request(challenged, entry.scopes, found.scopes, AuthServer(""), before)


def scopes_of_challenge(credentials: OAuthCredentials) -> tuple[str, ...]:
    from dragoman.auth.challenges import scopes_in

    return scopes_in(credentials.challenge.get("scope", ""))


def new_account(
    credentials: OAuthCredentials, found: DiscoveredServer, client: OAuthClient, scopes: tuple[str, ...]
) -> Account:
    entry = credentials.entry
    return Account(
        resource=found.resource,
        auth_server=found.auth_server,
        client=client,
        requested_scopes=scopes,
        sends_resource=entry.sends_resource and found.is_resource_known,
        dpop_key=credentials.dpop_key(None).private if entry.dpop else None,
    )


def _unattended_client(credentials: OAuthCredentials, server: AuthServer) -> OAuthClient:
    configured = credentials.entry.client
    assert configured.client_id is not None
    if credentials.entry.private_key is not None:
        return OAuthClient(configured.client_id, auth_method="private_key_jwt")
    if configured.client_secret is None:
        raise Refused("client credentials need oauth.clientSecret or oauth.privateKey in the entry")
    method = choose_auth_method(server, has_secret=True, preferred=configured.auth_method)
    return OAuthClient(configured.client_id, configured.client_secret, method)


async def request(
    credentials: OAuthCredentials,
    account: Account,
    form: dict[str, str],
    scopes: tuple[str, ...],
    *,
    before: Tokens | None = None,
) -> Account:
    """Sends one token request with the client's authentication; returns the account with the new tokens."""
    form = dict(form)
    if account.sends_resource:
        form["resource"] = account.resource
    if scopes and form["grant_type"] in ("client_credentials", JWT_BEARER):
        form["scope"] = " ".join(scopes)
    fields, headers = authenticated(credentials, account)
    credentials.learn(account.secrets)
    dpop: DpopKey | None = credentials.dpop_key(account) if account.dpop_key is not None else None
    document = await request_token(
        credentials.http, account.auth_server, {**form, **fields}, headers=headers, dpop=dpop
    )
    tokens = read_tokens(document, time.time(), before=before, requested=scopes)
    if (tokens.token_type == "DPoP") != (account.dpop_key is not None):
        raise Refused("its authorization server gave a token of another type than was asked for (DPoP)")
    return replace(account, tokens=tokens)


def authenticated(credentials: OAuthCredentials, account: Account) -> tuple[dict[str, str], dict[str, str]]:
    client = account.client
    if not client.client_id:  # a workload identity: the assertion identifies the client
        return {}, {}
    if client.auth_method != "private_key_jwt":
        return client_authentication(client)
    from dragoman.auth.assertions import client_assertion

    entry = credentials.entry
    if entry.private_key is None:
        raise Refused("its entry has no oauth.privateKey any more")
    assertion = client_assertion(
        client.client_id, account.auth_server, entry.private_key, entry.signing_algorithm
    )
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}, {}


async def _workload_form(credentials: OAuthCredentials) -> dict[str, str]:
    token = credentials.entry.workload_token
    if token is None:
        raise Refused("workload identity needs oauth.workloadToken in the entry")
    token = await given_token(token, "oauth.workloadToken")
    credentials.learn([token])
    form: dict[str, Any] = {"grant_type": JWT_BEARER, "assertion": token}
    return form

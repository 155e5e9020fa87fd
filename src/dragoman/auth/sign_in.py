"""One sign-in of a person: discovery, client identity, browser, code, tokens.

Runs outside every connection: the server is `needs-auth` meanwhile and its connect time limit does not apply.
A `SignInScreen` shows it to the person.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING

from dragoman.auth import grants
from dragoman.auth.authorization import Attempt, CallbackAnswer, begin, code_in, is_for, scopes_to_request
from dragoman.auth.callback import BrowserReturn, CallbackListener, is_free
from dragoman.auth.discovery import DiscoveredServer, IssuerChanged, discover
from dragoman.auth.errors import AuthProblem, Declined, Refused
from dragoman.auth.metadata import check_pkce
from dragoman.auth.registration import RegistrationRequest, identify
from dragoman.auth.tokens import Account, OAuthClient
from dragoman.errors import SignInFailed
from dragoman.interaction import SIGN_IN_SECONDS, SignInScreen
from dragoman.urls import parse_url

if TYPE_CHECKING:
    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.auth.xaa import IdentityProvider


async def sign_in(
    credentials: OAuthCredentials,
    screen: SignInScreen,
    seconds: float = SIGN_IN_SECONDS,
    *,
    on_device: bool = False,
) -> Account:
    """Signs in and stores the tokens. Raises `SignInFailed`.

    `on_device`: the person enters a code in a browser anywhere, instead of one that returns to this machine.
    """
    entry = credentials.entry
    try:
        await credentials.resolve_secrets()
        if entry.is_unattended:
            return await _without_browser(credentials, screen, seconds, on_device=on_device)
        return await _with_person(credentials, screen, seconds, on_device=on_device)
    except AuthProblem as problem:
        raise SignInFailed(entry.server, problem.cause, hint=problem.hint) from None


async def _without_browser(
    credentials: OAuthCredentials, screen: SignInScreen, seconds: float, *, on_device: bool
) -> Account:
    """A sign-in without a browser: the person confirms the issuer of the secrets; for company sign-on, the
    person signs in at the identity provider once."""
    entry = credentials.entry
    before = await credentials.load(fresh=True)
    if entry.has_secret and not entry.is_pinned(before):
        found = await find(credentials, screen, before)
        await _check_secret(credentials, screen, before, found)
        credentials.confirmed_issuer = found.auth_server.issuer
    if entry.grant == "xaa" and entry.identity_provider is not None:
        await _at_identity_provider(
            credentials, entry.identity_provider, screen, seconds, on_device=on_device
        )
    async with credentials.vault.locked(entry.key):
        account = await grants.unattended(credentials, await credentials.load(fresh=True))
        await credentials.save(account)
        return account


async def _at_identity_provider(
    credentials: OAuthCredentials,
    provider: IdentityProvider,
    screen: SignInScreen,
    seconds: float,
    *,
    on_device: bool,
) -> None:
    from dragoman.auth.xaa import has_session, idp_credentials

    company = idp_credentials(provider, credentials.vault, credentials.learn)
    # One sign-in at a time: the second finds the session of the first.
    async with company.vault.locked(f"{company.entry.key}|sign-in", seconds):
        if not await has_session(company, provider):
            await _with_person(company, screen, seconds, on_device=on_device)


async def _with_person(
    credentials: OAuthCredentials, screen: SignInScreen, seconds: float, *, on_device: bool = False
) -> Account:
    entry = credentials.entry
    before = await credentials.load(fresh=True)
    found = await find(credentials, screen, before)
    await _check_secret(credentials, screen, before, found)
    known = _known_client(before, found)
    scopes = _scopes(credentials, before, found)
    if on_device:
        if found.auth_server.device_authorization_endpoint is None:
            raise Refused("its authorization server offers no sign-in on another device")
        from dragoman.auth.device import sign_in_on_device

        wanted = RegistrationRequest("", scopes)
        client = await identify(credentials.http, found.auth_server, entry.client, known, wanted)
        account = grants.new_account(credentials, found, client, scopes)
        account = await sign_in_on_device(credentials, account, screen, seconds)
    else:
        check_pkce(found.auth_server, entry.rules)
        async with _browser_return(credentials, known) as listener:
            wanted = RegistrationRequest(listener.redirect_uri, scopes)
            client = await identify(credentials.http, found.auth_server, entry.client, known, wanted)
            account = grants.new_account(credentials, found, client, scopes)
            account = await _in_browser(credentials, account, screen, listener, seconds)
    credentials.missing_scopes = ()
    return account


async def _in_browser(
    credentials: OAuthCredentials,
    account: Account,
    screen: SignInScreen,
    listener: BrowserReturn,
    seconds: float,
) -> Account:
    entry = credentials.entry
    nonce = secrets.token_urlsafe(16) if entry.is_identity_provider else None
    attempt = begin(account, listener.redirect_uri, account.requested_scopes, nonce)
    succeeded = False
    try:
        code = code_in(attempt, await _answer_of(listener, attempt, screen, seconds))
        account = await grants.exchange_code(credentials, account, attempt, code)
        if entry.is_identity_provider:
            from dragoman.auth.xaa import verify

            await verify(credentials, account, nonce)
        async with credentials.vault.locked(entry.key):
            await credentials.save(account)
        succeeded = True
    finally:
        listener.finished(succeeded)
    return account


def _scopes(
    credentials: OAuthCredentials, before: Account | None, found: DiscoveredServer
) -> tuple[str, ...]:
    """The scopes to request. A step-up also requests all earlier scopes: it must not lose rights."""
    is_same = before is not None and before.issuer == found.auth_server.issuer
    stored = before.missing_scopes if before is not None and is_same else ()
    missing = (*credentials.missing_scopes, *stored)
    is_step_up = missing or credentials.challenge.get("error") == "insufficient_scope"
    earlier = before.requested_scopes if before is not None and is_same and is_step_up else ()
    return scopes_to_request(
        grants.scopes_of_challenge(credentials),
        credentials.entry.scopes,
        found.scopes,
        found.auth_server,
        (*earlier, *missing),
    )


async def find(
    credentials: OAuthCredentials, screen: SignInScreen, before: Account | None
) -> DiscoveredServer:
    """The authorization server. A change of it is reported; nothing that belongs to the old one is sent to
    the new one."""
    entry = credentials.entry
    issuer = None if before is None else before.issuer
    try:
        return await discover(credentials.http, entry.wanted(issuer), credentials.challenge)
    except IssuerChanged as changed:
        if entry.issuer is not None or entry.has_secret:
            raise
        if changed.named is None and before is not None and before.tokens is not None:
            raise  # its own origin would only be a guess; that is possible after a sign-out
        screen.notice(f"{entry.server}: {changed.cause}. What was stored for the old one is not used.")
        return await discover(credentials.http, entry.wanted(None), credentials.challenge)


async def _check_secret(
    credentials: OAuthCredentials, screen: SignInScreen, before: Account | None, found: DiscoveredServer
) -> None:
    """Checks the issuer of a secret of the entry: the entry names it, or the person confirms it once."""
    entry = credentials.entry
    issuer = found.auth_server.issuer
    if not entry.has_secret or entry.is_pinned(before):
        return
    if (await screen.confirm_issuer(entry.server, issuer)) is not True:  # a text such as "no" is no yes
        raise Declined(
            f"the client secret was not sent to {issuer}", "Name the issuer it belongs to: oauth.issuer."
        )


def _known_client(before: Account | None, found: DiscoveredServer) -> OAuthClient | None:
    """The client that was registered at the same issuer, while its secret is valid."""
    if before is None or before.issuer != found.auth_server.issuer or not before.client.is_registered:
        return None
    expires = before.client.secret_expires_at
    return None if expires is not None and expires < time.time() else before.client


def _browser_return(credentials: OAuthCredentials, known: OAuthClient | None) -> BrowserReturn:
    if credentials.browser_return is not None:
        return credentials.browser_return()
    # Redirect URIs that people register by hand usually name localhost.
    host_name = "127.0.0.1" if credentials.entry.client.client_id is None else "localhost"
    return CallbackListener(_port(credentials, known), host_name=host_name)


def _port(credentials: OAuthCredentials, known: OAuthClient | None) -> int | None:
    """The port of the entry; else the one that was registered, if it is free."""
    if credentials.entry.callback_port is not None or known is None or not known.redirect_uri:
        return credentials.entry.callback_port
    port = parse_url(known.redirect_uri).port
    return port if is_free(port) else None


async def _answer_of(
    listener: BrowserReturn, attempt: Attempt, screen: SignInScreen, seconds: float
) -> CallbackAnswer:
    """Shows the page and waits for the browser. If the screen fails or is closed, the attempt ends."""
    showing = asyncio.create_task(screen.show_url(listener.page_for(attempt.url), listener.deliver))
    waiting = asyncio.create_task(listener.wait(lambda answer: is_for(attempt, answer), seconds))
    try:
        await asyncio.wait([showing, waiting], return_when=asyncio.FIRST_COMPLETED)
        if showing.done():
            await showing
        return await waiting
    finally:
        for task in (showing, waiting):
            task.cancel()
        await asyncio.gather(showing, waiting, return_exceptions=True)

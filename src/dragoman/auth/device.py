"""Sign-in on another device (RFC 8628), for machines without a browser."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from dragoman.auth import grants
from dragoman.auth.errors import Refused, Rejected, Unavailable
from dragoman.auth.registration import DEVICE_CODE
from dragoman.auth.token_endpoint import refusal_of
from dragoman.auth.tokens import Account, positive_number
from dragoman.urls import parse_page_url, parse_url

if TYPE_CHECKING:
    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.interaction import SignInScreen

CODE_CHARACTERS: Final = 64
"""The maximum length of the code that a person enters. Models see it, too: it must not be a message."""
LONGEST_SECONDS: Final = 1800.0
SLOWER_SECONDS: Final = 5.0
SHORTEST_PAUSE_SECONDS: Final = 1.0
"""The shortest pause between two polls, even if the authorization server asks for a shorter one."""


async def sign_in_on_device(
    credentials: OAuthCredentials, account: Account, screen: SignInScreen, seconds: float
) -> Account:
    """Shows a code, and polls the authorization server until the person has entered it on another device."""
    reply = await _begin(credentials, account)
    url = _text(reply, "verification_uri")
    complete = reply.get("verification_uri_complete")
    for each in (url, complete):
        if each is not None and (not isinstance(each, str) or parse_page_url(each) is None):
            raise Refused("the page for the code is not a plain https URL")
    if complete is not None and parse_url(complete).origin != parse_url(url).origin:
        complete = None  # it is shown as a picture, in which no person reads where it leads
    code = _text(reply, "user_code")
    if not (code.isascii() and code.isprintable()) or len(code) > CODE_CHARACTERS:
        raise Refused("the code to enter is not a short plain text")
    await screen.show_code(url, code, complete)
    account = await _poll(credentials, account, reply, seconds)
    async with credentials.vault.locked(credentials.entry.key):
        await credentials.save(account)
    return account


async def _begin(credentials: OAuthCredentials, account: Account) -> dict[str, Any]:
    endpoint = account.auth_server.device_authorization_endpoint
    assert endpoint is not None
    fields, headers = grants.authenticated(credentials, account)
    form = {"client_id": account.client.client_id, **fields}
    if account.requested_scopes:
        form["scope"] = " ".join(account.requested_scopes)
    if account.sends_resource:
        form["resource"] = account.resource
    answer = await credentials.http.post_form(endpoint, form, headers)
    reply = answer.document()
    if answer.status != 200 or reply is None or "error" in reply:
        raise refusal_of(reply or {"error": f"HTTP {answer.status}"}, form, headers)
    return reply


async def _poll(
    credentials: OAuthCredentials, account: Account, reply: dict[str, Any], seconds: float
) -> Account:
    pause = max(_seconds(reply.get("interval"), 5.0, 60.0), SHORTEST_PAUSE_SECONDS)
    deadline = time.monotonic() + _seconds(reply.get("expires_in"), 600.0, min(seconds, LONGEST_SECONDS))
    form = {"grant_type": DEVICE_CODE, "device_code": _text(reply, "device_code")}
    while (left := deadline - time.monotonic()) > 0:
        await asyncio.sleep(min(pause, left))  # the last poll is made at the end of the time
        try:
            return await grants.request(credentials, account, form, account.requested_scopes)
        except Rejected as problem:
            if problem.error == "slow_down":
                pause += SLOWER_SECONDS
            elif problem.error != "authorization_pending":
                raise
        except Unavailable:
            pause += SLOWER_SECONDS
    raise Refused("the code was not entered in time", "Start the sign-in again.")


def _text(reply: dict[str, Any], name: str) -> str:
    value = reply.get(name)
    if not isinstance(value, str) or not value or len(value) > 4096:
        raise Refused(f"its authorization server gave no {name}")
    return value


def _seconds(value: object, default: float, longest: float) -> float:
    return min(positive_number(value) or default, longest)

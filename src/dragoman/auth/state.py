"""The state of a sign-in without secrets, for commands and programs."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from dragoman.auth.errors import AuthProblem

if TYPE_CHECKING:
    from dragoman.auth.oauth import OAuthCredentials


class SignInState(Struct, frozen=True, kw_only=True):
    """The sign-in of one server."""

    server: str
    status: Literal["signed-in", "expired", "signed-out"]
    """`expired`: the token has expired and cannot be refreshed, so that a new sign-in is needed."""
    issuer: str | None = None
    resource: str | None = None
    client_id: str | None = None
    scopes: tuple[str, ...] = ()
    expires_in_seconds: int | None = None
    """How long the access token is still valid; None: not stated."""
    is_refreshable: bool = False
    store: str = ""
    """Where the tokens are stored."""
    problem: str | None = None
    """Why the store cannot be read, if it cannot."""


async def sign_in_state(credentials: OAuthCredentials) -> SignInState:
    """The state of the sign-in. Reads the store, and contacts no server."""
    name = credentials.entry.server
    try:
        account = await credentials.load(fresh=True)
    except AuthProblem as problem:
        return SignInState(server=name, status="signed-out", problem=problem.cause)
    if account is None or account.tokens is None:
        return SignInState(server=name, status="signed-out")
    tokens = account.tokens
    remaining = None if tokens.expires_at is None else int(tokens.expires_at - time.time())
    can_renew = tokens.refresh_token is not None or credentials.entry.is_unattended
    is_over = remaining is not None and remaining <= 0 and not can_renew
    return SignInState(
        server=name,
        status="expired" if is_over else "signed-in",
        issuer=account.issuer,
        resource=account.resource,
        client_id=account.client.client_id or None,
        scopes=tokens.scopes,
        expires_in_seconds=remaining,
        is_refreshable=can_renew,
        store=await asyncio.to_thread(credentials.vault.description_of, credentials.entry.key),
    )

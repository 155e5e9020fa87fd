"""Sign-out: revokes the tokens (RFC 7009), then deletes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dragoman.auth.errors import AuthProblem
from dragoman.auth.grants import authenticated
from dragoman.errors import SignInFailed

if TYPE_CHECKING:
    from dragoman.auth.oauth import OAuthCredentials
    from dragoman.auth.tokens import Account


async def sign_out(credentials: OAuthCredentials) -> str | None:
    """Revokes the refresh token, then the access token, then deletes both.

    They are deleted even if they cannot be read or the server cannot be reached; then the reason is returned.
    Raises `SignInFailed` if the store cannot delete them.
    """
    try:
        return await _sign_out(credentials)
    except AuthProblem as problem:
        raise SignInFailed(credentials.entry.server, problem.cause, hint=problem.hint) from None


async def _sign_out(credentials: OAuthCredentials) -> str | None:
    async with credentials.vault.locked(credentials.entry.key):
        try:
            account = await credentials.load(fresh=True)
        except AuthProblem as problem:  # for example a lost passphrase
            await credentials.forget()
            return f"the tokens could not be revoked: {problem.cause}"
        if account is None:
            return None
        problem = await _revoke(credentials, account)
        # The registration is kept: it grants nothing, and a new one each time would fill the server's list.
        if account.client.is_registered:
            await credentials.save(replace(account, tokens=None, requested_scopes=(), missing_scopes=()))
        else:
            await credentials.forget()
        return problem


async def _revoke(credentials: OAuthCredentials, account: Account) -> str | None:
    endpoint = account.auth_server.revocation_endpoint
    if account.tokens is None:
        return None
    if endpoint is None:
        return "its authorization server cannot revoke tokens; they stay valid until they expire"
    try:
        await credentials.resolve_secrets()
        fields, headers = authenticated(credentials, account)
    except AuthProblem as problem:
        return f"the tokens could not be revoked: {problem.cause}"
    failures: list[str] = []
    for kind in ("refresh_token", "access_token"):
        token: str | None = getattr(account.tokens, kind)
        if token is None:
            continue
        try:
            form = {"token": token, "token_type_hint": kind, **fields}
            answer = await credentials.http.post_form(endpoint, form, headers)
            cause = None if answer.status == 200 else f"HTTP {answer.status}"
        except AuthProblem as problem:
            cause = problem.cause
        if cause is not None:
            failures.append(f"the {kind.replace('_', ' ')} could not be revoked: {cause}")
    return "; ".join(failures) or None

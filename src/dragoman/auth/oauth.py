"""`OAuthCredentials`: the tokens of one server and one identity, shared by all its transports.

Provides the headers of each message, refreshes tokens before they expire and after a 401, and keeps the
server's challenge until a person signs in (`sign_in.py`). A refresh is one transaction across tasks, threads
and processes: the lock is held while the stored tokens are read, refreshed and written, and a process that
comes later adopts the newer tokens. Nothing here opens a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.auth.challenges import SCOPE_LIMIT, oauth_parameters, scopes_in
from dragoman.auth.entry import OAuthSettings
from dragoman.auth.errors import AuthProblem, Rejected, Unavailable
from dragoman.auth.needs_auth import NeedsAuthCache
from dragoman.auth.references import is_reference
from dragoman.auth.stores.base import UNREADABLE, AccountStore, StoreFailed, in_store_thread
from dragoman.auth.tokens import REFRESH_SECONDS, Account, Tokens, decode_account, encode_account
from dragoman.credentials import Challenge, OutgoingRequest
from dragoman.errors import SignInNeeded, Unreachable

if TYPE_CHECKING:  # loaded when a server requires a sign-in
    from dragoman.auth.callback import BrowserReturn
    from dragoman.auth.dpop import DpopKey
    from dragoman.auth.http import NetworkAccess, OAuthHttp

LEEWAY_SECONDS: Final = 10.0
"""A token that expires sooner than this is not sent."""
REFRESH_WAIT_SECONDS: Final = 2.0
"""How long a message waits for a refresh while the old token can still be sent."""
RETRY_SECONDS: Final = 30.0
"""The pause after a refresh that failed because the authorization server could not be reached."""
SIGN_IN_POLL_SECONDS: Final = 1.0
"""The interval at which a server that waits for a sign-in checks whether another process has made one."""
STORE_SECONDS: Final = 0.5
"""The interval of retries to store tokens that could not be stored."""
CLOSE_SECONDS: Final = 10.0
"""How long closing waits for a refresh."""
TERMINAL_ERRORS: Final = frozenset({"invalid_grant"})
"""Errors after which the tokens are invalid for good. After other errors, such as a wrong client secret, they
may become usable again."""


class OAuthCredentials:
    def __init__(
        self,
        entry: OAuthSettings,
        vault: AccountStore,
        access: Callable[[], NetworkAccess],
        learned: Callable[[Iterable[str]], None] = lambda secrets: None,
    ) -> None:
        """`learned` is called with every secret, so that it is redacted everywhere."""
        self.entry = entry
        self.vault = vault
        self._access = access
        self._learned = learned
        self._account: Account | None = None
        self._looked_at = -1.0
        self._versions = self._stored_versions()
        """The version of each stored account when it was last read or written here."""
        self._changes = 0
        """A counter of writes and deletions of the stored account by this object."""
        self._http: OAuthHttp | None = None
        self._renewing: asyncio.Task[bool] | None = None
        self._has_lock = False
        """Whether that refresh has the lock and no longer waits for another process."""
        self._retry_at = 0.0
        self._was_accepted = False
        """Whether the server has answered a message of this process, with or without a token."""
        self._unsaved: Account | None = None
        """The account that could not be stored because the store failed; used until it can be stored."""
        self._replaced: Tokens | None = None
        """The stored tokens at that time."""
        self._storing: asyncio.Task[None] | None = None
        self._renewed_after_401: str | None = None
        """The token that replaced a refused one, until the server accepts it."""
        self._dpop: DpopKey | None = None
        self.challenge: Mapping[str, str] = {}
        """The parameters of the server's last challenge."""
        self._header: str | None = None
        """The last challenge as the server sent it."""
        self.missing_scopes: tuple[str, ...] = ()
        """Scopes that were missing when a request was refused (403); the next sign-in requests them, too."""
        self.confirmed_issuer: str | None = None
        """The issuer of the entry's secrets, as the person confirmed it."""
        self.browser_return: Callable[[], BrowserReturn] | None = None
        """Where the browser returns to after a sign-in, if not to this machine."""
        self.advice = entry.login_hint(vault.login_option)
        """The hint for a missing sign-in."""
        self.needs_auth = NeedsAuthCache(vault.local.folder, vault.local.lock_path(entry.key).stem)

    # What transports call.

    async def headers(self) -> Mapping[str, str]:
        if self._account is None and self._was_accepted:
            return {}  # the usual case of a server without a sign-in; after a 401 the store is read
        try:
            tokens = await self._current()
        except AuthProblem as problem:
            raise self._sign_in_needed(problem.cause, problem.hint) from None
        if tokens is None:
            if not self.entry.is_unattended and self.needs_auth.is_fresh():
                raise self._sign_in_needed("it asked for a sign-in before")
            return {}
        return {"Authorization": f"{tokens.token_type} {tokens.access_token}"}

    def request_headers(self, headers: Mapping[str, str], request: OutgoingRequest) -> Mapping[str, str]:
        """Adds the proof of possession where tokens are bound to a key (DPoP)."""
        account = self._account
        if account is None or account.dpop_key is None or account.tokens is None:
            return headers
        token = account.tokens.access_token
        key = self.dpop_key(account)
        proof = key.proof(request.method, request.url, access_token=token, body=request.body)
        return {**headers, "DPoP": proof}

    def accepted(self, headers: Mapping[str, str]) -> None:
        self._was_accepted = True
        if self._renewed_after_401 is not None and _token_in(headers) == self._renewed_after_401:
            self._renewed_after_401 = None

    async def renew(self, challenge: Challenge) -> bool:
        """Renews the tokens after a 401; returns whether there are other tokens. After a 403 the server's
        answer is final."""
        try:
            return await self._renew(challenge)
        except AuthProblem as problem:
            raise self._sign_in_needed(problem.cause, problem.hint) from None

    async def _renew(self, challenge: Challenge) -> bool:
        asked = oauth_parameters(challenge.authenticate)
        if self._dpop is not None and challenge.dpop_nonce is not None:
            self._dpop.remember_nonce(self.entry.url, challenge.dpop_nonce)
            if asked.get("error") == "use_dpop_nonce":
                return True
        self.challenge = asked or self.challenge
        self._header = next(iter(challenge.authenticate), self._header)
        used = _token_in(challenge.sent)
        account = await self.load(fresh=True)
        if account is not None and account.tokens is not None and account.tokens.access_token != used:
            return True  # another process or task has already refreshed them
        if challenge.status == 403:
            return await self._note_missing_scopes(asked)
        if self.entry.is_unattended:
            if used is not None and used == self._renewed_after_401:
                self._renewed_after_401 = None  # the next message tries again
                return False
            await self._refresh(used)
            self._renewed_after_401 = None if self._account is None else _access_token(self._account)
            return True
        if account is None or account.tokens is None or used is None:
            if not self._was_accepted:  # one refused request is no reason for a server that works
                self.needs_auth.remember()
            raise self._sign_in_needed("it requires a sign-in (HTTP 401)")
        if used == self._renewed_after_401:
            raise self._sign_in_needed("it refuses a token that its authorization server has just given")
        if account.tokens.refresh_token is None:
            self.needs_auth.remember()
            raise self._sign_in_needed("it does not accept the stored token any more")
        await self._refresh(used)
        self._renewed_after_401 = None if self._account is None else _access_token(self._account)
        return True

    # For `sign_in.py`, and for commands.

    def for_identity(self, identity: str) -> OAuthCredentials:
        """The credentials of another account at the same server."""
        if identity == self.entry.identity:
            return self
        other = OAuthCredentials(
            replace(self.entry, identity=identity), self.vault, self._access, self._learned
        )
        other.challenge = self.challenge
        return other

    def stored_identities(self) -> list[str]:
        usual = replace(self.entry, identity="").key
        keys = self.vault.local.keys()
        others = [key.removeprefix(f"{usual}|") for key in keys if key.startswith(f"{usual}|")]
        return [*([""] if usual in keys else []), *sorted(others)]

    @property
    def http(self) -> OAuthHttp:
        if self._http is None:
            from dragoman.auth.http import OAuthHttp

            self._http = OAuthHttp(self.entry.url, self._access(), allow_private=self.entry.allow_private)
        return self._http

    @property
    def access(self) -> NetworkAccess:
        return self._access()

    async def load(self, *, fresh: bool = False) -> Account | None:
        """The current account; read from the store if none is known, if `fresh`, or if another process has
        changed it. If none is stored, only the existence of a file is checked. Raises `AuthProblem` if the
        store fails, unless an account is known and not `fresh`."""
        now = time.monotonic()
        is_known = self._account is not None
        is_current = self._stored_versions() == self._versions if is_known else now - self._looked_at < 1.0
        if is_current and not fresh:
            return self._account
        self._looked_at = now
        if self._unsaved is not None:
            return self._account
        try:
            return await self._read()
        except AuthProblem:
            if fresh or not is_known:
                raise
            return self._account

    async def _read(self) -> Account | None:
        changes, versions = self._changes, self._stored_versions()
        try:
            data = await self.vault.read(self.entry.key)
        except StoreFailed as failed:
            raise AuthProblem(str(failed), failed.hint) from None
        self._versions = versions
        if (
            changes == self._changes
        ):  # otherwise the account that was read may be older than one written meanwhile
            self._adopt(None if data is None else decode_account(data))
        return self._account

    async def save(self, account: Account) -> None:
        """Stores the account. Call with the lock held. If it cannot be stored, this process uses it
        nevertheless."""
        try:
            await self.vault.write(self.entry.key, encode_account(account))
            self._unsaved = None
        except StoreFailed as failed:
            if self._unsaved is None:
                self._replaced = None if self._account is None else self._account.tokens
            self._unsaved = account
            if self._storing is None or self._storing.done():
                self._storing = asyncio.create_task(self._store_later())
            raise AuthProblem(str(failed), failed.hint) from None
        finally:
            self._changes += 1
            self._versions = self._stored_versions()
            self._adopt(account)
        self.needs_auth.forget()

    async def _store_later(self) -> None:
        """Stores the unstored account once the store answers; other processes would otherwise use the old
        refresh token, which is used up. A sign-in or sign-out of another process takes precedence. The lock
        is not needed for that, and Redis would keep a lock that could not be released."""
        while (account := self._unsaved) is not None:
            await asyncio.sleep(STORE_SECONDS)
            with contextlib.suppress(AuthProblem, StoreFailed):
                data = await self.vault.read(self.entry.key)
                stored = None if data is None else decode_account(data)
                if self._unsaved is not account:
                    continue
                if self._replaced is None if stored is None else stored.tokens in (None, self._replaced):
                    await self.save(account)
                else:
                    self._unsaved = None
                    self._adopt(stored)

    async def forget(self) -> None:
        """Deletes the account. Call with the lock held."""
        self._unsaved = None
        try:
            await self.vault.remove(self.entry.key)
        except StoreFailed as failed:
            raise AuthProblem(str(failed), failed.hint) from None
        finally:
            self._changes += 1
            self._account = None

    async def resolve_secrets(self) -> None:
        """Reads the secrets that the entry only refers to. Raises `Refused`."""
        entry = self.entry
        client = replace(entry.client, client_secret=await self._resolved(entry.client.client_secret))
        private_key = await self._resolved(entry.private_key)
        workload_token = await self._resolved(entry.workload_token)
        self.entry = replace(entry, client=client, private_key=private_key, workload_token=workload_token)

    async def _resolved(self, text: str | None) -> str | None:
        if text is None or not is_reference(text):
            return text
        from dragoman.auth.client_secrets import read_client_secret

        entry = self.entry
        local = self.vault.local
        try:
            secret = await in_store_thread(lambda: read_client_secret(local, text, entry.server, entry.url))
        except StoreFailed as failed:
            raise Unavailable(str(failed), failed.hint) from None
        self._learned([secret])
        return secret

    def learn(self, secrets: Iterable[str]) -> None:
        self._learned(secrets)

    async def wait_for_sign_in(self) -> None:
        """Returns when another process has stored a sign-in since the store was last read here."""
        while not self._is_newer_stored():  # noqa: ASYNC110  another process sets no event here
            await asyncio.sleep(SIGN_IN_POLL_SECONDS)
        self.needs_auth.forget()

    def _is_newer_stored(self) -> bool:
        versions = zip(self._stored_versions(), self._versions, strict=True)
        return any(version not in (None, UNREADABLE, known) for version, known in versions)

    def _stored_versions(self) -> tuple[tuple[int, int] | None, ...]:
        """The versions of the account, and of the company sign-on that it depends on, if any."""
        return tuple(self.vault.version(key) for key in self.entry.stored_keys)

    async def close(self) -> None:
        """Waits for a running refresh: the refresh token that it sent may be used up, and the new one must be
        stored. A refresh that still waits for the lock has sent nothing and is cancelled."""
        if self._renewing is not None and not self._renewing.done():
            if self._has_lock:
                await asyncio.wait([self._renewing], timeout=CLOSE_SECONDS)
            self._renewing.cancel()
        if self._storing is not None:
            self._storing.cancel()

    # Tokens.

    async def _current(self) -> Tokens | None:
        """Tokens that can be sent now; refreshed first if they expire soon."""
        account = await self.load()
        tokens = None if account is None else account.tokens
        if tokens is None:
            return None
        remaining = tokens.remaining_seconds(time.time())
        if remaining >= REFRESH_SECONDS or time.monotonic() < self._retry_at < time.monotonic() + remaining:
            return tokens
        is_usable = remaining > LEEWAY_SECONDS
        if tokens.refresh_token is None and not self.entry.is_unattended:
            if is_usable:
                return tokens
            raise self._sign_in_needed("the stored token has expired")
        try:
            await self._refresh(tokens.access_token, REFRESH_WAIT_SECONDS if is_usable else None)
        except (Unreachable, TimeoutError):
            if not is_usable:
                raise
            self._retry_at = time.monotonic() + RETRY_SECONDS
        return None if self._account is None else self._account.tokens

    async def _refresh(self, used: str | None, seconds: float | None = None) -> None:
        """One refresh for all messages that wait for it. A message that is cancelled does not end it."""
        if self._renewing is None or self._renewing.done():
            self._has_lock = False
            self._renewing = asyncio.create_task(self._renew_tokens(used), name="dragoman refresh")
            self._renewing.add_done_callback(_note_failure)
        done, _ = await asyncio.wait([self._renewing], timeout=seconds)
        if not done:
            raise TimeoutError
        await self._renewing

    async def _renew_tokens(self, used: str | None) -> bool:
        try:
            async with self.vault.locked(self.entry.key):
                self._has_lock = True
                stored = await self.load(fresh=True)
                if stored is not None and _access_token(stored) not in (None, used):
                    assert stored.tokens is not None
                    if stored.tokens.remaining_seconds(time.time()) > LEEWAY_SECONDS:
                        return True
                await self._obtain(stored)
                return True
        except Unavailable as problem:
            raise Unreachable(self.entry.server, "sign-in", problem.cause, hint=problem.hint) from None
        except AuthProblem as problem:
            raise self._sign_in_needed(problem.cause, problem.hint) from None

    async def _obtain(self, stored: Account | None) -> None:
        from dragoman.auth import grants

        await self.resolve_secrets()
        if self.entry.is_unattended:
            await self.save(await grants.unattended(self, stored))
            return
        if stored is None or stored.tokens is None:
            raise AuthProblem("no sign-in is stored for it")
        try:
            renewed = await grants.refresh(self, stored)
        except Rejected as problem:
            if problem.error not in TERMINAL_ERRORS:
                raise
            # On a file system without locks, another process may have refreshed it already.
            newer = await self.load(fresh=True)
            if newer is not None and newer.tokens is not None and newer.tokens != stored.tokens:
                return
            await self.save(replace(stored, tokens=None))
            self.needs_auth.remember()
            raise
        with contextlib.suppress(AuthProblem):  # tokens that cannot be stored can be used nevertheless
            await self.save(renewed)

    async def _note_missing_scopes(self, asked: Mapping[str, str]) -> bool:
        if asked.get("error") != "insufficient_scope":
            return False
        account = await self.load()
        granted = () if account is None or account.tokens is None else account.tokens.scopes
        missing = tuple(each for each in scopes_in(asked.get("scope", "")) if each not in granted)
        is_new = not set(missing) <= set(self.missing_scopes)
        # The latest are kept: a server may name others each time.
        self.missing_scopes = tuple(dict.fromkeys((*self.missing_scopes, *missing)))[-SCOPE_LIMIT:]
        if is_new:
            await self._store_missing_scopes()
        if self.entry.is_unattended and missing and is_new:
            await self._refresh(None if account is None else _access_token(account))
            return True
        return False

    async def _store_missing_scopes(self) -> None:
        """Stores the missing scopes, so that a sign-in in another process requests them, too. It may fail
        without an error."""
        try:
            async with self.vault.locked(self.entry.key):
                stored = await self.load(fresh=True)
                if stored is not None and stored.tokens is not None:
                    await self.save(replace(stored, missing_scopes=self.missing_scopes))
        except (AuthProblem, SignInNeeded):
            pass

    def dpop_key(self, account: Account | None) -> DpopKey:
        """The key to which the account's tokens are bound; a new key if there is no account."""
        from dragoman.auth.dpop import DpopKey

        stored = None if account is None else account.dpop_key
        if self._dpop is None or (stored is not None and self._dpop.private != stored):
            self._dpop = DpopKey(stored)
        return self._dpop

    def _adopt(self, account: Account | None) -> None:
        self._account = account
        if account is not None:
            self._learned(account.secrets)

    def _sign_in_needed(self, cause: str, hint: str | None = None) -> SignInNeeded:
        error = SignInNeeded(self.entry.server, "sign-in", cause, hint=hint or self.advice)
        error.challenge = self._header
        return error


def _note_failure(task: asyncio.Task[bool]) -> None:
    """Reads the error of a refresh that no message waits for; asyncio would log it otherwise."""
    if not task.cancelled():
        task.exception()


def _access_token(account: Account) -> str | None:
    return None if account.tokens is None else account.tokens.access_token


def _token_in(headers: Mapping[str, str]) -> str | None:
    """The token in the headers of a refused message."""
    for name, value in headers.items():
        if name.lower() == "authorization":
            return value.partition(" ")[2]
    return None

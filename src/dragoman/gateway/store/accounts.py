"""Accounts that several replicas of a gateway share, its own and those of callers: in Redis, encrypted.

One replica refreshes an account at a time. Others are notified of each change, and read the account again
before they use it next. While Redis does not answer, tokens in memory are used until they expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Final

from dragoman.auth.errors import Unavailable
from dragoman.auth.lock import WAIT_SECONDS
from dragoman.auth.stores.base import StoreFailed, Vault
from dragoman.errors import StoreUnavailable
from dragoman.gateway.store.redis import RedisStore

ACCOUNT_SECONDS: Final = 90 * 24 * 3600.0
"""How long an account is kept after its last use."""
WRITE_SECONDS: Final = 10.0
"""How long a write is tried: a refresh token that was used is lost if the new one is not stored."""
PAUSE_SECONDS: Final = 0.5
VERSIONS_LIMIT: Final = 10_000
"""Accounts whose changes are counted; with one more, all are read again before their next use."""
HINT: Final = (
    "The accounts of a gateway are in its store, which must answer. "
    "Start it, or correct `store` in the gateway's file."
)


class SharedAccounts:
    """An `AccountStore`."""

    def __init__(self, store: RedisStore, local: Vault, announce: Callable[[str], Awaitable[object]]) -> None:
        """`announce` notifies the other replicas that the account of a key has changed."""
        self._store = store
        self._local = local
        self._announce = announce
        self._versions: dict[str, int] = {}
        self._missed = 0
        """How often changes may have been missed."""

    @property
    def local(self) -> Vault:
        return self._local

    @property
    def login_option(self) -> str:
        return "--gateway FILE"

    async def read(self, key: str) -> bytes | None:
        try:
            return await self._store.get(_store_key(key), ACCOUNT_SECONDS)
        except StoreUnavailable as error:
            raise StoreFailed(str(error), HINT) from None

    async def write(self, key: str, secret: bytes) -> None:
        await self._change(key, lambda: self._store.put(_store_key(key), secret, ACCOUNT_SECONDS))

    async def remove(self, key: str) -> None:
        await self._change(key, lambda: self._store.delete(_store_key(key)))

    async def _change(self, key: str, change: Callable[[], Awaitable[None]]) -> None:
        deadline = monotonic() + WRITE_SECONDS
        while True:
            try:
                await change()
                break
            except StoreUnavailable as error:
                if monotonic() > deadline:
                    raise StoreFailed(str(error), HINT) from None
                await asyncio.sleep(PAUSE_SECONDS)
        self.changed(key)
        with suppress(StoreUnavailable):  # they read everything again when they are connected again
            await self._announce(key)

    def changed(self, key: str | None) -> None:
        """The account was changed; None: any may have been, without a notification."""
        if key is None:
            self._missed += 1
        elif key in self._versions:
            self._versions[key] += 1

    def version(self, key: str) -> tuple[int, int] | None:
        if key not in self._versions and len(self._versions) >= VERSIONS_LIMIT:
            self._versions.clear()
            self._missed += 1
        return self._missed, self._versions.setdefault(key, 0)

    @asynccontextmanager
    async def locked(self, key: str, wait_seconds: float | None = None) -> AsyncGenerator[None]:
        lock = self._store.locked(_store_key(key), WAIT_SECONDS if wait_seconds is None else wait_seconds)
        try:
            await lock.__aenter__()
        except StoreUnavailable as error:
            raise Unavailable(str(error), error.hint) from None
        try:
            yield
        finally:
            await lock.__aexit__(None, None, None)

    async def close(self) -> None:
        await self._store.close()

    def description_of(self, key: str) -> str:
        return f"encrypted in {self._store.where}"


def _store_key(key: str) -> str:
    return f"account {key}"

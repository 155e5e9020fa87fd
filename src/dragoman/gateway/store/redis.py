"""The store that several replicas of a gateway share: Redis.

Values and messages are encrypted (AES-256-GCM) with the key of the gateway's settings, and keys are hashed: a
party that can read Redis learns neither sessions nor answers of clients, and cannot forge any. If Redis does
not answer, `StoreUnavailable` is raised within two seconds, and immediately for a short time after that.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from time import monotonic
from typing import Any, Final, TypeVar, cast

from yarl import URL

from dragoman.errors import ConfigError, MissingPackage, StoreUnavailable
from dragoman.gateway.settings import StoreEntry
from dragoman.gateway.store.base import MINUTE_SECONDS
from dragoman.own_threads import resolve
from dragoman.servers.shared_reads import Found
from dragoman.transports.pacing import Pacer, clock

T = TypeVar("T")

CONNECT_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 2.0
CONNECTIONS: Final = 16
PAUSE_SECONDS: Final = 0.5
"""How long Redis is not contacted after a failure."""
PING_SECONDS: Final = 10
GRANT_SECONDS: Final = 12 * 3600
"""How long grants last after the newest of them."""
LOCK_SECONDS: Final = 30.0
"""How long after the death of its holder a lock ends."""
TAKEN_SECONDS: Final = 3.0
"""A lock that was taken by a command whose answer is not waited for any more ends so long after it."""
LOCK_POLL_SECONDS: Final = 0.05
BATCH: Final = 500
"""The most calls that are counted, and the most messages of a stream that are read, with one command."""
APPENDED_LIMIT: Final = 10_000
"""Messages in the stream; more drop the oldest."""
_FIELD: Final = b"message"
_FAILURE: Final = Exception
"""Border: the library, with whatever a server has answered that may be no Redis."""
_COUNT: Final = """
local now = redis.call('TIME'); now = now[1] * 1000000 + now[2]
local span, waits = ARGV[1] * 1000000, {}
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - span)
  redis.call('ZREMRANGEBYSCORE', key, now + 1, '+inf')
  if redis.call('ZCARD', key) < tonumber(ARGV[i + 2]) then
    redis.call('ZADD', key, now, i .. ARGV[2])
    redis.call('EXPIRE', key, ARGV[1])
    waits[i] = 0
  else
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
    waits[i] = math.max(1, (first or now) + span - now)
  end
end
return waits
"""
"""By the clock of Redis: those of the replicas may differ. Where it was set back, calls of the future do not
count."""

_GET_VERSIONED: Final = """
return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]), redis.call('PTTL', KEYS[2])}
"""


class RedisStore:
    def __init__(self, entry: StoreEntry) -> None:
        try:
            import redis.asyncio as library
            from redis.exceptions import LockNotOwnedError, ResponseError
        except ImportError:
            raise MissingPackage("redis", "gateway") from None
        self._lock_lost = LockNotOwnedError
        self._refused = ResponseError
        self.replica = secrets.token_hex(6)
        """The name of this replica."""
        self._prefix = f"dragoman:{entry.name}:"
        self._seal = Seal(entry.key)
        try:
            self.where = f"Redis at {URL(entry.redis).host}"
            pool: Any = library.BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
                entry.redis,
                max_connections=CONNECTIONS,
                timeout=ANSWER_SECONDS,
                socket_timeout=None,  # see _do
                socket_connect_timeout=CONNECT_SECONDS,
            )
            self._redis: Any = library.Redis.from_pool(pool)
            self._listening: Any = library.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
                entry.redis,
                socket_timeout=None,
                socket_connect_timeout=CONNECT_SECONDS,
                socket_keepalive=True,
                health_check_interval=PING_SECONDS,
            )
            for each in (pool, self._listening.connection_pool):
                each.connection_class = _resolving(each.connection_class)
        except ValueError as error:
            raise ConfigError(f"store: {error}") from None
        self._count: Any = self._redis.register_script(_COUNT)
        self._get_versioned: Any = self._redis.register_script(_GET_VERSIONED)
        self._uncounted: list[tuple[str, int, asyncio.Future[float]]] = []
        """Key, limit and result of calls that wait to be counted."""
        self._counting: asyncio.Task[None] | None = None
        self._down_until = 0.0

    # Values.

    async def get(self, key: str, seconds: float) -> bytes | None:
        name = self._name(key)

        async def read() -> bytes | None:
            found = await self._redis.getex(name, ex=int(seconds))
            return None if found is None else self._seal.opened(name, found)

        return await self._do(read)

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        name = self._name(key)
        sealed, milliseconds = self._seal.sealed(name, value), max(1, int(seconds * 1000))
        await self._do(lambda: self._redis.set(name, sealed, px=milliseconds))

    async def get_versioned(self, version_key: str, key: str) -> Found:
        """A value, and the version that it has to have; empty if there is none."""
        names = [self._name(version_key), self._name(key)]
        version, value, milliseconds = await self._do(lambda: self._get_versioned(keys=names))
        return Found(
            (self._seal.opened(names[0], version) or b"") if version else b"",
            self._seal.opened(names[1], value) if value else None,
            max(0, milliseconds) / 1000,
        )

    async def delete(self, key: str) -> None:
        await self._do(lambda: self._redis.unlink(self._name(key)))

    async def count_call(self, caller: str, limit: int) -> float:
        """Calls that come while others are being counted are counted together."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._uncounted.append((self._name(f"calls {caller}"), limit, future))
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._count_all())
        return await future

    async def _count_all(self) -> None:
        while self._uncounted:
            batch, self._uncounted = self._uncounted[:BATCH], self._uncounted[BATCH:]
            try:
                waits = await self._do(lambda: self._counted(batch))  # noqa: B023
                results: list[float | StoreUnavailable] = [*waits]
            except StoreUnavailable as error:
                results = [error] * len(batch)
            for (_, _, future), result in zip(batch, results, strict=True):
                if not future.done() and isinstance(result, StoreUnavailable):
                    future.set_exception(result)
                elif not future.done():
                    future.set_result(cast("float", result))

    async def _counted(self, batch: list[tuple[str, int, asyncio.Future[float]]]) -> list[float]:
        keys = [name for name, _, _ in batch]
        arguments = [int(MINUTE_SECONDS), secrets.token_hex(6), *(limit for _, limit, _ in batch)]
        waits = await self._count(keys=keys, args=arguments)
        return [wait / 1e6 for _, wait in zip(batch, waits, strict=True)]

    @contextlib.asynccontextmanager
    async def locked(self, key: str, wait_seconds: float) -> AsyncGenerator[None]:
        """A lock between replicas. It is extended while it is held, and expires if the holder's process
        ends."""
        name = self._name(f"lock {key}")
        lock: Any = self._redis.lock(name, timeout=TAKEN_SECONDS, blocking=False, thread_local=False)
        deadline = monotonic() + wait_seconds
        while not await self._do(lock.acquire):
            if monotonic() > deadline:
                raise StoreUnavailable(self.where, "another replica has held a lock for too long")
            await asyncio.sleep(LOCK_POLL_SECONDS)
        extending = asyncio.create_task(self._extend(lock))
        try:
            await self._do(lambda: lock.extend(LOCK_SECONDS, replace_ttl=True))
            yield
        finally:
            extending.cancel()
            await self._try(lock.release)  # else it ends by itself

    async def _extend(self, lock: Any) -> None:
        """Until it is cancelled, or the lock is lost."""
        failure: Exception | None = None
        while not isinstance(failure, self._lock_lost):
            await asyncio.sleep(LOCK_SECONDS / 3)
            failure = await self._try(lambda: lock.extend(LOCK_SECONDS, replace_ttl=True))

    async def _try(self, work: Callable[[], Awaitable[object]]) -> Exception | None:
        """Returns why it failed."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await work()
        except _FAILURE as error:
            return error
        return None

    # Grants: all in one hash, which each replica holds in memory too.

    async def grants(self) -> list[bytes]:
        name = f"{self._prefix}grants"

        async def read() -> list[bytes | None]:
            found: dict[bytes, bytes] = await self._redis.hgetall(name)
            return [self._seal.opened(name, value) for value in found.values()]

        return [value for value in await self._do(read) if value is not None]

    async def set_grant(self, key: str, value: bytes | None) -> None:
        """Stores a grant; None: it is revoked."""
        name, field = f"{self._prefix}grants", _digest(key)
        if value is None:
            await self._do(lambda: self._redis.hdel(name, field))
            return
        await self._do(lambda: self._redis.hset(name, field, self._seal.sealed(name, value)))
        await self._do(lambda: self._redis.expire(name, GRANT_SECONDS))

    # Messages to other replicas.

    async def publish(self, message: bytes, replica: str = "") -> int:
        """Sends a message to one replica, or to all; how many there are that get it."""
        name = self._channel(replica)
        sealed = self._seal.sealed(name, message)

        async def send() -> int:
            return int(await self._redis.publish(name, sealed))

        return await self._do(send)

    async def messages(self) -> AsyncGenerator[bytes | None]:
        """Those for this replica or for all, its own included. None: some may have been missed."""
        pacer = Pacer()
        while True:
            try:
                async with self._listening.pubsub(ignore_subscribe_messages=True) as subscription:
                    async with asyncio.timeout(ANSWER_SECONDS):
                        await subscription.subscribe(self._channel(""), self._channel(self.replica))
                    yield None
                    while True:
                        await pacer.next_turn()  # the library does not wait while it has messages
                        began = clock()
                        async with asyncio.timeout(PING_SECONDS + ANSWER_SECONDS):
                            got = await subscription.get_message(timeout=PING_SECONDS)
                        if got is not None and got["type"] == "message":
                            opened = self._seal.opened(got["channel"].decode(), got["data"])
                            if opened is not None:
                                yield opened
                        pacer.spend(began)
            except _FAILURE:
                await asyncio.sleep(PAUSE_SECONDS)

    # The audit log of all replicas: a stream.

    async def append(self, message: bytes) -> None:
        name = f"{self._prefix}audit"
        sealed = self._seal.sealed(name, message)
        await self._do(
            lambda: self._redis.xadd(name, {_FIELD: sealed}, maxlen=APPENDED_LIMIT, approximate=True)
        )

    async def appended(self, after: str, *, wait_seconds: float) -> list[tuple[str, bytes | None]]:
        """What follows the position, up to a limit: position and message of each; None for one that cannot
        be opened. `wait_seconds`: less than `ANSWER_SECONDS`."""
        name, block = f"{self._prefix}audit", int(wait_seconds * 1000) or None

        async def read() -> list[tuple[str, bytes | None]]:
            found = await self._redis.xread({name: after}, count=BATCH, block=block)
            return [
                (position.decode(), self._seal.opened(name, fields.get(_FIELD, b"")))
                for _, messages in found
                for position, fields in messages
            ]

        return await self._do(read)

    async def close(self) -> None:
        if self._counting is not None:
            await asyncio.wait([self._counting])
        await self._redis.aclose(close_connection_pool=True)
        await self._listening.aclose()

    def _channel(self, replica: str) -> str:
        return f"{self._prefix}to:{replica or 'all'}"

    def _name(self, key: str) -> str:
        return self._prefix + _digest(key)

    async def _do(self, work: Callable[[], Awaitable[T]], seconds: float = ANSWER_SECONDS) -> T:
        """The time limit is not the library's own: until Python 3.12, `asyncio.wait_for`, which that uses,
        can lose a cancellation."""
        if monotonic() < self._down_until:
            raise StoreUnavailable(self.where, "it did not answer a moment ago")
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except _FAILURE as error:
            if not isinstance(error, self._refused):  # it does answer: other commands may succeed
                self._down_until = monotonic() + PAUSE_SECONDS
            raise StoreUnavailable(self.where, type(error).__name__) from None


def _resolving(connection: Any) -> Any:
    """The library's class of connections, which resolves the name of the server in a thread of its own
    before it connects: the library would occupy the threads of the event loop with a name server that does
    not answer."""

    class Resolving(connection):
        async def _connect(self) -> None:
            if host := getattr(self, "host", ""):  # no unix socket
                async with asyncio.timeout(CONNECT_SECONDS):
                    await resolve(host, int(self.port))
            await super()._connect()  # pyright: ignore[reportUnknownMemberType]

    return Resolving


class Seal:
    """Encrypts values, each bound to its place."""

    def __init__(self, key: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        derived = hashlib.scrypt(key.encode(), salt=b"dragoman gateway", n=2**14, r=8, p=1, dklen=32)
        self._cipher = AESGCM(derived)

    def sealed(self, place: str, value: bytes) -> bytes:
        nonce = secrets.token_bytes(12)
        return nonce + self._cipher.encrypt(nonce, value, place.encode())

    def opened(self, place: str, sealed: bytes) -> bytes | None:
        """The decrypted value; None if it was not encrypted with this key for this place."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:12], sealed[12:], place.encode())
        except (InvalidTag, ValueError):
            return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""Sign-ins of callers that two replicas of a gateway share through a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.auth.stores.base import StoreFailed, Vault
from dragoman.gateway.replicas import announcing
from dragoman.gateway.store import accounts as accounts_module
from dragoman.gateway.store import redis as redis_module
from dragoman.gateway.store.accounts import SharedAccounts
from dragoman.gateway.store.redis import RedisStore
from dragoman.interaction import Caller
from tests.callers_site import Browser, CallersSite, begin, call, names, signed_in
from tests.gateway import BOB, Client, Running, gateway_of
from tests.integration.waiting import until
from tests.interop.redis_server import RedisServer, running_redis

Part = Callable[..., dict[str, Any]]
pytestmark = [
    pytest.mark.requirement("GWY-3"),
    pytest.mark.requirement("GWY-4"),
    pytest.mark.needs("redis-server"),
]


@pytest.fixture
async def redis(part: Part, tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path) as server:
        yield server


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


@contextlib.asynccontextmanager
async def two(redis: RedisServer, site: CallersSite) -> AsyncIterator[tuple[Running, Running]]:
    servers = {"tracker": site.entry}
    async with (
        gateway_of(servers, own=["tracker"], store=RedisStore(redis.entry)) as a,
        gateway_of(servers, own=["tracker"], store=RedisStore(redis.entry)) as b,
    ):
        channels = [f"dragoman:gateway:to:{each.gateway.replicas.name}" for each in (a, b)]  # type: ignore[union-attr]
        await until(lambda: _both_listen(redis, channels))
        # Behind a load balancer both have one address.
        for each in (a, b):
            assert each.gateway.callers is not None
            each.gateway.callers.pages.url = f"http://127.0.0.1:{a.port}"
        yield a, b


async def _both_listen(redis: RedisServer, channels: list[str]) -> bool:
    return (await redis.command("PUBSUB", "NUMSUB", *channels)).count(b":1\r\n") == 2


async def has_names(client: Client, *expected: str) -> bool:
    return await names(client) == list(expected)


def at(url: str, running: Running) -> str:
    """The same page, of another replica."""
    return f"http://127.0.0.1:{running.port}/{url.split('/', 3)[3]}"


async def test_a_sign_in_at_one_replica_is_used_by_the_other(redis: RedisServer, site: CallersSite) -> None:
    async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url) as second:
        assert await names(second) == ["tracker__authenticate"]
        await signed_in(first, site, "anna")
        await until(lambda: has_names(second, "tracker__look", "tracker__whoami"))
        async with redis.commands() as counted:
            for _ in range(5):
                assert [await call(first), await call(second)] == ["anna", "anna"]
        assert not counted.keys() & {"GET", "GETEX", "SET", "EVALSHA"}, "a call needs nothing of Redis"
        async with Client(b.url, BOB) as bob:
            assert await names(bob) == ["tracker__authenticate"]
        assert not list(Vault().folder.glob("*.secret")), "nothing is stored on this machine"


async def test_the_browser_may_be_sent_to_another_replica_at_every_step(
    redis: RedisServer, site: CallersSite
) -> None:
    async with two(redis, site) as (a, b), Client(a.url) as client, Browser(site, "anna") as browser:
        link = await begin(client)
        assert (await browser.open(at(link, b))).title == "Sign in to tracker"
        token = (await browser.open(link)).token
        pressed = await browser.press(at(link, b), token)
        assert pressed.status == 303
        back = (await browser.open(pressed.headers["Location"])).headers["Location"]
        async with Browser(site, "m") as other:
            assert (await other.open(at(back, b))).title == "Nothing to do here"
            assert (await other.open(at(link, b))).title == "Nothing to do here"
        assert (await browser.open(at(back, b))).title == "You are signed in"
        assert await call(client) == "anna"


async def test_a_sign_in_of_an_ended_replica_is_reported_as_ended(
    redis: RedisServer, site: CallersSite
) -> None:
    async with two(redis, site) as (a, b), Client(a.url) as client, Browser(site, "anna") as browser:
        link = await begin(client)
        replica = "0123456789ab"
        known = a.gateway.replicas
        assert known is not None
        gone = link.replace(known.name, replica)
        assert (await browser.open(at(gone, b))).title == "Nothing to do here"
        assert (await browser.open(at(link.replace(known.name, "all"), b))).title == "Nothing to do here"


async def test_one_refresh_serves_all_calls_at_both_replicas(redis: RedisServer, site: CallersSite) -> None:
    async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url) as second:
        await signed_in(first, site, "anna")
        await until(lambda: has_names(second, "tracker__look", "tracker__whoami"))
        for round_number in range(1, 4):
            site.expire()
            said = await asyncio.gather(*(call(client) for client in (first, second) * 10))
            assert said == ["anna"] * 20
            assert (site.refreshes, site.reused) == (["anna"] * round_number, [])


async def test_tokens_that_expire_soon_are_refreshed_once(redis: RedisServer) -> None:
    with CallersSite(expires_in=200) as site:  # less than five minutes: refreshed before it is used
        async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url) as second:
            await names(second)
            await signed_in(first, site, "anna")
            await until(lambda: has_names(second, "tracker__look", "tracker__whoami"))
            said = await asyncio.gather(*(call(client) for client in (first, second) * 10))
            assert said == ["anna"] * 20
            assert (site.refreshes, site.reused) == (["anna"], [])


async def test_redis_contains_only_encrypted_values(redis: RedisServer, site: CallersSite) -> None:
    async with two(redis, site) as (a, _), Client(a.url) as client:
        await signed_in(client, site, "anna")
        keys = (await redis.command("KEYS", "*")).split(b"\r\n")[2::2]
        assert keys
        values = [await redis.command("DUMP", key.decode()) for key in keys]
        values += [await redis.command("GET", key.decode()) for key in keys]
        for word in (b"canary", b"anna", b"ada", b"tracker", b"127.0.0.1", b"access_token", b"client"):
            assert not any(word in each for each in (*keys, *values)), word


async def test_a_value_of_another_name_or_key_is_not_an_account(
    redis: RedisServer, site: CallersSite
) -> None:
    """A party that can write to Redis gives no caller the account of another."""
    async with two(redis, site) as (a, _), Client(a.url) as ada, Client(a.url, BOB) as bob:
        await signed_in(ada, site, "anna")
        keys = set((await redis.command("KEYS", "*")).split(b"\r\n")[2::2])
        await signed_in(bob, site, "bert")
        (of_bob,) = [
            key
            for key in set((await redis.command("KEYS", "*")).split(b"\r\n")[2::2]) - keys
            if b"+string" in await redis.command("TYPE", key.decode())
        ]
        of_ada = [key for key in keys if b"+string" in await redis.command("TYPE", key.decode())]
        assert of_ada
        for key in of_ada:
            await redis.command("COPY", key.decode(), of_bob.decode(), "REPLACE")
            assert a.gateway.callers is not None
            await a.gateway.callers.close()
            assert await names(bob) == ["tracker__authenticate"]


async def test_while_redis_is_unreachable_tokens_in_memory_are_used_and_other_errors_name_it(
    redis: RedisServer, site: CallersSite
) -> None:
    async with two(redis, site) as (a, _), Client(a.url) as ada, Client(a.url, BOB) as bob:
        await signed_in(ada, site, "anna")
        await redis.kill()
        assert await call(ada) == "anna"
        said = await call(bob, "tracker__authenticate")
        assert "the gateway's store does not answer (Redis at 127.0.0.1" in said
        site.expire()
        assert "the gateway's store does not answer (Redis at 127.0.0.1" in await call(ada)
        assert site.refreshes == []
        await redis.start()  # empty
        await until(lambda: has_names(ada, "tracker__authenticate"))


async def test_a_sign_out_at_one_replica_applies_at_the_other(redis: RedisServer, site: CallersSite) -> None:
    async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url) as second:
        await signed_in(first, site, "anna")
        await until(lambda: has_names(second, "tracker__look", "tracker__whoami"))
        assert a.gateway.callers is not None
        own = a.gateway.callers.find(Caller("ada"))
        assert own is not None
        async with asyncio.timeout(10):
            assert await own.host.sign_out("tracker") is None
        site.tokens.update(site.owners)  # as at an authorization server whose tokens cannot be revoked
        before = len(site.sent)

        async def is_forgotten() -> bool:
            return await call(second) != "anna"

        await until(is_forgotten)
        await until(lambda: has_names(second, "tracker__authenticate"))
        after = len(site.sent)
        assert "sign-in" in await call(second, "tracker__authenticate")
        assert after - before <= 1, "at most a call before the other replica was notified"
        assert len(site.sent) == after


async def test_a_lock_of_an_ended_holder_expires_and_one_of_a_running_holder_stays(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_module, "LOCK_SECONDS", 0.6)
    one, other = RedisStore(redis.entry), RedisStore(redis.entry)
    order: list[str] = []

    async def wait_for_lock() -> None:
        async with other.locked("x", 10):
            order.append("other")

    async with one.locked("x", 10):
        waiting = asyncio.create_task(wait_for_lock())
        await asyncio.sleep(1.5)  # longer than the lock lasts by itself
        order.append("one")
    await waiting
    assert order == ["one", "other"]
    dead: Any = one._redis.lock(one._name("lock x"), timeout=0.6, thread_local=False)  # pyright: ignore[reportPrivateUsage]
    assert await dead.acquire()
    await wait_for_lock()
    for store in (one, other):
        await store.close()


async def test_a_write_is_retried_and_a_failure_names_the_store(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RedisStore(redis.entry)
    accounts = SharedAccounts(store, Vault(), announcing(store))
    await redis.kill()
    writing = asyncio.create_task(accounts.write("k", b"v"))
    await asyncio.sleep(0.1)
    await redis.start()
    await writing
    assert await accounts.read("k") == b"v"
    await redis.kill()
    monkeypatch.setattr(accounts_module, "WRITE_SECONDS", 0.0)
    for work in (accounts.write("k", b"w"), accounts.read("k")):
        with pytest.raises(StoreFailed, match="the gateway's store does not answer"):
            await work
    await store.close()

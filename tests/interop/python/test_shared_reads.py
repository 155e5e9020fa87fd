"""Resources that were read, shared by two replicas of a gateway through a real Redis."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.store.redis import RedisStore
from dragoman.wire.server.request import ClientRequest
from tests.callers_site import CallersSite, signed_in
from tests.gateway import BOB, Client, Json, Running, gateway_of
from tests.integration.waiting import until
from tests.interop.redis_server import RedisServer, running_redis
from tests.servers.office import Office
from tests.servers.web.office_socket import listening

Part = Callable[..., dict[str, Any]]
pytestmark = [
    pytest.mark.requirement("GWY-4"),
    pytest.mark.requirement("GWY-6"),
    pytest.mark.needs("redis-server"),
]


class KeepingOffice(Office):
    """Says how long, and for whom, what it gives may be kept, and counts what it is asked."""

    def __init__(self, scope: str | None = "public", ttl_ms: int = 60_000) -> None:
        super().__init__()
        self.hints = {"ttlMs": ttl_ms, **({} if scope is None else {"cacheScope": scope})}
        self.reads = 0

    async def _read(self, request: ClientRequest) -> Json:
        self.reads += 1
        return {**await super()._read(request), **self.hints}


@pytest.fixture
async def redis(part: Part, tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path) as server:
        yield server


@contextlib.asynccontextmanager
async def two(redis: RedisServer, office: Office) -> AsyncIterator[tuple[Running, Running, Client, Client]]:
    async with (
        listening(office) as entry,
        gateway_of({"office": entry}, store=RedisStore(redis.entry)) as a,
        gateway_of({"office": entry}, store=RedisStore(redis.entry)) as b,
        Client(a.url) as first,
        Client(b.url) as second,
    ):
        channels = [f"dragoman:gateway:to:{each.gateway.replicas.name}" for each in (a, b)]  # type: ignore[union-attr]
        await until(lambda: _both_listen(redis, channels))
        yield a, b, first, second


async def _both_listen(redis: RedisServer, channels: list[str]) -> bool:
    return (await redis.command("PUBSUB", "NUMSUB", *channels)).count(b":1\r\n") == 2


async def read(client: Client, uri: str = "file:///a") -> str:
    last = (await client.modern("resources/read", {"uri": uri})).last
    return str(last["result"]["contents"][0]["text"])


async def counts(running: Running, client: Client, level: str) -> dict[str, int]:
    url = f"http://127.0.0.1:{running.port}/metrics"
    async with client.http.get(url, headers=client.headers) as response:
        lines = (await response.text()).splitlines()
    start = f'dragoman_cache_total{{server="office",level="{level}"'
    found = [line for line in lines if line.startswith(start)]
    return {line.split('result="')[1].split('"')[0]: int(line.rpartition(" ")[2]) for line in found}


async def test_a_resource_read_by_one_replica_is_not_read_again_by_another(redis: RedisServer) -> None:
    office = KeepingOffice()
    async with two(redis, office) as (a, b, first, second):
        await read(first, "file:///b")  # the script is loaded
        async with redis.commands() as counted:
            assert await read(first) == "one"
        assert (counted["EVALSHA"], counted["SET"]) == (1, 1)
        async with redis.commands() as counted:
            assert [await read(second), await read(second)] == ["one", "one"]
        assert (counted["EVALSHA"], counted["SET"]) == (1, 0), "the second one is from memory"
        assert office.reads == 2
        assert await counts(a, first, "shared") == {"miss": 2}
        assert await counts(b, second, "shared") == {"hit": 1}
        assert (await counts(b, second, "memory"))["hit"] == 1


async def test_a_change_notified_to_one_replica_applies_to_both(redis: RedisServer) -> None:
    office = KeepingOffice()
    async with two(redis, office) as (a, b, first, second), Client(b.url) as watching:
        assert [await read(first), await read(second)] == ["one", "one"]
        await watching.initialize()
        await watching.legacy("resources/subscribe", {"uri": "file:///a"})
        office.files["file:///a"] = "another"
        await watching.legacy("tools/call", {"name": "office__touch", "arguments": {"uri": "file:///a"}})
        await until(lambda: _reads(first, "another"))
        assert await read(second) == "another"
        assert office.reads == 2, "the other replica has it from the store"
        assert (await counts(b, second, "shared"))["invalidated"] == 1
        assert (await counts(a, first, "memory"))["invalidated"] == 1


async def _reads(client: Client, expected: str) -> bool:
    return await read(client) == expected


@pytest.mark.parametrize("scope", ["private", None, "Public"])
async def test_private_resources_are_not_shared(redis: RedisServer, scope: str | None) -> None:
    office = KeepingOffice(scope)
    async with two(redis, office) as (_, _, first, second):
        before = await redis.command("DBSIZE")
        for _ in range(2):
            assert [await read(first), await read(second)] == ["one", "one"]
        assert office.reads == 2, "each replica by itself"
        assert await redis.command("DBSIZE") == before


async def test_shared_values_expire(redis: RedisServer) -> None:
    office = KeepingOffice(ttl_ms=1)
    async with two(redis, office) as (_, _, first, second):
        assert await read(first) == "one"
        office.files["file:///a"] = "another"
        await until(lambda: _reads(second, "another"))


async def test_redis_contains_neither_the_text_nor_the_uri(redis: RedisServer) -> None:
    office = KeepingOffice()
    office.files["file:///a"] = "canary-text"
    async with two(redis, office) as (_, _, first, _):
        await read(first)
        keys = (await redis.command("KEYS", "*")).split(b"\r\n")[2::2]
        values = [await redis.command("DUMP", key.decode()) for key in keys]
        assert keys
        for word in (b"canary", b"file:///", b"office"):
            assert not any(word in each for each in (*keys, *values)), word


async def test_a_value_copied_to_another_key_is_not_used(redis: RedisServer) -> None:
    office = KeepingOffice()
    async with two(redis, office) as (_, _, first, second):
        strings: list[bytes] = []
        for uri in ("file:///a", "file:///b"):
            before = set((await redis.command("KEYS", "*")).split(b"\r\n")[2::2])
            await read(first, uri)
            strings += set((await redis.command("KEYS", "*")).split(b"\r\n")[2::2]) - before
        of_a, of_b = (each.decode() for each in strings)
        await redis.command("COPY", of_b, of_a, "REPLACE")
        assert await read(second) == "one"
        assert office.reads == 3


@pytest.mark.parametrize("scope", [None, "public"])
async def test_t261_a_resource_read_with_a_callers_account_is_shared_only_if_public(
    redis: RedisServer, scope: str | None
) -> None:
    with CallersSite() as site:
        site.read_hints = {} if scope is None else {"cacheScope": scope}
        async with (
            gateway_of({"tracker": site.entry}, own=["tracker"], store=RedisStore(redis.entry)) as a,
            gateway_of({"tracker": site.entry}, own=["tracker"], store=RedisStore(redis.entry)) as b,
            Client(a.url) as ada,
            Client(b.url, BOB) as bob,
        ):
            found: list[str] = []
            for client, account in ((ada, "anna"), (bob, "bert")):
                await signed_in(client, site, account)
                await client.modern("resources/list")
                found += [await read(client, "account://me") for _ in range(2)]
        of_bob = "bert" if scope is None else "anna"
        assert found == ["anna", "anna", of_bob, of_bob]


async def test_without_redis_each_replica_reads_by_itself(redis: RedisServer) -> None:
    office = KeepingOffice()
    async with two(redis, office) as (a, _, first, second):
        await redis.kill()
        assert [await read(first), await read(second), await read(second)] == ["one", "one", "one"]
        assert office.reads == 2
        assert await counts(a, first, "shared") == {"unavailable": 1}

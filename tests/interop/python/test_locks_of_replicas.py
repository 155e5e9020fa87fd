"""The lock that replicas share, while a real Redis does not answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import StoreUnavailable
from dragoman.gateway.store.redis import RedisStore
from tests.interop.redis_server import RedisServer, running_redis

pytestmark = [pytest.mark.requirement("GWY-4"), pytest.mark.needs("redis-server")]
LONG_SECONDS = 20.0


@pytest.fixture
async def redis(part: Callable[..., dict[str, Any]], tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path) as server:
        yield server


@pytest.fixture
async def stores(redis: RedisServer) -> AsyncIterator[tuple[RedisStore, RedisStore]]:
    one, other = RedisStore(redis.entry), RedisStore(redis.entry)
    await one.put("key", b"connected", 60)
    yield one, other
    await one.close()
    await other.close()


async def take(store: RedisStore) -> None:
    async with store.locked("account", LONG_SECONDS):
        pass


async def test_a_redis_that_does_not_answer_is_not_waited_for(
    redis: RedisServer, stores: tuple[RedisStore, RedisStore]
):
    async with asyncio.timeout(LONG_SECONDS / 2):
        with redis.stopped(), pytest.raises(StoreUnavailable, match="does not answer"):
            await take(stores[0])
        await take(stores[1])  # the lock that Redis gave too late ends soon


async def test_a_lock_whose_waiter_was_cancelled_is_released(
    redis: RedisServer, stores: tuple[RedisStore, RedisStore]
):
    with redis.stopped():
        taking = asyncio.create_task(take(stores[0]))
        async with asyncio.timeout(LONG_SECONDS):
            await asyncio.wait([taking], timeout=0.2)  # the command is on its way
        taking.cancel()
    async with asyncio.timeout(LONG_SECONDS / 2):
        await take(stores[1])

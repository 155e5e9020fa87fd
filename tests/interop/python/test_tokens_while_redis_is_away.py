"""A refresh that is under way when a real Redis goes away, at one of two replicas."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.store import accounts as accounts_module
from dragoman.gateway.store import redis as redis_module
from tests.callers_site import CallersSite, call, signed_in
from tests.gateway import Client
from tests.integration.waiting import until
from tests.interop.python.test_shared_sign_ins import has_names, two
from tests.interop.redis_server import RedisServer, running_redis

pytestmark = [
    pytest.mark.requirement("GWY-3"),
    pytest.mark.requirement("GWY-4"),
    pytest.mark.needs("redis-server"),
]
LIMIT_SECONDS = 20.0


class WaitingSite(CallersSite):
    """A refresh is answered when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.may_refresh = threading.Event()

    def token(self, form: dict[str, str], login: str | None) -> dict[str, Any]:
        if form["grant_type"] == "refresh_token":
            self.is_asked.set()
            assert self.may_refresh.wait(LIMIT_SECONDS)
        return super().token(form, login)


@pytest.fixture
async def redis(part: Callable[..., dict[str, Any]], tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path, "--appendonly", "yes") as server:
        yield server


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[WaitingSite]:
    monkeypatch.setattr(accounts_module, "WRITE_SECONDS", 0.0)
    monkeypatch.setattr(redis_module, "LOCK_SECONDS", 5.0)
    with WaitingSite() as running:
        yield running


async def refreshed_without_redis(client: Client, redis: RedisServer, site: WaitingSite) -> None:
    """Redis is gone before the authorization server answers."""
    site.expire()
    calling = asyncio.create_task(call(client))
    assert await asyncio.to_thread(site.is_asked.wait, LIMIT_SECONDS)
    await redis.kill()
    site.may_refresh.set()
    await calling  # it ends before the refresh if the other replica makes the refresh
    await until(lambda: site.refreshes == ["anna"])


async def test_a_refresh_token_that_could_not_be_stored_is_stored_when_redis_is_back(
    redis: RedisServer, site: WaitingSite
) -> None:
    async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url) as second:
        await signed_in(first, site, "anna")
        await until(lambda: has_names(second, "tracker__look", "tracker__whoami"))
        await refreshed_without_redis(first, redis, site)
        await redis.start()
        await until(lambda: is_anna(second))
        await until(lambda: is_anna(first))
        assert (site.refreshes, site.reused) == (["anna"], [])


async def test_an_account_deleted_when_redis_is_back_is_not_stored_again(
    redis: RedisServer, site: WaitingSite, tmp_path: Path
) -> None:
    """As after a sign-out."""
    async with two(redis, site) as (a, _), Client(a.url) as client:
        await signed_in(client, site, "anna")
        await refreshed_without_redis(client, redis, site)
        shutil.rmtree(tmp_path / "appendonlydir")
        await redis.start()
        await until(lambda: is_refused(client))


async def is_anna(client: Client) -> bool:
    return await call(client) == "anna"


async def is_refused(client: Client) -> bool:
    return "sign-in" in await call(client)

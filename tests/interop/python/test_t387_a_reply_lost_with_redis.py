"""T387: Redis is away while one replica of a gateway has the reply to a request that came to another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway import replicas
from dragoman.gateway.store.redis import RedisStore
from dragoman.wire.server.request import ClientRequest
from tests.gateway import LEGACY, Client, Json, Running, gateway_of
from tests.integration.waiting import until
from tests.interop.python.test_replicas import FORMS, Part, answer, at
from tests.interop.redis_server import RedisServer, running_redis
from tests.servers.office import Office

pytestmark = [pytest.mark.requirement("GWY-4"), pytest.mark.needs("redis-server")]


@pytest.fixture
async def redis(part: Part, tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path) as server:
        yield server


class Slow(Office):
    """Asks once, and works until it is told to end."""

    def __init__(self) -> None:
        super().__init__((LEGACY,))
        self.works, self.may_end = asyncio.Event(), asyncio.Event()

    async def _ask(self, request: ClientRequest, arguments: Json) -> Any:
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"mode": "form", "message": "Who asks?", "requestedSchema": form}
        answered = await request.ask("elicitation/create", params)
        self.works.set()
        await self.may_end.wait()
        return answered


def is_answering(running: Running) -> bool:
    """Whether a replica answers a request for another."""
    assert running.gateway.replicas is not None
    return any(isinstance(key, tuple) for key in running.gateway.replicas._tasks)  # pyright: ignore[reportPrivateUsage]


async def test_t387_the_client_gets_an_error(redis: RedisServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replicas, "PRESENCE_SECONDS", 0.1)
    office = Slow()
    async with (
        gateway_of({"office": office}, store=RedisStore(redis.entry)) as a,
        gateway_of({"office": Office((LEGACY,))}, store=RedisStore(redis.entry)) as b,
        Client(a.url) as client,
    ):
        params: Json = {"name": "office__ask", "arguments": {}}
        reply = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
        (key,) = reply["inputRequests"]
        again = {"inputResponses": {key: answer("Ada")}, "requestState": reply["requestState"]}
        at(b, client)
        call = asyncio.create_task(client.modern("tools/call", {**params, **again}, capabilities=FORMS))
        await office.works.wait()
        await redis.kill()
        office.may_end.set()
        await until(lambda: not is_answering(a))
        await redis.start()
        async with asyncio.timeout(40):
            error = (await call).last["error"]
        assert error["message"] == replicas.LOST

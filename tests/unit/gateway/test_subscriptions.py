"""Subscriptions of one client of the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from dragoman.gateway.access import LOCAL
from dragoman.gateway.handlers import ClientHandlers
from dragoman.gateway.settings import View

URI = "file:///a"


class SlowResources:
    """Resources whose subscriptions end only when `may_end` is set."""

    def __init__(self) -> None:
        self.open = 0
        self.may_end = asyncio.Event()

    def for_caller(self, caller: object) -> SlowResources:
        return self

    async def list(self) -> list[Any]:
        return [SimpleNamespace(server="files", uri=URI)]

    async def templates(self) -> list[Any]:
        return []

    @asynccontextmanager
    async def subscribed(self, server: str, uri: str) -> AsyncIterator[AsyncIterator[Any]]:
        self.open += 1
        try:
            yield self._updates()
        finally:
            await self.may_end.wait()
            self.open -= 1

    async def _updates(self) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield


async def test_a_subscription_that_follows_an_ending_one_can_be_ended_too():
    resources = SlowResources()
    host = SimpleNamespace(resources=resources, configuration=SimpleNamespace(servers={}))
    gateway: Any = SimpleNamespace(host=host, callers=None, view={"": View()}.__getitem__)
    handlers = ClientHandlers(gateway, LOCAL, "")
    table = handlers.table()
    request: Any = SimpleNamespace(decode=lambda shape: shape(URI))
    async with asyncio.timeout(10):
        await table["resources/subscribe"](request)
        await table["resources/unsubscribe"](request)
        await table["resources/subscribe"](request)
        assert resources.open == 2
        resources.may_end.set()
        while resources.open == 2:
            await asyncio.sleep(0)
        await handlers.close()
    assert resources.open == 0

"""T467: a flood of messages from other replicas, or from other programs in Redis, does not block a
gateway."""

import asyncio
from typing import Any, Self

import pytest

from dragoman.gateway.settings import StoreEntry
from dragoman.gateway.store.redis import RedisStore
from dragoman.transports import pacing

pytestmark = pytest.mark.requirement("GWY-4")
COUNT = 2000


class Subscription:
    """Delivers all messages at once, as after one read from the socket."""

    def __init__(self, messages: list[tuple[str, bytes]]) -> None:
        self._messages = iter(messages)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def subscribe(self, *_: str) -> None: ...

    async def get_message(self, timeout: float) -> dict[str, Any]:
        found = next(self._messages, None)
        if found is None:
            await asyncio.Event().wait()
            raise AssertionError
        return {"type": "message", "channel": found[0].encode(), "data": found[1]}


@pytest.mark.parametrize("is_ours", [True, False])
async def test_t467_other_tasks_run_during_a_flood(is_ours: bool, monkeypatch: pytest.MonkeyPatch):
    store: Any = RedisStore(StoreEntry(redis="redis://127.0.0.1:1/0", key="k" * 32))
    channel = store._channel("")
    flood = [(channel, store._seal.sealed(channel, b"one") if is_ours else b"stranger")] * COUNT
    messages = [*flood, (channel, store._seal.sealed(channel, b"last"))]
    monkeypatch.setattr(store._listening, "pubsub", lambda **_: Subscription(messages))
    monkeypatch.setattr(pacing, "MESSAGE_SECONDS", pacing.TURN_SECONDS / 10)
    got = list[bytes | None]()

    async def listen() -> None:
        async for message in store.messages():
            got.append(message)

    turns, listening = 0, asyncio.create_task(listen())
    async with asyncio.timeout(20):
        while got[-1:] != [b"last"]:
            await asyncio.sleep(0)
            turns += 1
    listening.cancel()
    await asyncio.wait([listening])
    await store.close()
    assert got == [None, *([b"one"] * COUNT if is_ours else []), b"last"]
    assert turns >= COUNT // 10

"""T256: another program answers at the address of Redis: no request waits forever or is treated as
successful."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.errors import StoreUnavailable
from dragoman.gateway.settings import StoreEntry
from dragoman.gateway.store import redis
from dragoman.gateway.store.redis import RedisStore

pytestmark = pytest.mark.requirement("GWY-4")
KEY = "a-key-of-thirty-two-characters-or-more"
ANSWERS = {
    "three numbers": b"*3\r\n:1\r\n:2\r\n:3\r\n",
    "a text in a list": b"*1\r\n$3\r\nabc\r\n",
    "no number": b",nan\r\n",
    "a wrong length": b"$abc\r\n",
    "no text": b"-\xff\xfe\r\n",
    "full memory": b"-OOM command not allowed when used memory > 'maxmemory'\r\n",
}
Command = Callable[[RedisStore], Awaitable[Any]]
COMMANDS: dict[str, Command] = {
    "count": lambda store: store.count_call("ada", 5),
    "get": lambda store: store.get("key", 60),
    "grants": lambda store: store.grants(),
    "appended": lambda store: store.appended("0", wait_seconds=0.0),
}


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[RedisStore]:
    """A store that is connected to a server which sends the same answer to every Redis command."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            greetings = sum(data.upper().count(word) for word in (b"HELLO", b"SETINFO"))
            writer.write(b"+OK\r\n" * greetings or answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        store = RedisStore(StoreEntry(redis=f"redis://127.0.0.1:{port}/0", key=KEY))
        yield store
        await store.close()


@pytest.mark.parametrize("work", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_t256_an_invalid_answer_counts_as_a_store_that_does_not_answer(answer: bytes, work: Command):
    async with asyncio.timeout(20), answering(answer) as store:
        with pytest.raises(StoreUnavailable):
            await work(store)


async def test_t256_the_wait_for_messages_is_retried_after_an_invalid_answer(monkeypatch: pytest.MonkeyPatch):
    pauses, twice = 0, asyncio.Event()

    async def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 2:
            twice.set()
        await asyncio.Event().wait() if pauses > 2 else None

    async with asyncio.timeout(20), answering(ANSWERS["a wrong length"]) as store:
        monkeypatch.setattr(redis.asyncio, "sleep", pause)
        waiting = asyncio.ensure_future(anext(store.messages()))
        await asyncio.wait([waiting, asyncio.create_task(twice.wait())], return_when=asyncio.FIRST_COMPLETED)
        assert (waiting.done(), twice.is_set()) == (False, True)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        monkeypatch.undo()

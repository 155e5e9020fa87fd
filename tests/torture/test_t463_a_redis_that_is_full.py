"""T463: a Redis that is full refuses writes; stored values are still read meanwhile."""

import asyncio

import pytest

from dragoman.errors import StoreUnavailable
from dragoman.gateway.settings import StoreEntry
from dragoman.gateway.store.redis import RedisStore

pytestmark = pytest.mark.requirement("GWY-4")
KEY = "a-key-of-thirty-two-characters-or-more"
FULL = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"


async def full(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        greetings = sum(data.upper().count(word) for word in (b"HELLO", b"SETINFO"))
        writer.write(b"+OK\r\n" * greetings or (b"_\r\n" if b"GETEX" in data else FULL))
    writer.close()


async def test_t463_a_refused_command_does_not_fail_other_commands():
    server = await asyncio.start_server(full, "127.0.0.1", 0)
    async with asyncio.timeout(20), server:
        port = server.sockets[0].getsockname()[1]
        store = RedisStore(StoreEntry(redis=f"redis://127.0.0.1:{port}/0", key=KEY))
        with pytest.raises(StoreUnavailable, match="OutOfMemoryError"):
            await store.put("session", b"value", 60)
        assert await store.get("session", 60) is None
        await store.close()

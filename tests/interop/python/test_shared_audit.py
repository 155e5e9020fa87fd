"""The audit log that the replicas of a gateway share, in a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.events import ConfigurationChanged
from dragoman.gateway import shared_audit
from dragoman.gateway.settings import StoreEntry
from dragoman.gateway.shared_audit import SharedEntries
from dragoman.gateway.store.redis import RedisStore
from tests.gateway import ADA, BOB, Client, Json, Running, gateway_of
from tests.integration.waiting import until
from tests.interop.redis_server import RedisServer, running_redis
from tests.servers.office import Office

Part = Callable[..., dict[str, Any]]
pytestmark = [pytest.mark.requirement("GWY-4"), pytest.mark.needs("redis-server")]


@pytest.fixture
async def redis(part: Part, tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path) as server:
        yield server


@contextlib.asynccontextmanager
async def two(redis: RedisServer) -> AsyncIterator[list[Running]]:
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                gateway_of({"office": Office()}, store=RedisStore(redis.entry), audit=True)
            )
            for _ in range(2)
        ]


async def count(client: Client, to: int) -> None:
    params = {"name": "office__count", "arguments": {"to": to}}
    assert "result" in (await client.modern("tools/call", params)).last


async def read(entry: StoreEntry) -> list[Json]:
    store = RedisStore(entry)
    try:
        return await SharedEntries(store).next()
    finally:
        await store.close()


def settings_file(folder: Path, entry: StoreEntry) -> Path:
    path = folder / "gateway.json"
    store = {"redis": entry.redis, "key": entry.key}
    path.write_text(json.dumps({"callers": {"ada": {"token": ADA}}, "store": store}))
    path.chmod(0o600)
    return path


async def logs(path: Path, *words: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "dragoman", "logs", "--audit", "--gateway", str(path), *words)
    return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)


async def test_calls_at_all_replicas_are_shown_in_order_with_the_replica(redis: RedisServer, tmp_path: Path):
    path = settings_file(tmp_path, redis.entry)
    async with two(redis) as replicas, Client(replicas[0].url) as ada, Client(replicas[1].url, BOB) as bob:
        for client in (ada, bob, ada, bob):
            await count(client, 1)

        async def are_there() -> bool:
            return len(await read(redis.entry)) == 4

        await until(are_there)
        shown = await logs(path, "--json")
        lines = (await shown.communicate())[0].splitlines()
        entries = [json.loads(line) for line in lines]
        names = [f"-{each.gateway.replicas.name}" for each in replicas]  # type: ignore[union-attr]
        assert [(each["caller"], each["replica"][-13:]) for each in entries] == [
            ("ada", names[0]),
            ("bob", names[1]),
            ("ada", names[0]),
            ("bob", names[1]),
        ]
        assert [each["time"] for each in entries] == sorted(each["time"] for each in entries)
        assert all("values" not in each and each["arguments"] == ["to"] for each in entries)
        following = await logs(path, "-f", "-n", "1")
        assert following.stdout is not None
        async with asyncio.timeout(20):
            first = await following.stdout.readline()
            assert b"mcp__office__count" in first
            assert names[1].encode() in first
            await count(ada, 1)
            assert names[0].encode() in await following.stdout.readline()
        following.terminate()
        await following.communicate()


async def test_stored_entries_are_encrypted_and_the_last_ones_are_written_at_the_end(redis: RedisServer):
    async with two(redis) as replicas, Client(replicas[0].url) as ada:
        await count(ada, 1)
    assert [each["tool"] for each in await read(redis.entry)] == ["mcp__office__count"]
    stored = await redis.command("XRANGE", "dragoman:gateway:audit", "-", "+")
    assert stored.startswith(b"*1\r\n")
    assert b"office" not in stored
    assert await read(StoreEntry(redis=redis.entry.redis, key="another-key-of-thirty-two-characters")) == []


async def test_many_calls_need_few_redis_commands(redis: RedisServer):
    async with two(redis) as replicas, Client(replicas[0].url) as ada:
        await asyncio.gather(*(count(ada, 1) for _ in range(200)))
    assert len(await read(redis.entry)) == 200
    stored = await redis.command("XLEN", "dragoman:gateway:audit")
    assert int(stored.strip(b":\r\n")) <= 20


async def test_without_redis_calls_continue_and_dropped_entries_are_counted(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shared_audit, "WAITING_BYTES", 5000)
    monkeypatch.setattr(shared_audit, "RETRY_SECONDS", 0.1)
    async with two(redis) as replicas, Client(replicas[0].url) as ada:
        problems: list[str] = []

        async def listen() -> None:
            async for event in replicas[0].host.events():
                if isinstance(event, ConfigurationChanged):
                    problems.extend(event.problems)

        listening = asyncio.create_task(listen())
        await redis.kill()
        for _ in range(100):
            await count(ada, 1)
        await redis.start()

        async def are_there() -> bool:
            return bool(problems) and bool(await read(redis.entry))

        await until(are_there)
    await listening  # it ends with the host
    entries = await read(redis.entry)
    missing = sum(each.get("missing", 0) for each in entries)
    assert 0 < missing < 100
    assert sum("tool" in each for each in entries) == 100 - missing
    assert all("calls are missing in the audit log of all replicas" in each for each in problems)
    assert sum(int(each.split()[0]) for each in problems) == missing


async def test_a_gateway_without_a_store_has_no_shared_log(tmp_path: Path):
    path = tmp_path / "gateway.json"
    path.write_text(json.dumps({"callers": {"ada": {"token": ADA}}}))
    path.chmod(0o600)
    command = (sys.executable, "-m", "dragoman", "logs", "--gateway", str(path))
    done = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    said = (await done.communicate())[1].decode()
    assert done.returncode != 0
    assert 'has no "store", so the gateway has no shared audit log' in said

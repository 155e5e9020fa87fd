"""The sign-in of a server that all callers use, shared by two replicas of a gateway through a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import paths
from dragoman.auth.stores.base import Vault
from dragoman.gateway.store.redis import RedisStore
from tests.callers_site import CallersSite, call, names
from tests.gateway import BOB, Client, Running, gateway_of
from tests.integration.waiting import until
from tests.interop.redis_server import KEY, RedisServer, running_redis

Part = Callable[..., dict[str, Any]]
TOOLS = ["tracker__look", "tracker__whoami"]
pytestmark = [pytest.mark.requirement("GWY-4"), pytest.mark.needs("redis-server")]


@pytest.fixture
async def redis(part: Part, tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path) as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CallersSite]:
    """With an entry for it in the person's settings, and a browser whose person agrees."""
    program = tmp_path / "browser"
    script = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=30).read()"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(program))
    with CallersSite() as running:
        paths.make_private(paths.config_dir())
        settings = {"mcpServers": {"tracker": running.entry, "other": running.entry}}
        (paths.config_dir() / "settings.json").write_text(json.dumps(settings))
        yield running


@pytest.fixture
def gateway_file(redis: RedisServer, tmp_path: Path) -> Path:
    path = tmp_path / "gateway.json"
    callers = {"ada": {"token": "token-of-ada-0123456789"}}
    store = {"redis": redis.entry.redis, "key": KEY}
    path.write_text(json.dumps({"callers": callers, "callerSignIn": ["other"], "store": store}))
    path.chmod(0o600)
    return path


@contextlib.asynccontextmanager
async def two(redis: RedisServer, site: CallersSite) -> AsyncIterator[tuple[Running, Running]]:
    servers = {"tracker": site.entry}
    async with (
        gateway_of(servers, store=RedisStore(redis.entry)) as a,
        gateway_of(servers, store=RedisStore(redis.entry)) as b,
    ):
        channels = [f"dragoman:gateway:to:{each.gateway.replicas.name}" for each in (a, b)]  # type: ignore[union-attr]
        await until(lambda: _both_listen(redis, channels))
        yield a, b


async def _both_listen(redis: RedisServer, channels: list[str]) -> bool:
    return (await redis.command("PUBSUB", "NUMSUB", *channels)).count(b":1\r\n") == 2


async def dragoman(*words: str) -> tuple[int | None, str]:
    """The exit code of a command, and everything that it says, in one line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, " ".join(said.decode().split())


async def login(gateway_file: Path) -> None:
    code, said = await dragoman("mcp", "login", "tracker", "--gateway", str(gateway_file))
    assert code == 0, said
    assert "The tokens are encrypted in Redis at 127.0.0.1. Connected, 2 tools." in said


async def has_tools(client: Client) -> bool:
    return await names(client) == TOOLS


async def test_one_sign_in_applies_at_every_replica_and_for_all_callers(
    redis: RedisServer, site: CallersSite, gateway_file: Path
) -> None:
    async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url, BOB) as second:
        for each in (a, b):
            status = each.host.servers["tracker"]
            assert status.status == "needs-auth"
            assert "Run `dragoman mcp login --gateway FILE " in str(status.error.hint)  # type: ignore[union-attr]
        await login(gateway_file)
        for client in (first, second):
            await until(lambda client=client: has_tools(client))
            assert await call(client) == "unknown", "the account of the browser without a cookie"
        async with redis.commands() as counted:
            await call(first)
        assert not counted.keys() & {"GET", "GETEX", "SET", "EVALSHA"}, "a call needs nothing of Redis"
        assert not list(Vault().folder.glob("*.secret")), "nothing is stored on this machine"


async def test_one_refresh_serves_both_replicas_and_one_that_starts_later(
    redis: RedisServer, site: CallersSite, gateway_file: Path
) -> None:
    await login(gateway_file)
    async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url) as second:
        for round_number in range(1, 4):
            site.expire()
            said = await asyncio.gather(*(call(client) for client in (first, second) * 10))
            assert said == ["unknown"] * 20
            assert (site.refreshes, site.reused) == (["unknown"] * round_number, [])


async def test_stored_sign_ins_are_shown_and_ended_by_the_commands(
    redis: RedisServer, site: CallersSite, gateway_file: Path
) -> None:
    option = ("--gateway", str(gateway_file))
    await login(gateway_file)
    assert (await dragoman("mcp", "whoami", "tracker"))[0] == 4, "the sign-in of this machine is another one"
    code, said = await dragoman("mcp", "whoami", "tracker", *option)
    assert code == 0
    assert "tracker: signed in at" in said
    assert "tokens: encrypted in Redis at 127.0.0.1" in said
    async with two(redis, site) as (a, b), Client(a.url) as first, Client(b.url) as second:
        assert await call(first) == await call(second) == "unknown"
        assert await dragoman("mcp", "logout", "tracker", *option) == (0, "Signed out of tracker.")
        for client in (first, second):
            await until(lambda client=client: _is_refused(client))
    code, said = await dragoman("mcp", "whoami", "tracker", *option)
    assert code == 4
    assert f"Run `dragoman mcp login --gateway {gateway_file} tracker`." in said


async def _is_refused(client: Client) -> bool:
    return await call(client) != "unknown"


async def test_without_redis_errors_name_it_and_servers_reconnect_with_it(
    redis: RedisServer, site: CallersSite, gateway_file: Path
) -> None:
    await login(gateway_file)
    await redis.kill()
    for command in ("login", "logout", "whoami"):
        code, said = await dragoman("mcp", command, "tracker", "--gateway", str(gateway_file))
        assert code == 4, (command, said)
        assert "the gateway's store does not answer (Redis at 127.0.0.1" in said, command
    async with gateway_of({"tracker": site.entry}, store=RedisStore(redis.entry)) as running:
        status = running.host.servers["tracker"]
        assert "the gateway's store does not answer (Redis at 127.0.0.1" in str(status.reason)
        await redis.start()  # empty
        await login(gateway_file)
        async with Client(running.url) as client:
            await until(lambda: has_tools(client))


async def test_a_server_with_sign_ins_of_callers_and_a_gateway_without_store_are_refused(
    site: CallersSite, gateway_file: Path, tmp_path: Path
) -> None:
    code, said = await dragoman("mcp", "login", "other", "--gateway", str(gateway_file))
    assert code == 3
    assert "each caller of the gateway signs in to 'other' with an account of its own (callerSignIn)" in said
    alone = tmp_path / "alone.json"
    alone.write_text(json.dumps({"callers": {"ada": {"token": "token-of-ada-0123456789"}}}))
    alone.chmod(0o600)
    code, said = await dragoman("mcp", "login", "tracker", "--gateway", str(alone))
    assert code == 3
    assert 'has no "store", so the gateway has no shared sign-ins' in said

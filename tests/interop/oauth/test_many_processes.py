"""Eight processes share one sign-in with rotating refresh tokens: one of them refreshes each token, once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from tests.interop.oauth.parts import AuthorizationServer, Person, Protected

pytestmark = [pytest.mark.needs("oidc-provider"), pytest.mark.slow, pytest.mark.timeout(180)]
PROCESSES = 8
EXPIRIES = 20
TIMED_EXPIRIES = 8
"""Each takes as long as a token lasts."""
CALLER = Path(__file__).parent / "caller.py"


@asynccontextmanager
async def caller(mode: str, server: Protected) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CALLER),
        mode,
        json.dumps(server.entry),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    try:
        assert await said_by(process) == "connected"
        yield process
        stop(process)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def sign_in(server: Protected, person: Person) -> None:
    async with Host({"s": server.entry}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        assert (await host.sign_in("s", person, timeout=30)).status == "connected"


@pytest.mark.requirement("AUT-3")
async def test_one_refresh_when_a_token_stops_being_accepted(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server, AsyncExitStack() as stack:
        await sign_in(server, person)
        processes = await asyncio.gather(
            *(stack.enter_async_context(caller("rounds", server)) for _ in range(PROCESSES))
        )
        for turn in range(1, EXPIRIES + 1):
            await authorization.expire()
            said = await asyncio.gather(*map(one_call, processes))
            assert said == ["hello"] * PROCESSES, (await authorization.counts())["refusals"]
            assert (await authorization.grants())["refresh_token"] == turn
        await _nothing_was_used_twice(authorization)
        assert len(server.tokens) == 1 + EXPIRIES
    assert len(person.visits) == 1


@pytest.mark.requirement("AUT-3")
async def test_a_process_that_was_idle_during_several_refreshes_continues(
    authorization: AuthorizationServer, person: Person
) -> None:
    async with Protected(authorization) as server, AsyncExitStack() as stack:
        await sign_in(server, person)
        idle, busy = [await stack.enter_async_context(caller("rounds", server)) for _ in range(2)]
        for _ in range(3):
            await authorization.expire()
            assert await one_call(busy) == "hello"
        await authorization.expire()
        # The token that it has is not valid any more, and neither is the one that is stored.
        assert await one_call(idle) == "hello"
        assert (await authorization.grants())["refresh_token"] == 4
        await _nothing_was_used_twice(authorization)


async def one_call(process: asyncio.subprocess.Process) -> str:
    assert process.stdin is not None
    process.stdin.write(b"call\n")
    return await said_by(process)


async def said_by(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().rstrip()


def stop(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()


@pytest.mark.requirement("AUT-3")
async def test_one_refresh_as_a_token_is_about_to_expire(
    part: Callable[..., dict[str, Any]], person: Person
) -> None:
    async with (
        AuthorizationServer(part, tokenSeconds=3) as authorization,
        Protected(authorization) as server,
        AsyncExitStack() as stack,
    ):
        await sign_in(server, person)
        processes = await asyncio.gather(
            *(stack.enter_async_context(caller("time", server)) for _ in range(PROCESSES))
        )
        first = len((await authorization.counts())["refreshedAt"])
        async with asyncio.timeout(120):
            while len((await authorization.counts())["refreshedAt"]) < first + TIMED_EXPIRIES:
                await asyncio.sleep(0.1)
        times = (await authorization.counts())["refreshedAt"][first:]
        # Each token is refreshed when it is 600 ms old: never sooner, as by a process that had not noticed
        # that another one was faster. (Both clocks are rounded to milliseconds.)
        assert min(later - earlier for earlier, later in pairwise(times)) >= 598
        await _nothing_was_used_twice(authorization)
        for process in processes:
            stop(process)
        said = [await process.stdout.read() for process in processes if process.stdout is not None]
        assert said == [b""] * PROCESSES, "every call succeeded"
    assert len(person.visits) == 1


async def _nothing_was_used_twice(authorization: AuthorizationServer) -> None:
    counts = await authorization.counts()
    assert (counts["reuses"], counts["refusals"], counts["revoked"]) == (0, [], 0)

"""T35: One refresh for each expiry, for any number of concurrent calls and processes."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.auth.oauth import OAuthCredentials
from dragoman.credentials import Challenge
from tests.servers.web import Ask
from tests.servers.web.auth_world import AuthWorld
from tests.torture.signed_in import credentials_of, host_of, sign_in_before

pytestmark = pytest.mark.requirement("AUT-3")

PROCESS = """
import asyncio, sys
from dragoman.auth.entry import OAuthSettings
from dragoman.auth.http import NetworkAccess
from dragoman.auth.oauth import OAuthCredentials
from dragoman.auth.stores.base import Vault
from dragoman.credentials import Challenge

async def main():
    credentials = OAuthCredentials(OAuthSettings(server="x", url=sys.argv[1]), Vault(), NetworkAccess)
    headers = await credentials.headers()
    print("ready", flush=True)
    for line in sys.stdin:
        await credentials.renew(Challenge(401, sent=headers))
        headers = await credentials.headers()
        credentials.accepted(headers)  # the server takes the new token for a while
        print(headers["Authorization"], flush=True)

asyncio.run(main())
"""


async def renewed_together(credentials: Sequence[OAuthCredentials]) -> set[str]:
    """All are refused with the same token at the same time; returns the tokens that they have afterwards."""
    sent = await credentials[0].headers()
    await asyncio.gather(*(each.renew(Challenge(401, sent=sent)) for each in credentials))
    return {(await each.headers())["Authorization"] for each in credentials}


async def judge(world: AuthWorld, count: int = 8) -> None:
    """Credentials of this many processes: one refresh, no token used twice, all continue."""
    sign_in_before(world)
    found = await renewed_together([credentials_of(world) for _ in range(count)])
    assert (world.refreshes, world.reuses, len(found)) == (1, 0, 1)


async def test_t35_concurrent_users_of_one_token_share_one_refresh():
    async with AuthWorld() as world:
        await judge(world)


async def test_t35_fifty_calls_at_expiry_make_one_refresh():
    async with AuthWorld() as world:
        sign_in_before(world)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.expire_tokens()
            outcomes = await asyncio.gather(
                *(host.call("mcp__x__echo", {"text": f"{number}"}) for number in range(50))
            )
            assert [outcome.text for outcome in outcomes] == [f"{number}" for number in range(50)]
        assert (world.refreshes, world.reuses) == (1, 0)


async def test_t35_fifty_calls_shortly_before_expiry_make_one_refresh():
    """The token is still valid, and is refreshed early."""
    async with AuthWorld() as world:
        sign_in_before(world, expires_in=200)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            outcomes = await asyncio.gather(
                *(host.call("mcp__x__echo", {"text": f"{number}"}) for number in range(50))
            )
            assert [outcome.text for outcome in outcomes] == [f"{number}" for number in range(50)]
        assert (world.refreshes, world.reuses) == (1, 0)
        refused = [ask for ask in world.mcp.asks if "Authorization" not in ask.headers]
        assert refused == []


@pytest.mark.slow
async def test_t35_processes_share_one_refresh(home: Path):
    count, rounds = 4, 5
    async with AuthWorld() as world:
        sign_in_before(world)
        processes = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                PROCESS,
                world.mcp.url,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(count)
        ]
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        for number in range(1, rounds + 1):
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(b"again\n")
            lines = {await process.stdout.readline() for process in processes if process.stdout is not None}
            assert len(lines) == 1, lines
            assert world.refreshes == number
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
            assert await process.wait() == 0
        assert world.reuses == 0


async def test_t35_a_server_that_states_no_expiry_is_refreshed_after_each_401():
    """Its tokens expire without notice; each new one is used for a while, and then refused."""
    async with AuthWorld() as world:
        world.expires_in = None
        sign_in_before(world, expires_in=None)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            for number in range(1, 4):
                world.expire_tokens()
                assert (await host.call("mcp__x__echo", {"text": "x"})).text == "x"
                assert world.refreshes == number


async def test_t35_a_token_that_another_process_obtained_meanwhile_is_used():
    async with AuthWorld() as world:
        sign_in_before(world)
        first, second = credentials_of(world), credentials_of(world)
        sent = await first.headers()
        await second.headers()
        await first.renew(Challenge(401, sent=sent))
        assert await second.renew(Challenge(401, sent=sent)) is True
        assert await second.headers() == await first.headers()
        assert world.refreshes == 1


async def test_t35_a_refresh_token_that_is_not_rotated_is_kept(home: Path):
    async with AuthWorld() as world:
        account = sign_in_before(world)
        assert account.tokens is not None

        async def keeps(ask: Ask):
            from tests.servers.web.auth_world import answering

            return await answering({"access_token": "new", "token_type": "bearer", "expires_in": 3600})(ask)

        world.on["/token"] = keeps
        credentials = credentials_of(world)
        await credentials.renew(Challenge(401, sent=await credentials.headers()))
        again = await credentials_of(world).load()
        assert again is not None
        assert again.tokens is not None
        assert again.tokens.refresh_token == account.tokens.refresh_token
        assert again.tokens.access_token == "new"
        assert json.dumps(again.tokens.scopes) == '["read"]'

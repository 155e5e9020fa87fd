"""T36: A process with an outdated refresh token does not delete the newer token of another process."""

import pytest
from aiohttp import web

from dragoman.auth.stores.base import Vault
from dragoman.auth.tokens import decode_account, encode_account
from dragoman.credentials import Challenge
from dragoman.errors import SignInNeeded, Unreachable
from tests.servers.web import Ask
from tests.servers.web.auth_world import AuthWorld, refusal
from tests.torture.signed_in import account_of, credentials_of, sign_in_before

pytestmark = pytest.mark.requirement("AUT-3")


async def test_t36_a_newer_token_that_appears_during_the_refresh_is_used():
    """Written by a program that does not take the lock, as on a file system without locks."""
    async with AuthWorld() as world:
        sign_in_before(world)
        loser = credentials_of(world)
        sent = await loser.headers()
        newer = account_of(world)
        assert newer.tokens is not None

        async def wins(ask: Ask) -> web.StreamResponse:
            Vault().put(loser.entry.key, encode_account(newer))
            return refusal("invalid_grant")

        world.on["/token"] = wins
        assert await loser.renew(Challenge(401, sent=sent)) is True
        assert await loser.headers() == {"Authorization": f"Bearer {newer.tokens.access_token}"}
        stored = Vault().get(loser.entry.key)
        assert stored is not None
        assert decode_account(stored) == newer
        assert not loser.needs_auth.is_fresh()


async def test_t36_invalid_grant_deletes_the_tokens_and_keeps_the_registration():
    async with AuthWorld() as world:
        account = sign_in_before(world)
        world.refresh_tokens.clear()
        credentials = credentials_of(world)
        sent = await credentials.headers()
        with pytest.raises(SignInNeeded) as caught:
            await credentials.renew(Challenge(401, sent=sent))
        assert caught.value.cause == "invalid_grant"
        stored = await credentials_of(world).load()
        assert stored is not None
        assert (stored.tokens, stored.client) == (None, account.client)
        assert credentials_of(world).needs_auth.is_fresh()


@pytest.mark.parametrize("status", [404, 408, 429, 500, 502, 503, 504])
async def test_t36_a_failure_other_than_invalid_grant_deletes_nothing(status: int):
    async with AuthWorld() as world:
        account = sign_in_before(world)

        async def fails(ask: Ask) -> web.StreamResponse:
            return web.Response(status=status, text="no")

        world.on["/token"] = fails
        credentials = credentials_of(world)
        with pytest.raises(Unreachable if status != 404 else SignInNeeded):
            await credentials.renew(Challenge(401, sent=await credentials.headers()))
        assert await credentials_of(world).load() == account

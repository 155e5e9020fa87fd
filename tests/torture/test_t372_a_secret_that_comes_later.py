"""T372: a client secret that is added after a sign-in without one is sent only to a confirmed issuer."""

from typing import Any

import pytest

from dragoman.errors import SignInFailed
from tests.servers.web.auth_world import SECRET, AuthWorld, Browser
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("AUT-1")


async def sign_in(world: AuthWorld, browser: Browser, **oauth: Any) -> None:
    async with host_of(world, clientId="me", **oauth) as host:
        await host.ready(timeout=20)
        await host.sign_in("x", browser)


async def test_t372_an_issuer_named_by_a_server_is_confirmed_before_it_receives_a_secret():
    async with AuthWorld() as world:
        await sign_in(world, Browser())
        world.expire_tokens()
        world.refresh_tokens.clear()  # so that a new sign-in is needed
        person = Browser(confirms=False)
        with pytest.raises(SignInFailed, match="the client secret was not sent"):
            await sign_in(world, person, clientSecret=SECRET)
        assert person.questions == [("x", world.auth.origin)]
        assert SECRET not in world.canaries_in(world.auth)


async def test_t372_a_confirmed_issuer_is_not_asked_about_again():
    async with AuthWorld() as world:
        person = Browser(confirms=True)
        for _ in range(2):
            await sign_in(world, person, clientSecret=SECRET)
            world.expire_tokens()
            world.refresh_tokens.clear()
        assert person.questions == [("x", world.auth.origin)]
        assert SECRET in world.canaries_in(world.auth)

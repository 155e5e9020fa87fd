"""T461: an authorization server that sends unusual poll intervals for a device sign-in."""

import asyncio
from types import SimpleNamespace

import pytest
from aiohttp import web

from dragoman.auth import device
from dragoman.errors import SignInFailed
from tests.servers.web import Ask
from tests.servers.web.auth_world import AuthWorld, Browser, answering
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("AUT-10")


@pytest.mark.parametrize("interval", [1e-6, 5e-324, 0.5])
async def test_t461_polls_are_at_least_one_second_apart(interval: float, monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(device, "asyncio", SimpleNamespace(sleep=sleep))
    async with AuthWorld() as world:
        page = f"{world.auth.origin}/enter"
        codes = {"device_code": "d", "user_code": "ABCD", "verification_uri": page, "interval": interval}
        world.on["/device"] = answering(codes)

        async def token(ask: Ask) -> web.StreamResponse:
            if len(pauses) < 3:
                return web.json_response({"error": "authorization_pending"}, status=400)
            return web.json_response(world.issue())

        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.on["/token"] = token
            assert (await host.sign_in("x", Browser(), on_device=True)).status == "connected"
    assert pauses == [1.0, 1.0, 1.0]


async def test_t461_a_long_interval_does_not_extend_the_time_limit_of_the_sign_in():
    async with AuthWorld() as world:
        page = f"{world.auth.origin}/enter"
        codes = {"device_code": "d", "user_code": "ABCD", "verification_uri": page, "interval": 60}
        world.on["/device"] = answering(codes)
        async with host_of(world) as host:
            await host.ready(timeout=20)
            world.on["/token"] = answering({"error": "authorization_pending"}, 400)
            async with asyncio.timeout(20):
                with pytest.raises(SignInFailed, match="the code was not entered in time"):
                    await host.sign_in("x", Browser(), timeout=0.2, on_device=True)

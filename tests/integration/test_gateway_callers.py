"""Callers of the gateway with sign-ins of their own at one server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from dragoman.testing import InMemoryServer
from tests.callers_site import Browser, CallersSite, begin, call, names, signed_in
from tests.gateway import ADA, BOB, Client, Running, gateway_of

pytestmark = pytest.mark.requirement("GWY-3")


@pytest.fixture
def site():
    with CallersSite() as running:
        yield running


def shared() -> InMemoryServer:
    server = InMemoryServer("files")
    server.add_tool("look", lambda arguments, context: "seen by all")
    return server


@contextlib.asynccontextmanager
async def gateway(site: CallersSite, **options: object) -> AsyncIterator[Running]:
    servers = {"files": shared(), "tracker": site.entry}
    async with gateway_of(servers, own=["tracker"], **options) as running:
        yield running


async def test_a_caller_without_a_sign_in_sees_shared_tools_and_authenticate(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada:
        assert await names(ada) == ["files__look", "tracker__authenticate"]
        assert await call(ada, "files__look") == "seen by all"
        assert await call(ada) == "Unknown tool: tracker__whoami"


async def test_each_caller_uses_its_own_account(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        await signed_in(ada, site, "anna")
        assert await names(bob) == ["files__look", "tracker__authenticate"]
        await signed_in(bob, site, "bert")
        assert await names(ada) == ["files__look", "tracker__look", "tracker__whoami"]
        for _ in range(2):
            assert [await call(ada), await call(bob)] == ["anna", "bert"]

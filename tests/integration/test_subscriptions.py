"""Resources that are watched: in both eras, over several ways, and after the connection was lost."""

import asyncio
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import CallError, RemoteError
from dragoman.events import ResourceUpdated
from tests.integration.libraries import LEGACY, MODERN, Way, ready, ways
from tests.integration.waiting import until
from tests.servers import stdio_server
from tests.servers.library import Library

pytestmark = pytest.mark.requirement("CAT-9")
DIVAN = "book://divan"


async def soon(updates: Any) -> str:
    return (await asyncio.wait_for(anext(updates), 15)).uri


async def touch(host: Host, uri: str = DIVAN, times: int = 1) -> None:
    (await host.call("mcp__lib__touch", {"uri": uri, "times": times})).raise_for_error()


@ways
async def test_updates_are_reported_while_a_subscriber_exists(way: Way):
    async with way() as host:
        listener = host.events()
        async with host.resources.subscribed("lib", DIVAN) as updates:
            await touch(host)
            assert await soon(updates) == DIVAN
            await touch(host, f"{DIVAN}/page/7")
            assert await soon(updates) == f"{DIVAN}/page/7", "a part of it"
            async with host.resources.subscribed("lib", "book://atlas") as others:
                await touch(host, "book://atlas")
                assert await soon(others) == "book://atlas"
                await touch(host)
                assert await soon(updates) == DIVAN
            await touch(host)
            assert await soon(updates) == DIVAN, "that another has stopped makes no difference"
        assert [each async for each in updates] == []
        heard = [await asyncio.wait_for(_next_update(listener), 15) for _ in range(2)]
        assert heard == [
            ResourceUpdated(server="lib", uri=DIVAN),
            ResourceUpdated(server="lib", uri=f"{DIVAN}/page/7"),
        ]


async def _next_update(listener: Any) -> Any:
    while not isinstance(event := await anext(listener), ResourceUpdated):
        pass
    return event


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
async def test_the_last_unsubscribe_is_sent_to_the_server(revision: str):
    library = Library(revisions=(revision,))
    async with Host({"lib": library}, permission_mode="bypassPermissions") as host:
        await ready(host)
        (client,) = library._clients
        async with host.resources.subscribed("lib", DIVAN), host.resources.subscribed("lib", DIVAN):
            assert library.heard.count("resources/subscribe") <= 1
        if revision == LEGACY:
            assert client.subscribed == set()
        else:
            await until(lambda: len(client.listens) == 1)
            assert "resourceSubscriptions" not in next(iter(client.listens.values()))


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
async def test_after_a_lost_connection_the_subscription_is_renewed_and_an_update_reported(revision: str):
    entry = stdio_server("library.py", protocol=revision)
    settings = {"DRAGOMAN_RECONNECT_WAIT_MS": 10}
    async with Host({"lib": entry}, permission_mode="bypassPermissions", settings=settings) as host:
        await ready(host)
        async with host.resources.subscribed("lib", DIVAN) as updates:
            with pytest.raises(CallError):
                await host.call("mcp__lib__die")
            assert await soon(updates) == DIVAN, "it may have changed"
            await touch(host)
            assert await soon(updates) == DIVAN


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
async def test_a_subscription_to_a_server_without_the_capability_fails_at_once(revision: str):
    library = Library(revisions=(revision,), subscribe=False)
    async with Host({"lib": library}, permission_mode="bypassPermissions") as host:
        await ready(host)
        with pytest.raises(CallError, match="does not support resource subscriptions"):
            async with host.resources.subscribed("lib", DIVAN):
                raise AssertionError
        assert "resources/subscribe" not in library.heard


async def test_a_missing_resource_cannot_be_subscribed_to():
    async with Way("in-process", LEGACY)() as host:
        with pytest.raises(RemoteError):
            async with host.resources.subscribed("lib", "book://none"):
                raise AssertionError


async def test_a_flood_of_updates_only_takes_the_time_to_read_it():
    async with Way("stdio", LEGACY)() as host, host.resources.subscribed("lib", DIVAN) as updates:
        await touch(host, f"{DIVAN}/#", times=20_000)
        await touch(host)
        seen = 0
        while await soon(updates) != DIVAN:
            seen += 1
        assert seen <= 1000
        assert host.servers["lib"].status == "connected"


async def test_closing_the_host_during_a_subscription_is_clean():
    async with Way("in-process", MODERN)() as host, host.resources.subscribed("lib", DIVAN):
        await host.close()


async def test_closing_the_host_ends_the_iteration():
    async with Way("in-process", LEGACY)() as host, host.resources.subscribed("lib", DIVAN) as updates:
        waiting = asyncio.create_task(anext(updates, None))
        await host.close()
        assert await asyncio.wait_for(waiting, 15) is None


async def test_a_subscription_continues_after_its_server_is_disabled_and_enabled():
    async with Way("in-process", LEGACY)() as host, host.resources.subscribed("lib", DIVAN) as updates:
        await host.disable("lib", remember=False)
        await host.enable("lib", remember=False)
        assert await soon(updates) == DIVAN, "it may have changed"
        await touch(host)
        assert await soon(updates) == DIVAN

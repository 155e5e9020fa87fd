"""T388: after a restart of the gateway, a server does not answer a subscription that a client had
before."""

import asyncio
from pathlib import Path

import pytest

from dragoman.gateway.store.sqlite import SqliteStore
from dragoman.wire.server.request import ClientRequest
from tests.gateway import LEGACY, Client, Json, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

COUNT: Json = {"name": "good__count", "arguments": {"to": 1}}


class Stalling(Office):
    """Answers no subscription request."""

    async def _subscribe(self, request: ClientRequest) -> Json:
        self.ledger.append("subscribe")
        await asyncio.Event().wait()
        return {}


async def subscribe_to_all(client: Client) -> None:
    await client.initialize()
    listed = (await client.legacy("resources/list")).last["result"]["resources"]
    for each in listed:
        assert "result" in (await client.legacy("resources/subscribe", {"uri": each["uri"]})).last


@pytest.mark.requirement("GWY-3")
async def test_t388_the_session_continues_with_other_servers_and_keeps_its_subscriptions(tmp_path: Path):
    path, good = tmp_path / "sessions.sqlite", Office()
    servers = {"bad": Office((LEGACY,)), "good": Office((LEGACY,))}
    async with gateway_of(servers, store=SqliteStore(path)) as running, Client(running.url) as client:
        await subscribe_to_all(client)
        session = client.headers["Mcp-Session-Id"]
    for bad in (Stalling((LEGACY,)), Office((LEGACY,))):
        good = Office((LEGACY,))
        async with (
            gateway_of({"bad": bad, "good": good}, store=SqliteStore(path)) as running,
            Client(running.url) as client,
        ):
            client.headers["Mcp-Session-Id"] = session
            async with asyncio.timeout(30):
                assert "result" in (await client.legacy("tools/call", COUNT)).last
                assert "result" in (await client.legacy("logging/setLevel", {"level": "error"})).last
            await until(lambda good=good: sorted(good.subscribed) == ["file:///a", "file:///b"])
            if not isinstance(bad, Stalling):
                await until(lambda bad=bad: sorted(bad.subscribed) == ["file:///a", "file:///b"])

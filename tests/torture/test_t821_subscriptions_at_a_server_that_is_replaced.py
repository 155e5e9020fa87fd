"""T821: a gateway client is subscribed to a resource, and the entry of its server changes. The client still
receives updates. A subscription that a rule has ended can be requested again when the rule is removed."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.config.scopes import Sources
from tests.gateway import Client, Running, gateway_of
from tests.integration.waiting import until
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("GWY-2", "CAT-9")
BOOK_URI = "book://deed"


def write(home: Path, version: str = "1", deny: tuple[str, ...] = ()) -> None:
    servers = {"library": stdio_server("library.py", env={"VERSION": version})}
    file = home / ".dragoman" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers, "permissions": {"deny": deny}}))


@asynccontextmanager
async def watching(home: Path) -> AsyncIterator[tuple[Running, Client, Counter[str]]]:
    """A client that has subscribed to the resource, and the URIs of the updates it receives."""
    write(home)
    async with gateway_of(Sources.here()) as running, Client(running.url) as client:
        await client.initialize()
        seen = Counter[str]()

        async def listen() -> None:
            async with client.http.get(client.url, headers=client.headers) as stream:
                async for line in stream.content:
                    if b"notifications/resources/updated" in line:
                        seen[json.loads(line[6:])["params"]["uri"]] += 1

        listening = asyncio.create_task(listen())
        try:
            assert (await subscribe(client)).get("result") == {}
            yield running, client, seen
        finally:
            listening.cancel()
            await asyncio.wait([listening])


async def subscribe(client: Client) -> dict[str, object]:
    return (await client.legacy("resources/subscribe", {"uri": BOOK_URI})).last


async def touch(client: Client) -> None:
    called = await client.legacy("tools/call", {"name": "library__touch", "arguments": {"uri": BOOK_URI}})
    assert "result" in called.last


async def test_t821_updates_of_the_new_server_are_sent(home: Path):
    async with watching(home) as (running, client, seen):
        write(home, version="2")
        await running.host.reload()
        await until(lambda: seen[BOOK_URI])  # it may have changed meanwhile
        seen.clear()
        await touch(client)
        await until(lambda: seen[BOOK_URI])


async def test_t821_a_subscription_ended_by_a_rule_can_be_requested_again(home: Path):
    async with watching(home) as (running, client, seen):
        write(home, deny=("read_mcp_resource",))
        await running.host.reload()
        write(home)
        await running.host.reload()
        assert (await subscribe(client)).get("result") == {}
        await touch(client)
        await until(lambda: seen[BOOK_URI])


async def test_t821_a_removed_server_leaves_no_asyncio_task(home: Path):
    async with watching(home) as (running, client, _):
        (home / ".dragoman" / "settings.json").write_text("{}")
        await running.host.reload()
        await until(lambda: not any("ClientHandlers._watch" in repr(each) for each in asyncio.all_tasks()))
        assert "error" in await subscribe(client)

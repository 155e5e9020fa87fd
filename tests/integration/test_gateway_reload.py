"""Configuration files that change while clients of a gateway are connected."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import paths
from dragoman.config.scopes import Sources
from tests.callers_site import CallersSite, call, names, signed_in
from tests.gateway import MODERN, Client, Json, Running, gateway_of
from tests.integration.waiting import until

DEMO = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
CHANGED = "notifications/tools/list_changed"
pytestmark = [pytest.mark.slow, pytest.mark.requirement("GWY-1", "GWY-2")]


def write(**settings: Any) -> None:
    paths.make_private(paths.config_dir())
    file = paths.config_dir() / "settings.json"
    new = file.with_suffix(".new")
    new.write_text(json.dumps(settings))
    new.replace(file)


@contextlib.asynccontextmanager
async def gateway(**options: Any) -> AsyncIterator[Running]:
    async with gateway_of(Sources.here(), watch=True, **options) as running:
        yield running


@contextlib.asynccontextmanager
async def both_eras(running: Running) -> AsyncIterator[dict[str, list[str]]]:
    """By era, the notifications of a client that listens."""
    async with Client(running.url) as legacy, Client(running.url) as modern:
        await legacy.initialize()
        seen: dict[str, list[str]] = {"legacy": [], "modern": []}
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}

        async def listen(client: Client, era: str, method: str, **request: Any) -> None:
            more = request.pop("more", {})
            async with client.http.request(
                method, client.url, headers={**client.headers, **more}, **request
            ) as stream:
                assert stream.status == 200
                seen[era].append("open")
                async for line in stream.content:
                    if line.startswith(b"data: {"):
                        seen[era].append(json.loads(line[6:]).get("method", ""))

        tasks = [
            asyncio.create_task(listen(legacy, "legacy", "GET")),
            asyncio.create_task(listen(modern, "modern", "POST", json=message, more=headers)),
        ]
        try:
            await until(lambda: all(seen.values()))
            yield seen
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def servers(client: Client) -> set[str]:
    return {name.partition("__")[0] for name in await names(client)}


async def has_servers(client: Client, *expected: str) -> bool:
    return await servers(client) == set(expected)


async def notified(seen: dict[str, list[str]]) -> None:
    await until(lambda: all(CHANGED in each for each in seen.values()))
    for each in seen.values():
        each.clear()


async def test_added_changed_and_removed_servers_reach_clients_of_both_eras():
    write(mcpServers={"one": DEMO})
    async with gateway() as running, Client(running.url) as client, both_eras(running) as seen:
        assert await servers(client) == {"one"}
        write(mcpServers={"one": DEMO, "two": DEMO})
        await notified(seen)
        await until(lambda: has_servers(client, "one", "two"))
        pid = running.host.servers["two"].pid
        write(mcpServers={"one": DEMO, "two": {**DEMO, "env": {"CHANGED": "1"}}})
        await until(lambda: running.host.servers["two"].pid not in (None, pid))
        await notified(seen)
        await until(lambda: has_servers(client, "one", "two"))
        write(mcpServers={"one": DEMO})
        await until(lambda: has_servers(client, "one"))
        await notified(seen)
        last = (await client.modern("tools/call", {"name": "two__add", "arguments": {"a": 1, "b": 2}})).last
        assert last["error"]["message"] == "Unknown tool: two__add"


async def test_a_running_call_of_another_server_is_not_affected():
    write(mcpServers={"one": DEMO, "two": DEMO})
    async with gateway() as running, Client(running.url) as client:
        pid = running.host.servers["one"].pid
        params: Json = {"name": "one__count", "arguments": {"to": 3, "seconds": 2}}
        calling = asyncio.create_task(client.modern("tools/call", params))
        await until(lambda: bool(running.gateway._running))  # pyright: ignore[reportPrivateUsage]
        for change in ({"three": DEMO}, {"two": {**DEMO, "env": {"A": "1"}}}, {}):
            write(mcpServers={"one": DEMO, **change})
            expected = {"one", *change}
            await until(lambda expected=expected: set(running.host.servers) == expected)
        assert not calling.done()
        assert (await calling).last["result"]["content"][0]["text"].startswith("counted to 3")
        assert running.host.servers["one"].pid == pid


async def test_rules_and_policy_that_change_reach_clients_of_both_eras():
    write(mcpServers={"one": DEMO})
    async with gateway() as running, Client(running.url) as client, both_eras(running) as seen:
        add = {"name": "one__add", "arguments": {"a": 1, "b": 2}}
        write(mcpServers={"one": DEMO}, permissions={"deny": ["mcp__one__add"]})
        await notified(seen)
        assert "one__add" not in await names(client)
        assert (await client.modern("tools/call", add)).last["error"]["message"] == "Unknown tool: one__add"
        write(mcpServers={"one": DEMO})
        await notified(seen)
        assert (await client.modern("tools/call", add)).last["result"]["structuredContent"] == {"sum": 3}
        write(mcpServers={"one": DEMO}, deniedMcpServers=[{"serverName": "one"}])
        await notified(seen)
        await until(lambda: has_servers(client))
        write(mcpServers={"one": DEMO})
        await notified(seen)
        await until(lambda: has_servers(client, "one"))


async def test_servers_with_accounts_of_callers_follow_changed_files_too():
    with CallersSite() as site:
        write(mcpServers={"one": DEMO, "tracker": site.entry})
        async with (
            gateway(own=["tracker"]) as running,
            Client(running.url) as client,
            both_eras(running) as seen,
        ):
            await signed_in(client, site, "anna")
            await notified(seen)
            site.may_answer.clear()
            calling = asyncio.create_task(call(client))
            await until(lambda: site.calls == 1)
            write(mcpServers={"one": {**DEMO, "env": {"A": "1"}}, "two": DEMO, "tracker": site.entry})
            await until(lambda: has_servers(client, "one", "two", "tracker"))
            await notified(seen)
            site.may_answer.set()
            assert await calling == "anna", "the call went on"
            write(mcpServers={"one": DEMO, "tracker": site.entry}, permissions={"deny": ["mcp__tracker"]})
            await until(lambda: has_servers(client, "one"))
            await notified(seen)
            write(mcpServers={"one": DEMO, "tracker": site.entry})
            await until(lambda: has_servers(client, "one", "tracker"))
            await notified(seen)
            write(
                mcpServers={"one": DEMO, "tracker": site.entry}, deniedMcpServers=[{"serverName": "tracker"}]
            )
            await until(lambda: has_servers(client, "one"))
            await notified(seen)
            assert "Unknown tool" in await call(client)
            write(mcpServers={"one": DEMO, "tracker": site.entry})
            await until(lambda: has_servers(client, "one", "tracker"))
            await notified(seen)
            assert await call(client) == "anna"
            write(mcpServers={"one": DEMO})
            await until(lambda: has_servers(client, "one"))
            await notified(seen)


async def test_a_running_call_of_a_removed_server_ends_with_an_error_that_names_it():
    write(mcpServers={"one": DEMO})
    async with gateway() as running, Client(running.url) as client:
        params: Json = {"name": "one__count", "arguments": {"to": 30, "seconds": 60}}
        calling = asyncio.create_task(client.modern("tools/call", params))
        await until(lambda: bool(running.gateway._running))  # pyright: ignore[reportPrivateUsage]
        write(mcpServers={})
        result = (await calling).last["result"]
        assert result["isError"] is True
        assert result["content"][0]["text"].startswith("the connection to one was lost: ")

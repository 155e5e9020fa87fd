"""T85: A cached result is given only to callers that may have it, and only while it is fresh."""

from typing import Any

import pytest

from dragoman.gateway.settings import CallerEntry
from dragoman.wire.server.request import ClientRequest
from tests.gateway import ADA, BOB, Client, Json, Running, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-6")


class CachingOffice(Office):
    """Returns how long its results may be cached, and counts its requests."""

    ttl_ms: Any = 60_000
    reads = 0

    async def _read(self, request: ClientRequest) -> Json:
        self.reads += 1
        return {**await super()._read(request), "ttlMs": self.ttl_ms, "cacheScope": "public"}


async def counts(running: Running, client: Client) -> dict[str, int]:
    url = f"http://127.0.0.1:{running.port}/metrics"
    async with client.http.get(url, headers=client.headers) as response:
        lines = (await response.text()).splitlines()
    found = [line for line in lines if line.startswith('dragoman_cache_total{server="office",level="memory"')]
    return {line.split('result="')[1].split('"')[0]: int(line.rpartition(" ")[2]) for line in found}


async def read(client: Client, uri: str = "file:///a") -> Json:
    return (await client.modern("resources/read", {"uri": uri})).last


async def test_t85_hits_misses_and_invalidations_are_counted():
    office = CachingOffice()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        for _ in range(3):
            assert (await read(client))["result"]["contents"][0]["text"] == "one"
        assert office.reads == 1
        assert await counts(running, client) == {"hit": 2, "miss": 1, "invalidated": 0}
        await client.initialize()
        await client.legacy("resources/subscribe", {"uri": "file:///a"})
        office.files["file:///a"] = "another"
        await client.legacy("tools/call", {"name": "office__touch", "arguments": {"uri": "file:///a"}})
        await until(lambda: running.host.resources.cache_counts()["office"].get("invalidated", 0) == 1)
        del client.headers["Mcp-Session-Id"], client.headers["MCP-Protocol-Version"]
        assert (await read(client))["result"]["contents"][0]["text"] == "another"
        assert office.reads == 2


@pytest.mark.parametrize("ttl_ms", [0, -1, -(10**12), None, "60000"])
async def test_t85_a_result_that_is_not_fresh_is_not_cached(ttl_ms: Any):
    office = CachingOffice()
    office.ttl_ms = ttl_ms
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await read(client)
        await read(client)
    assert office.reads == 2


async def test_t85_a_cached_result_is_not_given_to_a_caller_without_permission():
    callers = {"ada": CallerEntry(token=ADA), "bob": CallerEntry(token=BOB, tools=("office__count",))}
    office = CachingOffice()
    async with gateway_of({"office": office}, callers=callers) as running, Client(running.url) as ada:
        assert "result" in await read(ada)
        assert len((await ada.modern("resources/list")).last["result"]["resources"]) == 2
        assert len((await ada.modern("tools/list")).last["result"]["tools"]) == 6
        async with Client(running.url, BOB) as bob:
            assert (await read(bob))["error"]["message"] == "no resource file:///a"
            assert (await bob.modern("resources/list")).last["result"]["resources"] == []
            listed = (await bob.modern("tools/list")).last["result"]
            assert [tool["name"] for tool in listed["tools"]] == ["office__count"]
            assert listed["cacheScope"] == "private"


async def test_t85_a_result_that_depends_on_an_answer_is_not_cached():
    office = CachingOffice(("2026-07-28",))

    async def asks(request: ClientRequest) -> Json:
        form = {
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}},
        }
        answer = await request.ask("elicitation/create", form)
        return {"contents": [{"uri": "file:///a", "text": str(answer["content"]["n"])}], "ttlMs": 60_000}

    office.service.handlers["resources/read"] = asks  # type: ignore[index]
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        for name in ("Ada", "Bob"):
            forms: Json = {"elicitation": {"form": {}}}
            asked = (await client.modern("resources/read", {"uri": "file:///a"}, capabilities=forms)).last[
                "result"
            ]
            (key,) = asked["inputRequests"]
            answer = {key: {"action": "accept", "content": {"n": name}}}
            again = {"uri": "file:///a", "inputResponses": answer, "requestState": asked["requestState"]}
            found = (await client.modern("resources/read", again, capabilities=forms)).last["result"]
            assert found["contents"][0]["text"] == name

"""Two replicas of a gateway that share a real Redis."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.settings import CallerEntry, StoreEntry
from dragoman.gateway.store.redis import RedisStore
from tests.gateway import ADA, BOB, CALLERS, LEGACY, Client, Json, Running, gateway_of
from tests.integration.waiting import until
from tests.interop.redis_server import RedisServer, running_redis
from tests.servers.office import Office

Part = Callable[..., dict[str, Any]]
pytestmark = [pytest.mark.requirement("GWY-4"), pytest.mark.needs("redis-server")]
FORMS: Json = {"elicitation": {"form": {}}}
COUNT: Json = {"name": "office__count", "arguments": {"to": 1}}


@pytest.fixture
async def redis(part: Part, tmp_path: Path) -> AsyncIterator[RedisServer]:
    async with running_redis(part, tmp_path) as server:
        yield server


@contextlib.asynccontextmanager
async def replica(
    entry: StoreEntry, office: Office, callers: Mapping[str, CallerEntry] = CALLERS, **options: Any
) -> AsyncIterator[Running]:
    async with gateway_of({"office": office}, callers=callers, store=RedisStore(entry), **options) as running:
        yield running


@contextlib.asynccontextmanager
async def two(
    redis: RedisServer, callers: Mapping[str, CallerEntry] = CALLERS, **options: Any
) -> AsyncIterator[tuple[Running, Running, Office, Office]]:
    first, second = Office((LEGACY,)), Office((LEGACY,))
    async with (
        replica(redis.entry, first, callers, **options) as a,
        replica(redis.entry, second, callers, **options) as b,
    ):
        channels = [f"dragoman:gateway:to:{each.gateway.replicas.name}" for each in (a, b)]  # type: ignore[union-attr]
        await until(lambda: _both_listen(redis, channels))
        yield a, b, first, second


async def _both_listen(redis: RedisServer, channels: list[str]) -> bool:
    return (await redis.command("PUBSUB", "NUMSUB", *channels)).count(b":1\r\n") == 2


def at(running: Running, client: Client) -> None:
    """The client's next messages go to this replica."""
    client.url = running.url


def text_of(message: Json) -> Any:
    return json.loads(message["result"]["content"][0]["text"])


def answer(name: str) -> Json:
    return {"action": "accept", "content": {"name": name}}


async def test_a_cancelled_command_is_cancelled_at_every_point(redis: RedisServer):
    store = RedisStore(redis.entry)
    try:
        await store.append(b"first")
        ended_early = 0
        for turns in range(60):
            task = asyncio.create_task(store.append(b"entry"))
            for _ in range(turns):
                await asyncio.sleep(0)
            was_cancelled = task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() == was_cancelled
            ended_early += was_cancelled
        assert ended_early > 3
    finally:
        await store.close()


async def test_a_legacy_session_of_one_replica_is_served_by_another(redis: RedisServer) -> None:
    async with two(redis) as (a, b, _, office_b), Client(a.url) as client, Client(b.url, BOB) as bob:
        await client.initialize(FORMS)
        assert "result" in (await client.legacy("resources/subscribe", {"uri": "file:///a"})).last
        assert "result" in (await client.legacy("logging/setLevel", {"level": "error"})).last
        at(b, client)
        bob.headers["Mcp-Session-Id"] = client.headers["Mcp-Session-Id"]
        assert (await bob.legacy("tools/list")).status == 404, "it is not known there yet"
        assert text_of((await client.legacy("tools/call", COUNT)).last) == 1
        await until(lambda: office_b.subscribed == ["file:///a"])
        assert (await bob.legacy("tools/list")).status == 404, "it is known there now"
        quiet = await client.legacy("tools/call", {**COUNT, "_meta": {"progressToken": 1}})
        assert [each.get("method") for each in quiet.messages] == ["notifications/progress", None]


async def test_a_session_that_was_ended_at_one_replica_has_ended_at_all(redis: RedisServer) -> None:
    async with two(redis) as (a, b, _, _), Client(a.url) as client:
        await client.initialize()
        at(b, client)
        assert (await client.legacy("tools/list")).status == 200
        assert (await client.post(b"", method="DELETE")).status == 204
        at(a, client)

        async def has_ended() -> bool:
            return (await client.legacy("tools/list")).status == 404

        await until(has_ended)


async def test_a_subscription_made_elsewhere_reaches_the_stream_of_the_session(redis: RedisServer) -> None:
    async with two(redis) as (a, b, office_a, _), Client(a.url) as client:
        await client.initialize()
        seen: list[Json] = []

        async def listen() -> None:
            headers = {**client.headers, "Accept": "text/event-stream"}
            async with client.http.get(a.url, headers=headers) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        seen.append(json.loads(line[6:]))

        listening = asyncio.create_task(listen())
        (session,) = a.gateway._connections  # pyright: ignore[reportPrivateUsage]
        assert session.subscribed == ()
        at(b, client)
        assert "result" in (await client.legacy("resources/subscribe", {"uri": "file:///a"})).last
        await until(lambda: office_a.subscribed == ["file:///a"])
        await a.host.call("mcp__office__touch", {"uri": "file:///a"})
        await until(lambda: bool(seen))
        assert seen[0]["method"] == "notifications/resources/updated"
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def test_an_answer_received_by_another_replica_reaches_the_call(redis: RedisServer) -> None:
    async with two(redis) as (a, b, _, _), Client(a.url) as client:
        await client.initialize(FORMS)
        names, done = iter(["Ada", "Bob"]), []
        message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "office__ask"}}
        async with client.http.post(a.url, headers=client.headers, json=message) as response:
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                received = json.loads(line[6:])
                if received.get("method") == "elicitation/create":
                    at(b, client)
                    reply = {"jsonrpc": "2.0", "id": received["id"], "result": answer(next(names))}
                    assert (await client.post(reply)).status == 202
                else:
                    done.append(received)
        assert [each["content"]["name"] for each in text_of(done[0])] == ["Ada", "Bob"]


async def test_questions_of_two_replicas_in_one_session_are_not_confused(redis: RedisServer) -> None:
    async with two(redis) as (a, b, _, _), Client(a.url) as client:
        await client.initialize(FORMS)

        async def ask(asking: Running, other: Running, number: int, name: str) -> list[str]:
            """Calls at one replica, and answers at the other once both have asked."""
            params = {"name": "office__ask"}
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
            async with client.http.post(asking.url, headers=client.headers, json=message) as response:
                async for line in response.content:
                    if not line.startswith(b"data: {"):
                        continue
                    received = json.loads(line[6:])
                    if "result" in received:
                        return [each["content"]["name"] for each in text_of(received)]
                    await both_asked.wait()
                    reply = {"jsonrpc": "2.0", "id": received["id"], "result": answer(name)}
                    await client.http.post(other.url, headers=client.headers, json=reply)
            return []

        both_asked = asyncio.Barrier(2)
        found = await asyncio.gather(ask(a, b, 1, "Ada"), ask(b, a, 2, "Bob"))
        assert found == [["Ada", "Ada"], ["Bob", "Bob"]]


async def test_a_cancellation_received_by_another_replica_reaches_the_call(redis: RedisServer) -> None:
    async with two(redis) as (a, b, office, _), Client(a.url) as client, Client(b.url) as other:
        await client.initialize()
        other.headers.update(client.headers)
        holding = asyncio.create_task(client.legacy("tools/call", {"name": "office__hold"}, request_id=77))
        await until(lambda: office.ledger == ["hold"])
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
        assert (await other.post(cancel)).status == 202
        await until(lambda: office.ledger == ["hold", "cancelled"])
        assert (await holding).messages == []


async def test_a_call_that_waits_is_continued_through_another_replica(redis: RedisServer) -> None:
    async with two(redis) as (a, b, office_a, office_b), Client(a.url) as client:
        params: Json = {"name": "office__ask", "arguments": {}}
        for name in ("Ada", "Bob"):
            reply = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
            (key,) = reply["inputRequests"]
            params = {
                **params,
                "inputResponses": {key: answer(name)},
                "requestState": reply["requestState"],
            }
            at(b, client)
        done = await client.modern("tools/call", params, capabilities=FORMS)
        assert [each["content"]["name"] for each in text_of(done.last)] == ["Ada", "Bob"]
        assert (office_a.ledger, office_b.ledger) == (["ask"], [])


async def test_a_call_whose_replica_has_ended_is_a_named_error(redis: RedisServer) -> None:
    async with replica(redis.entry, Office((LEGACY,))) as b, Client(b.url) as client:
        params: Json = {"name": "office__ask", "arguments": {}}
        async with replica(redis.entry, Office((LEGACY,))) as a:
            at(a, client)
            reply = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
        at(b, client)
        params["requestState"] = reply["requestState"]
        gone = (await client.modern("tools/call", params, capabilities=FORMS)).last["error"]
        assert gone["message"] == (
            "requestState: the replica of the gateway that held the call is gone; make the call again"
        )


async def test_a_forwarded_call_without_an_answer_asks_again(redis: RedisServer) -> None:
    async with two(redis) as (a, b, office, _), Client(a.url) as client:
        params: Json = {"name": "office__ask", "arguments": {}}
        reply = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
        (key,) = reply["inputRequests"]
        params = {**params, "inputResponses": {}, "requestState": reply["requestState"]}
        at(b, client)
        again = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
        assert list(again["inputRequests"]) == [key]  # asked again: nothing was answered
        assert office.ledger == ["ask"]


async def test_a_rate_limit_counts_the_calls_at_all_replicas(redis: RedisServer) -> None:
    callers = {"ada": CallerEntry(token=ADA, calls_per_minute=2), "bob": CallerEntry(token=BOB)}
    async with two(redis, callers) as (a, b, _, _), Client(a.url) as client:
        replies: list[Json] = []
        for each in (a, b, a, b):
            at(each, client)
            replies.append((await client.modern("tools/call", COUNT)).last)
        assert ["error" in reply for reply in replies] == [False, False, True, True]
        assert replies[2]["error"]["code"] == -32029
        assert 1 <= replies[2]["error"]["data"]["retryAfter"] <= 60


async def test_a_change_that_one_replica_notices_reaches_the_clients_of_another(redis: RedisServer) -> None:
    async with two(redis) as (a, b, _, office_b), Client(b.url) as client:
        await client.initialize()
        office_b.tools.append("new")  # the server notifies nothing here
        outbox = client.http.get(b.url, headers={**client.headers, "Accept": "text/event-stream"})
        async with asyncio.timeout(10), redis.commands() as counted, outbox as response:
            await a.host.call("mcp__office__hire", {"name": "new"})
            async for line in response.content:
                if line.startswith(b"data: {"):
                    assert json.loads(line[6:])["method"] == "notifications/tools/list_changed"
                    break
        assert counted == {"PUBLISH": 1}, "the replica that is notified does not notify the first one again"
        listed = (await client.legacy("tools/list")).last["result"]["tools"]
        assert "office__new" in [tool["name"] for tool in listed]


async def test_a_grant_given_at_one_replica_applies_at_another_for_its_caller_only(
    redis: RedisServer,
) -> None:
    async with (
        two(redis, permission_mode="default") as (a, b, _, _),
        Client(a.url) as client,
        Client(b.url, BOB) as bob,
    ):
        params: Json = {"name": "office__hire", "arguments": {"name": "x"}}
        asked = (await client.modern("tools/call", params, capabilities=FORMS)).last["result"]
        (key,) = asked["inputRequests"]
        yes = {"action": "accept", "content": {"answer": "allow while the gateway runs"}}
        granted = {**params, "inputResponses": {key: yes}, "requestState": asked["requestState"]}
        assert text_of((await client.modern("tools/call", granted, capabilities=FORMS)).last) is None
        at(b, client)

        async def is_granted() -> bool:
            reply = await client.modern("tools/call", params, capabilities=FORMS)
            return "inputRequests" not in reply.last["result"]

        await until(is_granted)
        assert "inputRequests" in (await bob.modern("tools/call", params, capabilities=FORMS)).last["result"]


async def test_a_client_over_sse_may_send_its_messages_to_another_replica(redis: RedisServer) -> None:
    async with two(redis) as (a, b, _, _), Client(a.url) as client:
        base_a, base_b = (each.url.removesuffix("/mcp") for each in (a, b))
        async with client.http.get(f"{base_a}/sse", headers=client.headers) as response:
            path = ""
            async for line in response.content:
                if line.startswith(b"data: /"):
                    path = line[6:].decode().strip()
                    client.url = base_b + path
                    assert (await client.legacy("ping")).status == 202
                elif line.startswith(b"data: {"):
                    assert json.loads(line[6:])["result"] == {}
                    break
            client.url = base_b + path.replace("session=", "session=gone")
            assert (await client.legacy("ping")).status == 404


async def test_without_redis_requests_that_need_it_are_refused_and_others_continue(
    redis: RedisServer,
) -> None:
    callers = {"ada": CallerEntry(token=ADA), "bob": CallerEntry(token=BOB, calls_per_minute=100)}
    async with (
        two(redis, callers) as (a, b, _, _),
        Client(a.url) as client,
        Client(a.url) as new,
        Client(a.url, BOB) as limited,
    ):
        await client.initialize()
        await redis.kill()
        assert text_of((await client.modern("tools/call", COUNT)).last) == 1
        assert text_of((await client.legacy("tools/call", COUNT)).last) == 1
        unopened = await new.legacy(
            "initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
        )
        assert unopened.status == 503
        assert unopened.last["error"].startswith(
            "no session can be opened: the gateway's store does not answer"
        )
        refused = (await limited.modern("tools/call", COUNT)).last["error"]
        assert refused["data"] == {"code": "store-unavailable"}
        at(b, client)
        elsewhere = await client.legacy("tools/call", COUNT)
        assert elsewhere.status == 503
        assert elsewhere.last["error"].startswith("sessions cannot be looked up: the gateway's store")
        await redis.start()

        async def is_back() -> bool:
            return "result" in (await limited.modern("tools/call", COUNT)).last

        await until(is_back)
        assert (await new.initialize()).status == 200
        at(b, new)

        async def is_found() -> bool:
            return (await new.legacy("tools/call", COUNT)).status == 200

        await until(is_found)  # each replica contacts it again after a moment


async def test_a_call_needs_at_most_two_redis_commands(redis: RedisServer) -> None:
    callers = {"ada": CallerEntry(token=ADA), "bob": CallerEntry(token=BOB, calls_per_minute=1000)}
    async with two(redis, callers) as (a, _, _, _), Client(a.url) as free, Client(a.url, BOB) as limited:
        await free.initialize()
        await limited.initialize()
        await limited.legacy("tools/call", COUNT)  # sends the script
        async with redis.commands() as counted:
            for _ in range(20):
                assert "result" in (await free.legacy("tools/call", COUNT)).last
                assert "result" in (await free.modern("tools/call", COUNT)).last
        assert counted == {}
        async with redis.commands() as counted:
            for _ in range(20):
                assert "result" in (await limited.legacy("tools/call", COUNT)).last
                assert "result" in (await limited.modern("tools/call", COUNT)).last
        assert counted == {"EVALSHA": 40}


async def test_redis_contains_only_encrypted_values(redis: RedisServer) -> None:
    async with two(redis) as (a, _, _, _), Client(a.url) as client:
        await client.initialize(FORMS)
        keys = [word for word in (await redis.command("KEYS", "*")).split() if word.startswith(b"dragoman:")]
        assert len(keys) == 1
        held = b"".join(keys) + await redis.command("GET", keys[0].decode())
        for word in (client.headers["Mcp-Session-Id"], '"ada"', "elicitation", LEGACY):
            assert word.encode() not in held
        ttl = int((await redis.command("TTL", keys[0].decode())).strip(b":\r\n"))
        assert 3500 < ttl <= 3600


async def test_a_clock_of_redis_that_was_set_back_does_not_stop_callers(redis: RedisServer) -> None:
    store = RedisStore(redis.entry)
    name = store._name("calls ada")  # pyright: ignore[reportPrivateUsage]
    for number in range(3):
        await redis.command("ZADD", name, "99999999999999999", f"future{number}")
    assert [await store.count_call("ada", 2) for _ in range(2)] == [0.0, 0.0]
    assert 55 < await store.count_call("ada", 2) <= 60
    await store.close()

"""T211: gateway clients that resume streams, end sessions or subscribe again lose no reply."""

import asyncio

import pytest

from dragoman.wire.server.request import ClientRequest
from tests.gateway import Client, Json, gateway_of, messages_in
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
HOLD = {"name": "office__hold", "arguments": {}}


async def test_t211_the_end_of_a_session_ends_the_responses_of_its_calls():
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await client.initialize()
        calling = asyncio.create_task(client.legacy("tools/call", HOLD))
        await until(lambda: office.ledger == ["hold"])
        ended = await client.post(b"", "DELETE")
        assert ended.status == 204
        async with asyncio.timeout(10):
            assert (await calling).status == 404
        assert office.ledger == ["hold", "cancelled"]


async def test_t211_a_stream_resumed_while_the_lost_connection_is_still_open_receives_the_reply(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("dragoman.gateway.http.STREAM_AFTER_SECONDS", 0.05)
    office, released = Office(), asyncio.Event()

    async def held(request: object, arguments: object) -> str:
        await released.wait()
        return "done"

    monkeypatch.setattr(office, "_hold", held)
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await client.initialize()
        message = {"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": HOLD}
        async with client.http.post(client.url, headers=client.headers, json=message) as lost:
            begin = (await lost.content.readline()).decode().strip()
            headers = {**client.headers, "Last-Event-ID": begin.removeprefix("id: ")}
            async with client.http.get(client.url, headers=headers) as continued:
                assert (await continued.content.readline()).decode().strip() == begin
                released.set()
                body = await continued.read()
        assert [each["id"] for each in messages_in("text/event-stream", body)] == [77]


async def test_t211_an_event_id_with_too_many_digits_is_ignored():
    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        await client.initialize()
        headers = {**client.headers, "Last-Event-ID": "s1." + "9" * 5000}
        async with client.http.get(client.url, headers=headers) as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")


class SlowOffice(Office):
    """Its `resources/unsubscribe` waits until it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        super().__init__(("2025-11-25",))

    async def _unsubscribe(self, request: ClientRequest) -> Json:
        await self.released.wait()
        return await super()._unsubscribe(request)


def watching_tasks() -> int:
    return len([each for each in asyncio.all_tasks() if "ClientHandlers._watch()" in repr(each)])


async def test_t211_a_subscription_that_is_renewed_at_once_can_be_ended():
    office, uri = SlowOffice(), {"uri": "file:///a"}
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        await client.initialize()
        assert "result" in (await client.legacy("resources/subscribe", uri)).last
        assert "result" in (await client.legacy("resources/unsubscribe", uri)).last
        again = asyncio.create_task(client.legacy("resources/subscribe", uri))
        await until(lambda: watching_tasks() == 2)
        office.released.set()
        assert "result" in (await again).last
        await until(lambda: office.subscribed == ["file:///a"])
        assert "result" in (await client.legacy("resources/unsubscribe", uri)).last
        await until(lambda: office.subscribed == [], 5)

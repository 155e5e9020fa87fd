"""T290: a client that disconnects while the gateway answers it causes no error in the gateway's log."""

import asyncio
import gc
import logging
import sys
from typing import Any

import aiohttp
import pytest

from dragoman.gateway.outbox import Outbox
from dragoman.gateway.store.sqlite import SqliteStore
from tests.gateway import Client, Json, gateway_of
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("GWY-3")
NONE = {"Mcp-Session-Id": "none"}
DEMO = {"demo": {"command": sys.executable, "args": ["-m", "dragoman.demo"]}}


async def test_t290_a_disconnect_just_before_the_stream_begins_is_not_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    real, taken = Outbox.get, []
    async with gateway_of(DEMO) as running, Client(running.url) as client:
        await client.initialize()

        async def get(outbox: Outbox) -> bytes | None:
            message = await real(outbox)
            if message is not None and b"notifications/progress" in message:
                taken.append(message)
                for transport in _transports(running.port):
                    transport.abort()
            return message

        monkeypatch.setattr(Outbox, "get", get)
        params = {"name": "demo__count", "arguments": {"to": 3}, "_meta": {"progressToken": "p"}}
        with pytest.raises(aiohttp.ClientError):
            await client.legacy("tools/call", params)
        assert len(taken) == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def _transports(port: int) -> list[asyncio.Transport]:
    """The transports of the connections that the gateway has accepted."""
    kind: Any = asyncio.selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    found = [each for each in gc.get_objects() if type(each) is kind and not each.is_closing()]
    return [each for each in found if each.get_extra_info("sockname")[1:2] == (port,)]


class WaitingStore(SqliteStore):
    """A store whose lookup lasts until the test releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.lookups = 0
        self.may_answer = asyncio.Event()

    async def get(self, key: str, seconds: float) -> bytes | None:
        self.lookups += 1
        await self.may_answer.wait()
        self.lookups -= 1
        return await super().get(key, seconds)


async def test_t290_a_disconnect_during_the_session_lookup_is_not_an_error():
    told: list[Json] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    store = WaitingStore()
    async with gateway_of({}, store=store) as running, Client(running.url) as client:
        asking = asyncio.create_task(client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, **NONE))
        await until(lambda: store.lookups == 1)
        asking.cancel()
        async with client.http.get(
            f"http://127.0.0.1:{running.port}/healthz"
        ):  # the event loop has processed the disconnect
            store.may_answer.set()
        await until(lambda: store.lookups == 0)
        assert (await client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, **NONE)).status == 404
        gc.collect()
    assert told == []

"""T86: Large, slow and very many requests use bounded resources of the gateway."""

import asyncio

import pytest

from dragoman.gateway import app, http, sessions
from tests.gateway import Client, Json, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
OPENING: Json = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}


async def test_t86_a_body_without_an_end_is_refused_at_the_limit():
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 1024 * 1024
            yield b" " * 1024 * 1024

    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        status = 0
        try:
            async with client.http.post(client.url, headers=client.headers, data=endless()) as response:
                status = response.status
        except (ConnectionError, OSError):
            status = 413
        assert status == 413
        assert sent < 4 * app.BODY_LIMIT_BYTES
        assert "result" in (await client.modern("tools/list")).last


async def test_t86_a_body_that_arrives_too_slowly_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "BODY_SECONDS", 0.2)

    async def slow():
        yield b"{"
        await asyncio.Event().wait()

    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        response = await client.http.post(client.url, headers=client.headers, data=slow())
        assert response.status == 408
        response.close()


async def test_t86_sessions_of_one_caller_are_limited_and_the_oldest_is_ended(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sessions, "SESSION_LIMIT", 5)
    async with gateway_of({"office": Office()}) as running:
        clients = [Client(running.url) for _ in range(8)]
        for client in clients:
            await client.initialize()
        statuses = [(await client.legacy("tools/list")).status for client in clients]
        assert statuses == [404, 404, 404, 200, 200, 200, 200, 200]
        assert running.gateway.client_count == 5
        for client in clients:
            await client.http.close()


async def test_t86_refused_initialize_requests_leave_no_session_behind():
    async with gateway_of({"office": Office()}) as running, Client(running.url) as client:
        for _ in range(300):
            refused = await client.legacy("initialize", {"capabilities": {}})
            assert refused.last["error"]["code"] == -32602
        assert running.gateway.client_count == 0


async def test_t86_concurrent_requests_of_one_caller_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(app, "REQUEST_LIMIT", 3)
    office = Office()
    async with gateway_of({"office": office}) as running, Client(running.url) as client:
        call = {"name": "office__hold", "arguments": {}}
        holding = [asyncio.create_task(client.modern("tools/call", call)) for _ in range(3)]
        while len(office.ledger) < 3:
            await asyncio.sleep(0)
        refused = await client.modern("tools/list")
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        for task in holding:
            task.cancel()
        await asyncio.gather(*holding, return_exceptions=True)
        while len(office.ledger) < 6:
            await asyncio.sleep(0)
        assert "result" in (await client.modern("tools/list")).last

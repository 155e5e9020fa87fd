"""T423: a WebSocket client of the gateway floods it with tiny messages; other clients are still served."""

import asyncio
from collections import Counter

import pytest

from dragoman.gateway import websocket
from dragoman.testing import InMemoryServer
from dragoman.transports import pacing
from dragoman.wire.server.connection import ClientConnection
from tests.gateway import ADA, Client, gateway_of

pytestmark = pytest.mark.requirement("GWY-4")
UNEXPECTED_RESPONSE = '{"jsonrpc":"2.0","id":7,"result":{}}'
MESSAGES = 2000
LIMIT_SECONDS = 30.0


@pytest.mark.parametrize("connections", [1, 4])
async def test_t423_the_number_of_messages_per_caller_and_loop_iteration_is_limited(
    monkeypatch: pytest.MonkeyPatch, connections: int
):
    loop, now, turn = asyncio.get_running_loop(), 0.0, 0
    taken = Counter[int]()
    over = asyncio.Event()

    def take(self: ClientConnection, message: bytes) -> None:
        """Each message takes a millisecond."""
        nonlocal now
        now += 0.001
        taken[turn] += 1
        if taken.total() == MESSAGES:
            over.set()

    def begin_turn() -> None:
        nonlocal turn
        turn += 1
        if not over.is_set():
            loop.call_soon(begin_turn)

    async with (
        asyncio.timeout(LIMIT_SECONDS),
        gateway_of({"desk": InMemoryServer("desk")}) as running,
        Client(running.url, ADA) as client,
    ):
        url = running.url.removesuffix("/mcp") + "/ws"
        sockets = [await client.http.ws_connect(url, headers=client.headers) for _ in range(connections)]
        monkeypatch.setattr(ClientConnection, "receive", take)
        for module in (pacing, websocket):
            monkeypatch.setattr(module, "clock", lambda: now)
        loop.call_soon(begin_turn)
        for _ in range(MESSAGES // connections):
            for socket in sockets:
                await socket.send_str(UNEXPECTED_RESPONSE)
        await over.wait()
        for socket in sockets:
            await socket.close()
    per_turn = pacing.TURN_SECONDS / 0.001
    # A loop iteration may begin before or after the interval of the budget.
    assert max(taken.values()) <= 2 * per_turn

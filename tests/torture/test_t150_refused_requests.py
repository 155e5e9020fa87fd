"""T150: a 401 or 403 fails its request only; only credentials that are no longer valid make a server
`needs-auth`."""

import asyncio

import pytest

from dragoman.errors import HttpError, NotConnected, SignInNeeded
from dragoman.events import ServerStateChanged
from tests.servers.web import Ask, answers
from tests.torture.bystander_host import HOSTILE, until
from tests.torture.network import COMES_BACK, LEGACY, MODERN, Way, end_of, serves

pytestmark = pytest.mark.requirement("LIF-1")

REFUSALS = {
    "401": answers.challenge(401),
    "401 without a challenge": answers.status(401),
    "403": answers.challenge(403, 'Bearer error="insufficient_scope", scope="files:read"'),
}
WAYS = (Way("http", LEGACY, "sse"), Way("http", MODERN, "json"), Way("sse"))


class HoldingProxy:
    """A proxy in front of the server: forwards calls of `ledger` when released, and refuses other requests
    as configured."""

    def __init__(self, refusal=None) -> None:
        self.refusal = refusal
        self.opened = asyncio.Event()

    async def __call__(self, ask: Ask):
        if ask.params.get("name") == "ledger":
            await self.opened.wait()
        elif self.refusal is not None:
            return await self.refusal(ask)
        return None


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=list(REFUSALS))
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_t150_a_refused_request_affects_neither_the_server_nor_another_call(
    bystander_host, way: Way, refusal
):
    door = HoldingProxy(refusal)
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        tools, states = a.view.tool_count, len(a.happened(ServerStateChanged))
        server.on["tools/call"] = door
        under_way = asyncio.create_task(a.call("ledger", key="k"))
        await until(lambda: server.asked("tools/call"))
        for _ in range(3):
            ended = await end_of(a, "echo", text="x")
            assert isinstance(ended, HttpError)
            assert ended.status in (401, 403)
        door.opened.set()
        assert await under_way == "1"
        del server.on["tools/call"]
        await serves(a)
        assert (a.view.status, a.view.tool_count) == ("connected", tools)
        assert len(a.happened(ServerStateChanged)) == states
        assert len(server.asked("initialize")) <= 1


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_t150_invalid_credentials_fail_new_calls_and_no_running_one(bystander_host, way: Way):
    door = HoldingProxy()
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        server.on["*"] = door
        under_way = asyncio.create_task(a.call("ledger", key="k"))
        await until(lambda: server.asked("tools/call"))
        door.refusal = answers.challenge(401, 'Bearer realm="here"')
        assert isinstance(await end_of(a, "echo", text="x"), HttpError)
        await until(lambda: a.view.status == "needs-auth")
        assert isinstance(a.view.error, SignInNeeded)
        assert (a.view.error.status, a.view.error.challenge) == (401, 'Bearer realm="here"')
        asked = len(server.asks)
        assert isinstance(await end_of(a, "echo", text="x"), NotConnected)
        assert len(server.asks) == asked, "what is known to be refused is not sent"
        door.opened.set()
        assert await under_way == "1"
        server.on.clear()
        await a.host.reconnect(HOSTILE)
        await serves(a)

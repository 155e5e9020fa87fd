"""T151: a tool call has the tool's time limit on every transport, and a timeout names the setting."""

import asyncio

import pytest

from dragoman.errors import CallTimeout
from tests.servers.web import Ask
from tests.torture.network import LEGACY, MODERN, Way, end_of

WAYS = (Way("http", LEGACY, "json"), Way("http", MODERN, "json"), Way("sse"))
SETTINGS = {"MCP_REQUEST_TIMEOUT_MS": 400}


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_t151_a_call_may_take_longer_than_other_requests(bystander_host, way: Way):
    """The default time limit of a call is 28 hours, that of any other request in this test 0.4 s."""
    too_long = asyncio.Event()

    async def hold(ask: Ask) -> None:
        await too_long.wait()

    async with way.server() as server, bystander_host(way.entry(server), settings=SETTINGS) as a:
        server.on["tools/call"] = hold
        for reset_timeout_on_progress in (False, True):
            too_long.clear()
            calling = asyncio.create_task(
                a.host.call(
                    "mcp__hostile__ledger", {"key": "k"}, reset_timeout_on_progress=reset_timeout_on_progress
                )
            )
            ended = await end_of(a, "hold", seconds=0.9, key="h")  # the call has run this long
            assert isinstance(ended, CallTimeout)
            assert not calling.done()
            too_long.set()
            assert not (await calling).is_error
        assert server.ledger.counts["k"] == 2


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_t151_a_call_timeout_names_its_setting(bystander_host, way: Way):
    async with (
        way.server() as server,
        bystander_host(way.entry(server), settings={"MCP_TOOL_TIMEOUT": 300}) as a,
    ):
        ended = await end_of(a, "hold", key="k", seconds=0.3)
        assert isinstance(ended, CallTimeout)
        assert (ended.timeout_seconds, ended.may_have_run) == (0.3, True)
        assert "MCP_TOOL_TIMEOUT" in (ended.hint or "")

"""T22: After a restart of the server a new session is created once; calls that are safe to retry are
repeated."""

import asyncio

import pytest

from dragoman.events import ServerConnected
from tests.faults import FaultProxy
from tests.servers.web import Ledger, Streamable, answers, streamable
from tests.servers.web.answers import Lost
from tests.torture.bystander_host import BystanderHost, at_once, until
from tests.torture.network import (
    COMES_BACK,
    LEGACY,
    LEGS,
    MODERN,
    AnyServer,
    Way,
    comes_back,
    connected,
    end_of,
    facts,
    serves,
)

LOSSES: tuple[Lost, ...] = ("404 -32001", "404", "400 -32000", "200 -32600")
HTTP = Way("http", LEGACY, "json")


def names(a: BystanderHost) -> set[str]:
    return {tool.wire_name for tool in a.host.tools() if tool.server == "hostile"}


async def restart(server: AnyServer) -> None:
    """Every session is forgotten, and there is a new tool."""
    if isinstance(server, Streamable):
        await server.lose_sessions()
    server.in_memory.add_tool("fresh", lambda _, __: "I am new")


def sessions(server: Streamable, method: str) -> list[str | None]:
    """The sessions named in the requests of one method."""
    return [ask.headers.get("Mcp-Session-Id") for ask in server.asked(method)]


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize("lost_as", LOSSES)
async def test_t22_a_lost_session_is_replaced_once_and_the_call_is_retried_once(
    bystander_host, lost_as: Lost
):
    options = {"lost_as": lost_as, "get_stream": False}
    async with HTTP.server(**options) as server, bystander_host(HTTP.entry(server), settings=COMES_BACK) as a:
        await restart(server)
        async with at_once():
            assert await end_of(a, "ledger", key="one") == "1"
        assert server.ledger.counts == {"one": 1}
        assert sessions(server, "initialize") == [None, None]
        assert sessions(server, "tools/call") == ["session-1", "session-2"]
        assert "fresh" in names(a), "the list was read again"
        assert await end_of(a, "fresh") == "I am new"
        assert server.faults == []


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize("lost_as", LOSSES)
async def test_t22_many_calls_in_flight_at_a_restart_share_one_new_session(bystander_host, lost_as: Lost):
    options = {"lost_as": lost_as, "get_stream": False}
    async with HTTP.server(**options) as server, bystander_host(HTTP.entry(server), settings=COMES_BACK) as a:
        await restart(server)
        ends = await asyncio.gather(*(end_of(a, "ledger", key=f"call {n}") for n in range(30)))
        assert ends == ["1"] * 30
        assert set(server.ledger.counts.values()) == {1}
        assert len(server.asked("initialize")) == 2


@pytest.mark.requirement("LIF-7")
@pytest.mark.parametrize("lost_as", LOSSES)
async def test_t22_a_session_that_is_lost_repeatedly_ends_the_call_without_a_loop(
    bystander_host, lost_as: Lost
):
    limits = {**COMES_BACK, "DRAGOMAN_RECONNECT_ATTEMPTS": 3}
    async with (
        HTTP.server(get_stream=False) as server,
        bystander_host(HTTP.entry(server), settings=limits) as a,
    ):
        server.on["tools/call"] = answers.session_lost(lost_as)
        async with at_once():
            assert facts(await end_of(a, "echo", text="x")) == ("connection-lost", False)
        assert len(server.asked("tools/call")) <= 3
        assert len(server.asked("initialize")) <= 4
        del server.on["tools/call"]
        await serves(a)
        settled = len(server.asked("initialize"))
        await a.bystander.call_often(50)
        assert len(server.asked("initialize")) == settled, "left alone, it is not met again and again"


@pytest.mark.requirement("LIF-7")
async def test_t22_a_session_lost_while_reconnecting_does_not_loop(bystander_host):
    limits = {**COMES_BACK, "DRAGOMAN_RECONNECT_ATTEMPTS": 4}
    async with (
        HTTP.server(get_stream=False) as server,
        bystander_host(HTTP.entry(server), settings=limits) as a,
    ):
        server.on["tools/list"] = server.on["tools/call"] = answers.session_lost()
        async with at_once():
            assert facts(await end_of(a, "echo", text="x"))[0] in ("connection-lost", "not-connected")
        await until(lambda: a.view.status in ("failed", "connected"))
        settled = len(server.asked("initialize"))
        assert settled <= 1 + 4
        await a.bystander.call_often(50)
        assert len(server.asked("initialize")) == settled


@pytest.mark.requirement("LIF-7")
async def test_t22_an_unknown_tool_error_is_not_treated_as_a_lost_session(bystander_host):
    """Errors that only resemble a lost session are errors of the call."""
    lookalikes = {
        "a 404 for people": answers.error(-32601, "Method not found", status=404),
        "a 400": answers.error(-32602, "invalid params", status=400),
        "a reply": answers.error(-32600, "the user's request is invalid"),
        "a tool's session": answers.error(-32000, "database session not found"),
    }
    async with (
        HTTP.server(get_stream=False) as server,
        bystander_host(HTTP.entry(server), settings=COMES_BACK) as a,
    ):
        for answer in lookalikes.values():
            server.on["tools/call"] = answers.first(1, answer)
            outcome = await a.outcome("echo", text="x")
            assert outcome.is_error
        await serves(a)
        assert len(server.asked("initialize")) == 1


@pytest.mark.requirement("LIF-7")
async def test_t22_a_server_that_is_not_ready_yet_is_reported_and_the_call_is_not_retried(
    bystander_host, era: str
):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        server.on["tools/call"] = answers.first(1, answers.status(503, "starting", retry_after="1"))
        assert facts(await end_of(a, "echo", text="x")) == ("http-status", True)
        await serves(a)
        assert len(server.asked("tools/call")) == 2


@pytest.mark.requirement("LIF-5", "LIF-7")
@pytest.mark.parametrize("way", LEGS, ids=str)
async def test_t22_after_a_restart_with_all_connections_cut_the_new_tools_are_listed(
    bystander_host, way: Way
):
    async with (
        way.server() as server,
        FaultProxy(server.port) as proxy,
        bystander_host(way.entry(server, proxy.port), settings=COMES_BACK) as a,
    ):
        proxy.refuse()
        proxy.cut_all()
        await restart(server)
        down = await end_of(a, "echo", seconds=0.3, text="x")
        assert facts(down)[0] in ("not-connected", "connection-lost")
        proxy.accept()
        await comes_back(a)
        await until(lambda: "fresh" in names(a))
        assert await end_of(a, "fresh") == "I am new"
        proxy.refuse()


@pytest.mark.requirement("LIF-7", "TRN-10")
@pytest.mark.parametrize(("before", "after"), [(LEGACY, "2025-06-18"), (LEGACY, MODERN)])
async def test_t22_a_server_restarted_as_another_version_is_negotiated_again(
    bystander_host, before: str, after: str
):
    """With new capabilities, another revision, even another era."""
    ledger = Ledger()
    old = streamable(revisions=(before,), replies="json", ledger=ledger, get_stream=False)
    new = streamable(revisions=(after,), replies="sse", ledger=ledger, get_stream=False)
    new.in_memory.add_tool("fresh", lambda _, __: "I am new")
    async with old, new, bystander_host({"type": "http", "url": old.url}, settings=COMES_BACK) as a:
        assert a.view.protocol_version == before
        await old.lose_sessions()
        old.on["*"] = new.answer
        await comes_back(a)
        await connected(a)
        assert a.view.protocol_version == after
        assert await end_of(a, "fresh") == "I am new"
        assert await end_of(a, "ledger", key="one") == "1"
        assert a.happened(ServerConnected)[-1].protocol_version == after

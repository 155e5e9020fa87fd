"""T21: A stream that drops during a call is resumed where possible; otherwise the call ends at once."""

import asyncio

import pytest

from dragoman.transports import http
from tests.servers.web import Ask, Streamable, answers
from tests.torture.bystander_host import at_once
from tests.torture.cutting import lanes
from tests.torture.network import COMES_BACK, LEGACY, LEGS, MODERN, Way, end_of, facts, serves

RESUMABLE = {"resumable": True, "priming": True, "retry_ms": 1, "get_stream": False}
LOST = ("connection-lost", True)


@pytest.fixture
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delays before resuming a stream are short."""
    monkeypatch.setattr(http, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(http, "SHORTEST_RETRY_SECONDS", 0.001)


def resumed(server: Streamable) -> list[Ask]:
    return [ask for ask in server.asked("GET") if "Last-Event-ID" in ask.headers]


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("end_after", [0, 2], ids=["after the priming event", "in the middle"])
async def test_t21_a_legacy_stream_with_event_ids_is_resumed_after_the_last_event(
    bystander_host, short_delays, revision: str, end_after: int
):
    way = Way("http", revision)
    seen: list[float] = []
    async with (
        way.server(**RESUMABLE, end_streams_after=end_after) as server,
        bystander_host(way.entry(server)) as a,
    ):
        async with at_once():
            assert await a.call("count", to=5, on_progress=lambda it: seen.append(it.progress)) == "5"
            assert await a.call("ledger", key="one") == "1"
        assert server.ledger.counts == {"one": 1}
        assert seen == sorted(set(seen)), "nothing was told twice"
        assert seen[-1:] == [5.0]
        assert resumed(server)
        assert {ask.headers.get("Mcp-Session-Id") for ask in resumed(server)} == {"session-1"}
        assert server.faults == []


@pytest.mark.slow
@pytest.mark.requirement("TRN-2")
async def test_t21_a_resumable_stream_cut_at_any_byte_after_its_first_event_id_delivers_the_reply(
    bystander_host, short_delays
):
    async with lanes(bystander_host, Way("http", LEGACY), **RESUMABLE) as lane:
        await lane.cut_everywhere("down")
    lane.judge()
    ends = [end for _, end in sorted(lane.cut.items())]
    first = ends.index("1")
    assert {facts(end) for end in ends[:first]} == {LOST}
    assert ends[first:] == ["1"] * len(ends[first:]), "once there is an id, no cut is felt"
    assert len(ends[first:]) > 100


WITHOUT_ID = [Way("http", LEGACY, "sse"), Way("http", MODERN, "sse"), *LEGS[2:]]


@pytest.mark.requirement("TRN-2", "LIF-5")
@pytest.mark.parametrize("how", ["cut", "ended"])
@pytest.mark.parametrize("way", WITHOUT_ID, ids=str)
async def test_t21_a_call_whose_stream_cannot_be_resumed_fails_at_once_and_may_have_run(
    bystander_host, way: Way, how: str
):
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        call = asyncio.create_task(end_of(a, "hold", key="x"))
        await server.ledger.wait_for("hold x")
        if how == "cut":
            server.cut_connections()
        elif way.type == "ws":
            await server.close_sockets()
        else:
            server.end_streams()
        async with at_once():
            assert facts(await call) == LOST
        await serves(a)
        assert server.ledger.counts == {"hold x": 1}


@pytest.mark.requirement("TRN-2")
async def test_t21_a_modern_stream_is_never_resumed_even_if_its_events_have_ids(bystander_host):
    way = Way("http", MODERN)
    opening = b"id: 1\nretry: 1\ndata:\n\n"
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        server.on["tools/call"] = answers.first(1, answers.body(lambda _: opening, headers=answers.EVENTS))
        async with at_once():
            assert facts(await end_of(a, "echo")) == LOST
        assert server.asked("GET") == []
        await serves(a)


REFUSALS = {
    "404": answers.status(404),
    "405": answers.empty(405),
    "400": answers.session_lost("400 -32000"),
    "500": answers.status(500),
    "a page": answers.html(),
    "nobody": answers.hang_up(),
}


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=list(REFUSALS))
async def test_t21_attempts_to_resume_are_limited_and_then_the_call_may_have_run(
    bystander_host, short_delays, refusal
):
    way = Way("http", LEGACY)
    manner = {**RESUMABLE, "end_streams_after": 0}
    async with way.server(**manner) as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        server.on["GET"] = refusal
        before = len(resumed(server))
        async with at_once():
            assert facts(await end_of(a, "ledger", key="one")) == LOST
        # Each attempt may be two requests: a GET on a connection that turns out to be closed is sent again.
        assert 1 <= len(resumed(server)) - before <= 2 * http.RESUME_LIMIT
        assert server.ledger.counts == {"one": 1}


@pytest.mark.requirement("TRN-2")
async def test_t21_the_retry_delay_of_a_stream_is_respected(bystander_host):
    way = Way("http", LEGACY)
    manner = {**RESUMABLE, "retry_ms": 500, "end_streams_after": 0}
    async with way.server(**manner) as server, bystander_host(way.entry(server)) as a:
        started = asyncio.get_running_loop().time()
        assert await end_of(a, "echo", text="x") == "x"
        assert 0.45 < asyncio.get_running_loop().time() - started < 1.5

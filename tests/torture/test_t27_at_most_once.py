"""T27: Wherever its connection is cut, a call runs at most once, and none that ran is reported as unsent."""

from typing import Any

import pytest

from tests.faults import FaultProxy
from tests.servers.web import WebSocketSite
from tests.torture.bystander_host import until
from tests.torture.cutting import lanes
from tests.torture.network import (
    COMES_BACK,
    HTTP_WAYS,
    LEGS,
    WAYS,
    AnyServer,
    Way,
    end_of,
    facts,
    serves,
)


def step_of(way: Way) -> int:
    """One of each kind is cut at every byte; the others, which differ in a few bytes, at every fourth."""
    return 1 if way in LEGS else 4


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_t27_a_reply_cut_at_any_byte_means_one_run_and_a_correct_outcome(bystander_host, way: Way):
    async with lanes(bystander_host, way) as cut:
        await cut.cut_everywhere("down", every=step_of(way))
    cut.judge()
    assert cut.cuts_felt * step_of(way) > 50


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("way", [HTTP_WAYS[0], HTTP_WAYS[2], *WAYS[4:]], ids=str)
async def test_t27_a_request_cut_at_any_byte_means_at_most_one_run_and_a_correct_outcome(
    bystander_host, way: Way
):
    async with lanes(bystander_host, way) as cut:
        await cut.cut_everywhere("up", every=step_of(way))
    cut.judge()
    assert cut.cuts_felt * step_of(way) > 50


# --- replies that arrive too late ---


def messages_received_by(server: AnyServer) -> list[dict[str, Any]]:
    if isinstance(server, WebSocketSite):
        return server.messages
    return [ask.message for ask in server.asks if ask.message is not None]


@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_t27_a_reply_after_the_deadline_is_dropped_and_the_call_is_not_retried(
    bystander_host, way: Way
):
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        ended = await end_of(a, "hold", key="x", seconds=0.3)
        assert facts(ended) == ("timeout", True)
        messages = (
            server.messages if isinstance(server, WebSocketSite) else [ask.message for ask in server.asks]
        )
        [call] = [message for message in messages if message and message.get("method") == "tools/call"]
        content = [{"type": "text", "text": "late"}]
        server.push(
            {"jsonrpc": "2.0", "id": call["id"], "result": {"resultType": "complete", "content": content}}
        )
        await until(lambda: a.view.ignored == {"reply to no pending request": 1})
        await serves(a)
        assert server.ledger.counts == {"hold x": 1}


# --- trusted annotations ---

TRUSTED_AND_ALLOWED = {"trusted": True}, {"DRAGOMAN_REPEAT_SAFE_CALLS": 1}
ANNOTATIONS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, int], int]] = {
    "read-only, trusted, allowed": ({"readOnlyHint": True}, *TRUSTED_AND_ALLOWED, 2),
    "idempotent, trusted, allowed": ({"idempotentHint": True}, *TRUSTED_AND_ALLOWED, 2),
    "a liar": ({"readOnlyHint": True}, {}, TRUSTED_AND_ALLOWED[1], 1),
    "not allowed": ({"readOnlyHint": True}, TRUSTED_AND_ALLOWED[0], {}, 1),
    "not said": ({}, *TRUSTED_AND_ALLOWED, 1),
    "said in a string": ({"readOnlyHint": "true", "idempotentHint": 1}, *TRUSTED_AND_ALLOWED, 1),
    "only not destructive": ({"destructiveHint": False, "readOnlyHint": False}, *TRUSTED_AND_ALLOWED, 1),
}


@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize(
    ("annotations", "entry", "settings", "runs"), ANNOTATIONS.values(), ids=list(ANNOTATIONS)
)
async def test_t27_a_lost_call_is_retried_only_with_a_trusted_annotation_and_the_setting(
    bystander_host,
    era: str,
    annotations: dict[str, Any],
    entry: dict[str, Any],
    settings: dict[str, int],
    runs: int,
):
    way = Way("http", era, "json")
    async with way.server() as server, FaultProxy(server.port) as proxy:
        run = server.ledger.enter
        server.in_memory.add_tool("look", lambda given, _: run(given["key"]), annotations=annotations)
        async with bystander_host(
            way.entry(server, proxy.port, **entry), settings={**COMES_BACK, **settings}
        ) as a:
            proxy.down.reset_at(0, times=1)
            ended = await end_of(a, "look", key="once?")
            assert server.ledger.counts["once?"] == runs
            if runs == 2:
                assert ended == "2"
            else:
                assert facts(ended) == ("connection-lost", True)
            # A second loss in a row is not retried, with any annotation.
            proxy.down.reset_at(0, times=2)
            assert facts(await end_of(a, "look", key="twice?")) == ("connection-lost", True)
            assert server.ledger.counts["twice?"] == runs
            proxy.heal()
            await serves(a)

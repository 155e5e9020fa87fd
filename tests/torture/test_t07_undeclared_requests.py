"""T07: a server that asks for what was never declared gets nothing, and its call still ends."""

import json

import pytest

from dragoman import MalformedReply
from tests.servers import zoo
from tests.torture.arena import MEGABYTE, at_once
from tests.torture.conftest import LEGACY, MODERN

QUESTIONS = [
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "tools/call",
    "no/such/method",
    "\x1b[2J",
]


class NobodyMayBeAsked:
    async def allow(self, question):
        raise AssertionError(f"a person was asked: {question}")


@pytest.mark.parametrize("method", QUESTIONS)
async def test_t07_a_legacy_server_is_told_that_there_is_no_such_method(arena, method):
    async with arena(zoo("asks_back.py", protocol=LEGACY), interaction=NobodyMayBeAsked()) as a:
        async with at_once():
            answer = json.loads(await a.call("ask", method=method))
        assert answer["error"]["code"] == -32601
        assert "result" not in answer


async def test_t07_a_legacy_server_may_ping(arena):
    async with arena(zoo("asks_back.py", protocol=LEGACY)) as a, at_once():
        assert json.loads(await a.call("ask", method="ping"))["result"] == {}


async def test_t07_a_server_that_asks_and_never_listens_fills_no_memory(arena, era):
    async with arena(zoo("asks_without_listening.py", protocol=era)) as a:
        async with at_once(20):
            assert await a.call("pester", count=100_000) == "asked 100000 times"
        assert a.pulse.growth_bytes < 64 * MEGABYTE
        await a.serves_still()


@pytest.mark.parametrize("method", [*QUESTIONS, "ping"])
async def test_t07_a_modern_server_may_not_ask_at_all(arena, method):
    async with arena(zoo("asks_back.py", protocol=MODERN), interaction=NobodyMayBeAsked()) as a:
        async with at_once():
            assert await a.call("ask", method=method, patient=False) == "asked"
        warnings = [text for text in a.log() if "request" in text]
        assert len(warnings) == 1
        assert "\x1b" not in warnings[0]
        await a.serves_still()


async def test_t07_input_required_was_not_declared_so_it_fails_the_call(arena):
    async with arena(zoo("wants_input.py", protocol=MODERN), interaction=NobodyMayBeAsked()) as a:
        with pytest.raises(MalformedReply, match=r"malformed reply from hostile.*input_required"):
            async with at_once():
                await a.call("act")


async def test_t07_input_required_is_no_list_of_tools(arena):
    async with arena(zoo("wants_input.py", "list", protocol=MODERN), interaction=NobodyMayBeAsked()) as a:
        assert a.view.status == "connected"
        assert a.view.tool_count == 0
        assert any("input_required" in problem for problem in a.view.problems)

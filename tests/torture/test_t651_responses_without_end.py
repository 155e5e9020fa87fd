"""T651: a model response that does not end is cancelled, and the conversation can be continued."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from dragoman import Host
from dragoman.agent import loop
from dragoman.agent.loop import Conversation
from dragoman.errors import ModelUnavailable
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("AGT-2")

PIECE = "x" * 1_000
PIECES: dict[str, Callable[[int], Any]] = {
    "text": lambda number: PIECE,
    "thinking": lambda number: {0: DeltaThinkingPart(content=PIECE)},
    "arguments": lambda number: {
        0: DeltaToolCall(name=None if number else "mcp__desk__add", json_args=PIECE)
    },
    "calls": lambda number: {number: DeltaToolCall(name="mcp__desk__add", json_args=PIECE)},
}


@pytest.mark.parametrize("kind", PIECES)
async def test_t651_an_endless_model_response_is_cancelled(kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "RESPONSE_CHARACTERS", 200_000, raising=False)
    sent = 0
    requests = 0

    async def respond(messages: list[Any], info: AgentInfo) -> AsyncIterator[Any]:
        nonlocal sent, requests
        requests += 1
        if requests > 1:
            yield "done"
            return
        while sent < 2_000:
            await asyncio.sleep(0)
            yield PIECES[kind](sent)
            sent += 1

    server = InMemoryServer("desk")
    server.add_tool("add", lambda arguments, context: "3")
    async with Host({"desk": server}, permission_mode="bypassPermissions") as host:
        conversation = Conversation(host.toolbox(), FunctionModel(stream_function=respond), "")
        with pytest.raises(ModelUnavailable, match="characters"):
            await conversation.run("Hello.")
        assert 150 < sent < 250
        assert requests == 1
        assert (await conversation.run("Go on.")).text == "done"

"""T255: a model sends a character in two surrogate halves, or a lone surrogate, as providers do that split
their stream between two UTF-16 units; and a person's prompt contains bytes that are not text."""

from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from dragoman import Host
from dragoman.agent.events import TextDelta
from dragoman.agent.loop import Conversation
from dragoman.agent.transcript import Record, Transcript
from dragoman.surrogates import joined
from dragoman.testing import InMemoryServer
from dragoman.testing.model import Calls, Says, ScriptedModel

pytestmark = pytest.mark.requirement("AGT-2")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("", ""),
        ("plain é 😀", "plain é 😀"),
        ("a\ud83d\ude00b", "a😀b"),
        ("a\ud83db", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ufeff\udcff", "\ufeff\ufffd"),
    ],
)
def test_t255_surrogate_halves_are_joined_and_lone_ones_replaced(text: str, whole: str):
    assert joined(text) == whole


async def test_t255_the_answer_and_its_calls_are_kept_and_the_conversation_continues(home: Path):
    server, given = InMemoryServer("desk"), list[Any]()
    server.add_tool("note", lambda arguments, context: given.append(arguments) or "noted")
    model = ScriptedModel(
        [
            Says(("half \ud83d",)),
            Calls("mcp__desk__note", '{"text": "a\ud83d\ude00\ud83d"}', id="call\udcff"),
        ],
        Says(("smile \ud83d", "\ude00")),
        "again",
    )
    events: list[Any] = []
    async with Host({"desk": server}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=10)
        transcript = Transcript.begin(home, "scripted")
        talk = Conversation(host.toolbox(), model.model, "", record=Record(transcript))
        reply = await talk.run("prompt \udcff", events.append)
        assert reply.text == "smile 😀"
        assert given == [{"text": "a😀\ufffd"}]
        assert (await talk.run("more")).text == "again"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == (
        "half \ufffdsmile \ufffd\ufffd"
    )
    resumed = transcript.history()
    assert [message.parts for message in resumed] == [message.parts for message in talk.history]
    first = resumed[1]
    assert isinstance(first, ModelResponse)
    assert [part.tool_call_id for part in first.parts if isinstance(part, ToolCallPart)] == ["call\ufffd"]

"""T466: a conversation that two processes continued, or in which a line is damaged, can be continued."""

from pathlib import Path

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman.agent.transcript import Transcript

pytestmark = pytest.mark.requirement("AGT-5")


def asks(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text)])


def calls(*names: str) -> ModelResponse:
    return ModelResponse([ToolCallPart("add", {}, name) for name in names])


def returns(*names: str) -> ModelRequest:
    return ModelRequest([ToolReturnPart("add", f"result of {name}", name) for name in names])


def outline(history: list[ModelMessage]) -> list[list[str]]:
    """The calls and results of each message."""
    return [
        [
            f"{'call' if isinstance(part, ToolCallPart) else part.outcome} {part.tool_call_id}"
            if isinstance(part, ToolCallPart | ToolReturnPart)
            else "text"
            for part in message.parts
        ]
        for message in history
    ]


def test_t466_every_call_has_one_result_and_every_result_has_its_call(home: Path):
    transcript = Transcript.begin(home, "test")
    own, other = Transcript(transcript.path), Transcript(transcript.path)
    own.add(asks("one"))
    other.add(asks("two"))
    own.add(calls("a"))
    other.add(calls("b"))
    own.add(returns("a"))
    other.add(returns("b"))
    own.add(ModelResponse([TextPart("done")]))
    assert outline(transcript.history()) == [
        ["text"],
        ["text"],
        ["call a"],
        ["interrupted a"],
        ["call b"],
        ["interrupted b"],
        ["text"],
    ]


def test_t466_results_whose_calls_are_damaged_are_left_out(home: Path):
    transcript = Transcript.begin(home, "test")
    for message in (asks("one"), calls("a", "b"), returns("a", "b"), ModelResponse([TextPart("done")])):
        transcript.add(message)
    lines = transcript.path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:20] + b"\n"
    transcript.path.write_bytes(b"".join(lines))
    assert outline(transcript.history()) == [["text"], ["text"]]


def test_t466_a_duplicate_result_counts_once(home: Path):
    transcript = Transcript.begin(home, "test")
    for message in (asks("one"), calls("a"), returns("a", "a")):
        transcript.add(message)
    assert outline(transcript.history()) == [["text"], ["call a"], ["success a"]]

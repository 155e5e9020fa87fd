"""Sampling requests of servers, answered by a model of the model library."""

from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman.agent.models import LazyModel, ModelChoice
from dragoman.agent.sampler import ModelSampler, answer_of, messages_of
from dragoman.interaction import SamplingAnswer, SamplingMessage, SamplingRequest
from dragoman.testing.model import Calls, ScriptedModel

pytestmark = pytest.mark.requirement("ASK-4")

LOOK = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}


def request(*messages: SamplingMessage, **more: Any) -> SamplingRequest:
    return SamplingRequest(server="s", messages=messages, max_tokens=50, **more)


def says(role: Any, *blocks: Any) -> SamplingMessage:
    return SamplingMessage(
        role, tuple({"type": "text", "text": b} if isinstance(b, str) else b for b in blocks)
    )


async def sampled(model: ScriptedModel, asked: SamplingRequest) -> SamplingAnswer:
    async def load(choice: ModelChoice) -> Any:
        return model.model

    return await ModelSampler(LazyModel(ModelChoice("scripted:m"), load)).sample(asked)


async def test_the_models_text_is_the_answer():
    model = ScriptedModel("Short.")
    answer = await sampled(model, request(says("user", "Sum up"), system_prompt="Be brief."))
    assert answer == SamplingAnswer(content=({"type": "text", "text": "Short."},), model="scripted")
    (given,) = model.requests
    assert given[-1].instructions == "Be brief."
    assert given[-1].parts[0].content == "Sum up"


async def test_the_model_may_use_the_tools_of_the_request():
    model = ScriptedModel(Calls("look", {"at": 1}, "t1"))
    answer = await sampled(model, request(says("user", "Look"), tools=(LOOK,)))
    assert answer.content == ({"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},)
    assert answer.stop_reason == "toolUse"
    assert model.tools == [["look"]]


def test_a_conversation_with_tools_and_images_is_converted():
    image = {"type": "image", "data": "AAEC", "mimeType": "image/png"}
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}}
    result = {"type": "tool_result", "toolUseId": "t1", "content": [{"type": "text", "text": "seen"}]}
    failed = {**result, "toolUseId": "t2", "isError": True}
    first, second, third = messages_of(
        request(says("user", "Look", image), says("assistant", "Yes", use), says("user", result, failed))
    )
    assert isinstance(first, ModelRequest)
    assert [type(part) for part in first.parts] == [UserPromptPart, UserPromptPart]
    assert first.parts[1].content == [BinaryContent(b"\0\1\2", media_type="image/png")]
    assert isinstance(second, ModelResponse)
    assert [type(part) for part in second.parts] == [TextPart, ToolCallPart]
    assert isinstance(third, ModelRequest)
    returned = [(part.tool_name, part.content, part.outcome) for part in third.parts]  # type: ignore[union-attr]
    assert returned == [("look", "seen", "success"), ("unknown", "seen", "failed")]
    assert isinstance(third.parts[0], ToolReturnPart)


@pytest.mark.parametrize(
    ("reason", "stop"), [("stop", "endTurn"), ("length", "maxTokens"), (None, "endTurn")]
)
def test_the_stop_reason_of_the_model(reason: Any, stop: str):
    response = ModelResponse([TextPart("x")], finish_reason=reason)
    assert answer_of(response, "m").stop_reason == stop

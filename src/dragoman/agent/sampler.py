"""Answers sampling requests of servers with the model of a conversation or a command."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dragoman.agent.models import LazyModel
from dragoman.interaction import SamplingAnswer, SamplingMessage, SamplingRequest

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequestPart, ModelResponse, ModelResponsePart
    from pydantic_ai.settings import ModelSettings

_STOP_REASONS: Final[Mapping[str | None, str]] = {"length": "maxTokens"}


class ModelSampler:
    """A `Sampler`."""

    supports_tools = True

    def __init__(self, model: LazyModel) -> None:
        self._model = model

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        model = await self._model.get()
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.models import ModelRequestParameters

        async with model_request_stream(
            model,
            messages_of(request),
            model_settings=_settings(request),
            model_request_parameters=ModelRequestParameters(function_tools=_tools(request)),
        ) as stream:
            async for _ in stream:
                pass
            return answer_of(stream.get(), self._model.choice.name)


def _settings(request: SamplingRequest) -> ModelSettings:
    """The settings of the request; providers ignore those that they do not support."""
    from pydantic_ai.settings import ModelSettings

    settings = ModelSettings(max_tokens=request.max_tokens)
    if request.temperature is not None:
        settings["temperature"] = request.temperature
    if request.stop_sequences:
        settings["stop_sequences"] = list(request.stop_sequences)
    if request.tools and request.tool_choice != "auto":
        settings["tool_choice"] = request.tool_choice
    return settings


def _tools(request: SamplingRequest) -> list[Any]:
    from pydantic_ai.tools import ToolDefinition

    return [
        ToolDefinition(
            name=str(tool["name"]),
            description=str(tool.get("description", "")),
            parameters_json_schema=dict(tool.get("inputSchema", {"type": "object"})),
        )
        for tool in request.tools
    ]


def messages_of(request: SamplingRequest) -> list[ModelMessage]:
    """The conversation in the form of the model library."""
    from pydantic_ai.messages import ModelRequest, ModelResponse

    names: dict[str, str] = {}
    messages: list[ModelMessage] = []
    for message in request.messages:
        if message.role == "assistant":
            messages.append(ModelResponse(list(_response_parts(message.content, names))))
        else:
            messages.append(ModelRequest(list(_request_parts(message, names))))
    if not messages or isinstance(messages[-1], ModelResponse):
        messages.append(ModelRequest([]))
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    messages[-1] = ModelRequest(last.parts, instructions=request.system_prompt or None)
    return messages


def _request_parts(message: SamplingMessage, names: Mapping[str, str]) -> Iterator[ModelRequestPart]:
    from pydantic_ai.messages import ToolReturnPart, UserPromptPart

    for block in message.content:
        if block.get("type") == "tool_result":
            call = str(block.get("toolUseId", ""))
            yield ToolReturnPart(
                names.get(call, "unknown"),
                "\n".join(map(str, map(_content, block.get("content", ())))),
                call,
                outcome="failed" if block.get("isError") else "success",
            )
        else:
            content = _content(block)
            yield UserPromptPart(content if isinstance(content, str) else [content])


def _response_parts(
    blocks: Sequence[Mapping[str, Any]], names: dict[str, str]
) -> Iterator[ModelResponsePart]:
    """The parts of a response of the model. Adds the names of the called tools to `names`, by call id."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    for block in blocks:
        if block.get("type") == "tool_use":
            names[str(block["id"])] = str(block["name"])
            yield ToolCallPart(str(block["name"]), dict(block.get("input", {})), str(block["id"]))
        elif block.get("type") == "text":
            yield TextPart(str(block.get("text", "")))


def _content(block: Mapping[str, Any]) -> Any:
    from pydantic_ai.messages import BinaryContent

    if block.get("type") in ("image", "audio"):
        return BinaryContent(base64.b64decode(str(block["data"])), media_type=str(block["mimeType"]))
    return str(block.get("text", ""))


def answer_of(response: ModelResponse, model: str) -> SamplingAnswer:
    from pydantic_ai.messages import TextPart, ToolCallPart

    content: list[Mapping[str, Any]] = []
    for part in response.parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.content})
        elif isinstance(part, ToolCallPart):
            arguments = part.args_as_dict()
            content.append(
                {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": arguments}
            )
    has_calls = any(block["type"] == "tool_use" for block in content)
    stop = "toolUse" if has_calls else _STOP_REASONS.get(response.finish_reason, "endTurn")
    return SamplingAnswer(
        content=tuple(content) or ({"type": "text", "text": ""},),
        model=response.model_name or model,
        stop_reason=stop,
    )

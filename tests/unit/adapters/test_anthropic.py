"""Anthropic's Messages API, by its own client: a whole turn with tools of a host."""

import pytest
from anthropic import AsyncAnthropic
from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock
from pydantic import TypeAdapter

from dragoman import Host
from dragoman.adapters import anthropic
from tests.unit.adapters.model_api import Json, ModelApi, call_ids


def message(*content: Json, stop_reason: str) -> Json:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": list(content),
            "stop_reason": stop_reason, "stop_sequence": None, "usage": usage}  # fmt: skip


def use(name: str, given: Json) -> ToolUseBlock:
    return ToolUseBlock(id="call-1", name=name, input=given, type="tool_use")


@pytest.mark.requirement("LIB-2")
async def test_a_complete_turn(host: Host, api: ModelApi):
    api.replies = [
        message(
            {"type": "tool_use", "id": "call-1", "name": "mcp__demo__add", "input": {"a": 2, "b": 3}},
            {"type": "tool_use", "id": "call-2", "name": "mcp__demo__picture", "input": {"size": 8}},
            stop_reason="tool_use",
        ),
        message({"type": "text", "text": "It is 5."}, stop_reason="end_turn"),
    ]
    tools = anthropic.tools(host.tools())
    messages: list[MessageParam] = [{"role": "user", "content": "2 + 3?"}]
    async with AsyncAnthropic(api_key="key", base_url=api.url, max_retries=0) as client:
        asked = await client.messages.create(model="m", max_tokens=9, tools=tools, messages=messages)
        results = [await anthropic.answer(host, block) for block in asked.content if block.type == "tool_use"]
        messages += [{"role": "assistant", "content": asked.content}, {"role": "user", "content": results}]
        told = await client.messages.create(model="m", max_tokens=9, tools=tools, messages=messages)

    assert told.content[0].type == "text"
    assert {tool["name"] for tool in api.requests[0]["tools"]} == {tool.name for tool in host.tools()}
    first, second = api.requests[1]["messages"][2]["content"]
    assert first == {
        "type": "tool_result",
        "tool_use_id": "call-1",
        "content": [{"type": "text", "text": "5"}],
        "is_error": False,
    }
    assert second["content"][1]["source"]["media_type"] == "image/png"


@pytest.mark.requirement("LIB-2")
async def test_tools_and_results_have_the_librarys_types(host: Host):
    TypeAdapter(list[ToolParam]).validate_python(anthropic.tools(host.tools()))
    for name in ("demo__picture", "demo__fail", "odd__silent", "odd__dirty", "odd__broken_image"):
        result = await anthropic.answer(host, use(f"mcp__{name}", {}))
        TypeAdapter(ToolResultBlockParam).validate_python(result)


async def test_events_name_the_call_by_the_models_id(host: Host):
    listener = host.events()
    await anthropic.answer(host, use("mcp__demo__add", {"a": 2, "b": 3}))

    assert await call_ids(host, listener) == {"call-1"}


async def test_a_tools_error_is_marked_as_one(host: Host):
    result = await anthropic.answer(host, use("mcp__demo__fail", {"reason": "rain"}))

    assert result.get("is_error") is True
    assert result.get("content") == [{"type": "text", "text": "It did not work: rain."}]

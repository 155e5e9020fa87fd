"""OpenAI's two APIs, by their own client: a whole turn each with tools of a host."""

from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCall,
    ChatCompletionMessageParam,
    ChatCompletionToolMessageParam,
)
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall, ResponseInputParam
from openai.types.responses.response_input_item_param import FunctionCallOutput
from pydantic import TypeAdapter

from dragoman import Host
from dragoman.adapters import openai
from tests.unit.adapters.model_api import Json, ModelApi, call_ids


def completion(message: Json, reason: str) -> Json:
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": reason,
        "logprobs": None,
    }
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def response(*output: Json) -> Json:
    return {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": list(output),
            "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}  # fmt: skip


def chat_call(name: str, arguments: str) -> ChatCompletionMessageFunctionToolCall:
    function: Any = {"name": name, "arguments": arguments}
    return ChatCompletionMessageFunctionToolCall(id="call-1", type="function", function=function)


def item(name: str, arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id="call-1", name=name, arguments=arguments)


@pytest.mark.requirement("LIB-2")
async def test_a_complete_chat_turn(host: Host, api: ModelApi):
    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": "mcp__demo__add", "arguments": '{"a":2,"b":3}'},
    }
    api.replies = [
        completion({"content": None, "tool_calls": [call]}, "tool_calls"),
        completion({"content": "It is 5."}, "stop"),
    ]
    tools = openai.chat_tools(host.tools())
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "2 + 3?"}]
    async with AsyncOpenAI(api_key="key", base_url=api.url, max_retries=0) as client:
        asked = (
            (await client.chat.completions.create(model="m", tools=tools, messages=messages))
            .choices[0]
            .message
        )
        messages.append(asked.to_dict())  # pyright: ignore[reportArgumentType]
        for each in asked.tool_calls or ():
            assert each.type == "function"
            messages.append(await openai.answer_chat(host, each))
        told = await client.chat.completions.create(model="m", tools=tools, messages=messages)

    assert told.choices[0].message.content == "It is 5."
    assert {tool["function"]["name"] for tool in api.requests[0]["tools"]} == {
        tool.name for tool in host.tools()
    }
    assert api.requests[1]["messages"][2] == {"role": "tool", "tool_call_id": "call-1", "content": "5"}


@pytest.mark.requirement("LIB-2")
async def test_a_complete_responses_turn(host: Host, api: ModelApi):
    call = {
        "type": "function_call",
        "call_id": "call-1",
        "name": "mcp__demo__picture",
        "arguments": '{"size": 8}',
    }
    text = {"type": "output_text", "text": "A dusk.", "annotations": []}
    api.replies = [
        response(call),
        response(
            {"id": "o", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
        ),
    ]
    tools = openai.responses_tools(host.tools())
    given: ResponseInputParam = [{"role": "user", "content": "Paint."}]
    async with AsyncOpenAI(api_key="key", base_url=api.url, max_retries=0) as client:
        asked = await client.responses.create(model="m", tools=tools, input=given)
        for each in asked.output:
            assert each.type == "function_call"
            given += [each.to_dict(), await openai.answer_response(host, each)]  # pyright: ignore[reportArgumentType]
        told = await client.responses.create(model="m", tools=tools, input=given)

    assert told.output_text == "A dusk."
    assert all(tool["strict"] is False for tool in api.requests[0]["tools"])
    output = api.requests[1]["input"][2]
    assert output["call_id"] == "call-1"
    assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]
    assert output["output"][1]["image_url"].startswith("data:image/png;base64,iVBOR")


@pytest.mark.requirement("LIB-2")
async def test_tools_and_results_have_the_librarys_types(host: Host):
    TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(openai.chat_tools(host.tools()))
    TypeAdapter(list[FunctionToolParam]).validate_python(openai.responses_tools(host.tools()))
    for name in ("demo__picture", "demo__fail", "odd__silent", "odd__dirty", "odd__broken_image"):
        message = await openai.answer_chat(host, chat_call(f"mcp__{name}", ""))
        TypeAdapter(ChatCompletionToolMessageParam).validate_python(message)
        output = await openai.answer_response(host, item(f"mcp__{name}", "{}"))
        TypeAdapter(FunctionCallOutput).validate_python(output)


@pytest.mark.requirement("LIB-2")
@pytest.mark.parametrize("arguments", ['{"a": 1,', "[]", "not json", '{"a": "x"}'])
async def test_invalid_arguments_are_reported_to_the_model(host: Host, arguments: str):
    message = await openai.answer_chat(host, chat_call("mcp__demo__add", arguments))
    output: Any = await openai.answer_response(host, item("mcp__demo__add", arguments))

    assert "the arguments do not fit mcp__demo__add" in str(message["content"])
    assert output["output"][0]["text"] == message["content"]


async def test_an_image_is_named_where_only_text_is_possible(host: Host):
    message = await openai.answer_chat(host, chat_call("mcp__demo__picture", ""))

    assert str(message["content"]).endswith("\n[image, image/png]")


async def test_a_description_is_never_longer_than_the_api_accepts(host: Host):
    (tool,) = [tool for tool in openai.responses_tools(host.tools()) if tool["name"] == "mcp__odd__choose"]

    description = str(tool.get("description"))
    assert len(description) <= 1024
    assert description.endswith("more characters]")


async def test_events_name_the_call_by_the_models_id(host: Host):
    listener = host.events()
    await openai.answer_chat(host, chat_call("mcp__demo__add", '{"a":2,"b":3}'))
    other = item("mcp__demo__add", '{"a":2,"b":3}')
    other.call_id = "call-2"
    await openai.answer_response(host, other)

    assert await call_ids(host, listener) == {"call-1", "call-2"}

"""LangChain's tools, called as its agents call them."""

from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from dragoman import CallOutcome, Host
from dragoman.adapters import langchain
from tests.unit.adapters.model_api import call_ids


def tool_of(host: Host, name: str) -> BaseTool:
    (tool,) = [tool for tool in langchain.tools(host) if tool.name == name]
    return tool


async def called(host: Host, name: str, arguments: dict[str, Any]) -> ToolMessage:
    call = {"type": "tool_call", "id": "call-1", "name": name, "args": arguments}
    message = await tool_of(host, name).ainvoke(call)
    assert isinstance(message, ToolMessage)
    return message


@pytest.mark.requirement("LIB-2")
async def test_a_tool_call_becomes_a_tool_message_with_the_outcome(host: Host):
    message = await called(host, "mcp__demo__add", {"a": 2, "b": 3})

    assert (message.tool_call_id, message.status, message.text) == ("call-1", "success", "5")
    assert isinstance(message.artifact, CallOutcome)
    assert message.artifact.structured == {"sum": 5}


async def test_an_image_is_a_separate_block(host: Host):
    message = await called(host, "mcp__demo__picture", {"size": 8})

    assert [block["type"] for block in message.content_blocks] == ["text", "image"]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [("fail", {"reason": "rain"}, "It did not work: rain."), ("add", {"a": 1}, "the arguments do not fit")],
)
async def test_an_error_is_a_message_for_the_model(host: Host, name: str, arguments: Any, text: str):
    message = await called(host, f"mcp__demo__{name}", arguments)

    assert message.status == "error"
    assert text in message.text


@pytest.mark.requirement("LIB-2")
async def test_models_get_the_tools_as_servers_describe_them(host: Host):
    told = {tool.name: convert_to_openai_tool(tool)["function"] for tool in langchain.tools(host)}

    assert told["mcp__demo__add"]["description"] == "Adds two numbers."
    assert told["mcp__demo__add"]["parameters"]["required"] == ["a", "b"]
    assert set(told["mcp__odd__choose"]["parameters"]["properties"]) == {"kind", "x", "pair"}


async def test_parameters_may_have_the_names_of_langchain_parameters(host: Host):
    arguments = {"config": "1", "run_manager": "2", "callbacks": "3", "self": "4"}

    message = await called(host, "mcp__odd__reserved", arguments)

    assert message.text == str(sorted(arguments))


async def test_without_a_tool_call_only_the_content_is_returned(host: Host):
    assert await tool_of(host, "mcp__demo__add").ainvoke({"a": 1, "b": 1}) == "2"


async def test_a_synchronous_call_raises_an_error(host: Host):
    with pytest.raises(NotImplementedError, match="ainvoke"):
        tool_of(host, "mcp__demo__add").invoke({"a": 1, "b": 1})


async def test_events_name_the_call_by_the_models_id(host: Host):
    listener = host.events()
    await called(host, "mcp__demo__add", {"a": 2, "b": 3})

    assert await call_ids(host, listener) == {"call-1"}

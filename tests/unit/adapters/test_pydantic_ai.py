"""pydantic-ai's agents with a host's tools: whole runs with scripted models."""

from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import BinaryContent
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from dragoman import Host
from dragoman.adapters.pydantic_ai import Toolset
from tests.unit.adapters.model_api import call_ids


class Script:
    """A model that makes one call and then tells what it got."""

    def __init__(self, name: str, arguments: Any) -> None:
        self.call = ToolCallPart(name, arguments)
        self.seen: AgentInfo | None = None
        self.returned: list[ToolReturnPart] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen = info
        if len(messages) == 1:
            return ModelResponse(parts=[self.call])
        self.returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[TextPart("done")])


async def run(host: Host, name: str, arguments: Any) -> Script:
    script = Script(name, arguments)
    agent = Agent(FunctionModel(script), toolsets=[Toolset(host)])
    assert (await agent.run("Go.")).output == "done"
    return script


@pytest.mark.requirement("LIB-2")
@pytest.mark.parametrize("arguments", [{"a": 2, "b": 3}, '{"a": 2, "b": 3}'])
async def test_a_complete_run(host: Host, arguments: Any):
    script = await run(host, "mcp__demo__add", arguments)

    (part,) = script.returned
    assert (part.tool_name, part.outcome, part.content) == ("mcp__demo__add", "success", "5")


@pytest.mark.requirement("LIB-2")
async def test_the_model_gets_the_tools_as_servers_describe_them(host: Host):
    script = await run(host, "mcp__demo__add", {"a": 1, "b": 1})

    assert script.seen is not None
    told = {tool.name: tool for tool in script.seen.function_tools}
    assert told.keys() == {tool.name for tool in host.tools()}
    assert told["mcp__demo__add"].parameters_json_schema["required"] == ["a", "b"]
    assert told["mcp__demo__add"].sequential is False
    assert told["mcp__odd__choose"].sequential is True


async def test_an_image_is_sent_to_the_model_as_an_image(host: Host):
    script = await run(host, "mcp__demo__picture", {"size": 8})

    assert [type(part) for part in script.returned[0].content] == [str, BinaryContent]  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [("fail", {"reason": "rain"}, "It did not work: rain."), ("add", {"a": 1}, "the arguments do not fit")],
)
async def test_an_error_is_reported_to_the_model_and_does_not_end_the_run(
    host: Host, name: str, arguments: Any, text: str
):
    script = await run(host, f"mcp__demo__{name}", arguments)

    assert script.returned[0].outcome == "failed"
    assert text in script.returned[0].model_response_str()


@pytest.mark.requirement("LIB-2")
async def test_a_model_that_calls_every_tool_by_its_schema_gets_results(host: Host):
    agent = Agent(
        TestModel(call_tools=["mcp__demo__add", "mcp__odd__choose"]), toolsets=[Toolset(host, id="tools")]
    )

    result = await agent.run("Go.")

    assert "mcp__demo__add" in result.output
    assert "chose" in result.output


async def test_events_name_the_call_by_the_models_id(host: Host):
    listener = host.events()
    script = await run(host, "mcp__demo__add", {"a": 2, "b": 3})

    assert await call_ids(host, listener) == {script.call.tool_call_id}

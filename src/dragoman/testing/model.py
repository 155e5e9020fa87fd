"""A model that follows a script, for tests and demonstrations of agents. Needs the extra `agent`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.tools import ToolDefinition


class Says(Struct, frozen=True):
    """The model writes a text; `pieces`: the parts in which it is streamed."""

    pieces: tuple[str, ...]


class Calls(Struct, frozen=True):
    """The model calls a tool. `arguments`: an object, or JSON text, which may be invalid."""

    tool: str
    arguments: Any = {}
    id: str | None = None


Step = Says | Calls | Exception | Callable[[Sequence[ModelMessage]], "Iterable[Says | Calls]"]
"""One response; an exception that is raised instead; or a function of the messages so far."""


class ScriptedModel:
    """`ScriptedModel([Calls("mcp__demo__add", {"a": 1, "b": 2})], "3")`: one response per argument."""

    def __init__(self, *script: str | Step | Sequence[Says | Calls]) -> None:
        self._script = list(script)
        self.requests: list[list[ModelMessage]] = []
        """The messages of each request."""
        self.tools: list[list[str]] = []
        """The names of the tools in each request."""
        self.definitions: list[list[ToolDefinition]] = []
        """The definitions of the tools in each request."""
        self.model = FunctionModel(stream_function=self._respond, model_name="scripted")

    @property
    def has_responses_left(self) -> bool:
        """Whether the script contains responses that were not requested yet."""
        return bool(self._script)

    async def _respond(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | DeltaToolCalls]:
        self.requests.append(list(messages))
        self.tools.append([tool.name for tool in info.function_tools])
        self.definitions.append(list(info.function_tools))
        if not self._script:
            raise AssertionError("the script of the model contains no response to this request")
        for place, part in enumerate(self._parts(self._script.pop(0), messages)):
            if isinstance(part, Says):
                for piece in part.pieces:
                    await asyncio.sleep(0)
                    yield piece
            else:
                yield {place: _tool_call(part, f"call-{len(self.requests)}-{place}")}

    def _parts(
        self, step: str | Step | Sequence[Says | Calls], messages: Sequence[ModelMessage]
    ) -> Iterable[Says | Calls]:
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            return [Says((step,))]
        if isinstance(step, Says | Calls):
            return [step]
        return step(messages) if callable(step) else step


def _tool_call(call: Calls, name: str) -> DeltaToolCall:
    text = call.arguments if isinstance(call.arguments, str) else msgspec.json.encode(call.arguments).decode()
    return DeltaToolCall(name=call.tool, json_args=text, tool_call_id=call.id or name)

"""Tools for pydantic-ai agents: a toolset that is read before every step, so that it follows the servers."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.answering import ToolCaller, all_text, make_call, parts_of, text_of
from dragoman.calls.outcome import CallOutcome
from dragoman.content.blocks import ImageBlock
from dragoman.errors import MissingPackage

try:
    from pydantic_ai import BinaryContent, RunContext, ToolDefinition
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema
except ImportError:
    raise MissingPackage("pydantic-ai-slim", "agent") from None


class Toolset(AbstractToolset[Any]):
    def __init__(self, caller: ToolCaller, *, id: str | None = None) -> None:
        self._caller, self._id = caller, id
        self._validator = SchemaValidator(core_schema.dict_schema())  # the host validates the arguments

    @property
    def id(self) -> str | None:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        found: dict[str, ToolsetTool[Any]] = {}
        for tool in self._caller.tools():
            definition = ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.model_schema,
                sequential=not tool.hints.read_only,  # read-only tools run in parallel
            )  # fmt: skip
            made = ToolsetTool(
                toolset=self, tool_def=definition, max_retries=1, args_validator=self._validator
            )
            found[tool.name] = made
        return found

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str | list[str | BinaryContent]:
        outcome = await make_call(self._caller, name, tool_args, ctx.tool_call_id)
        if outcome.is_error:
            raise ToolFailed(text_of(outcome))
        return content_of(outcome)


def content_of(outcome: CallOutcome) -> str | list[str | BinaryContent]:
    """The content of a result for the model: a text, or its parts if there are images."""
    parts = parts_of(outcome)
    return text_of(outcome) if all_text(parts) else [_content(part) for part in parts]


def _content(part: str | ImageBlock) -> str | BinaryContent:
    return part if isinstance(part, str) else BinaryContent(part.decode(), media_type=part.mime_type)

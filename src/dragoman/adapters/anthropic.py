"""Tools for Anthropic's Messages API. Values are plain dictionaries: the library need not be installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from dragoman.adapters.answering import ToolCaller, make_call, parts_of
from dragoman.catalog.tools import Tool
from dragoman.content.blocks import ImageBlock

if TYPE_CHECKING:
    from anthropic.types import ImageBlockParam, TextBlockParam, ToolParam, ToolResultBlockParam, ToolUseBlock


def tools(tools: Iterable[Tool]) -> list[ToolParam]:
    """The tools for `messages.create(tools=…)`."""
    return [_tool(tool) for tool in tools]


def _tool(tool: Tool) -> ToolParam:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.model_schema}


async def answer(caller: ToolCaller, block: ToolUseBlock) -> ToolResultBlockParam:
    """Makes the call. Returns the block for the next user message."""
    outcome = await make_call(caller, block.name, block.input, block.id)
    return {
        "type": "tool_result",
        "tool_use_id": block.id,
        "content": [_block(part) for part in parts_of(outcome)],
        "is_error": outcome.is_error,
    }


def _block(part: str | ImageBlock) -> TextBlockParam | ImageBlockParam:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image = {"type": "base64", "media_type": part.mime_type, "data": part.data}
    return cast("ImageBlockParam", {"type": "image", "source": image})

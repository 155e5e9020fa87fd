"""Tools for OpenAI's APIs, chat completions and responses. The library need not be installed. Strict mode is
never requested, because it forbids optional parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from dragoman.adapters.answering import ToolCaller, make_call, parts_of, shortened, text_of
from dragoman.catalog.tools import Tool
from dragoman.content.blocks import ImageBlock

if TYPE_CHECKING:
    from openai.types import chat, responses
    from openai.types.responses.response_input_item_param import FunctionCallOutput


def chat_tools(tools: Iterable[Tool]) -> list[chat.ChatCompletionFunctionToolParam]:
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def responses_tools(tools: Iterable[Tool]) -> list[responses.FunctionToolParam]:
    found = [{"type": "function", "strict": False, **_function(tool)} for tool in tools]
    return cast("list[responses.FunctionToolParam]", found)


async def answer_chat(
    caller: ToolCaller, call: chat.ChatCompletionMessageFunctionToolCall
) -> chat.ChatCompletionToolMessageParam:
    """Makes the call. Returns the message to append. It contains text only: images are described."""
    outcome = await make_call(caller, call.function.name, call.function.arguments, call.id)
    return {"role": "tool", "tool_call_id": call.id, "content": text_of(outcome)}


async def answer_response(caller: ToolCaller, item: responses.ResponseFunctionToolCall) -> FunctionCallOutput:
    """Makes the call. Returns the item to append to the next input."""
    outcome = await make_call(caller, item.name, item.arguments, item.call_id)
    output = [_item(part) for part in parts_of(outcome)]
    return {"type": "function_call_output", "call_id": item.call_id, "output": output}


def _function(tool: Tool) -> Any:
    # A longer description makes the request fail: "string too long. Expected … maximum length 1024".
    return {
        "name": tool.name,
        "description": shortened(tool, 1024),
        "parameters": tool.model_schema,
    }


def _item(part: str | ImageBlock) -> Any:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    return {"type": "input_image", "image_url": f"data:{part.mime_type};base64,{part.data}", "detail": "auto"}

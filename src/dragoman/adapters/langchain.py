"""Tools for LangChain agents. They are asynchronous: `ainvoke`, not `invoke`."""

from __future__ import annotations

from typing import Any, Literal

from dragoman.adapters.answering import ToolCaller, all_text, make_call, parts_of, text_of
from dragoman.calls.outcome import CallOutcome
from dragoman.content.blocks import ImageBlock
from dragoman.errors import MissingPackage

try:
    from langchain_core.tools import BaseTool, ToolException
except ImportError:
    raise MissingPackage("langchain-core", "langchain") from None


def tools(caller: ToolCaller) -> list[BaseTool]:
    """The current tools of the caller. A tool message has the whole outcome as its artifact."""
    return [
        CallerTool(name=tool.name, description=tool.description, args_schema=tool.model_schema, caller=caller)
        for tool in caller.tools()
    ]


class CallerTool(BaseTool):
    caller: Any
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], Any]:
        # Passed as one value: keywords named `config` or `run_manager` would collide with LangChain's own.
        return (tool_input, tool_call_id), {}

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{self.name} is asynchronous: use ainvoke")

    async def _arun(self, arguments: Any, tool_call_id: str | None = None) -> tuple[Any, CallOutcome]:
        outcome = await make_call(self.caller, self.name, arguments, tool_call_id)
        if outcome.is_error:
            raise ToolException(text_of(outcome))
        parts = parts_of(outcome)
        return text_of(outcome) if all_text(parts) else [_block(part) for part in parts], outcome


def _block(part: str | ImageBlock) -> dict[str, str]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image", "base64": part.data, "mime_type": part.mime_type}

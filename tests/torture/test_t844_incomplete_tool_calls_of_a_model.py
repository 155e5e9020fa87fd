"""T844: the stream of a model in OpenAI's chat format ends early and without an error, as behind proxies. A
tool call of which only the name has arrived is not made: it would have no arguments, and for a tool whose
arguments are optional that is another call."""

import json
from typing import Any

import httpx2
import pytest
from aiohttp import web
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from dragoman.agent.retry import is_cut_off
from tests.servers.web import Ask
from tests.servers.web.site import Site

pytestmark = pytest.mark.requirement("AGT-1")
TEXT: dict[str, Any] = {"role": "assistant", "content": "I will look."}
NAME: dict[str, Any] = {
    "tool_calls": [
        {"index": 0, "id": "c", "type": "function", "function": {"name": "remove", "arguments": ""}}
    ]
}
ARGUMENTS: dict[str, Any] = {"tool_calls": [{"index": 0, "function": {"arguments": '{"older_than": 30}'}}]}
STREAMS: dict[str, tuple[list[tuple[dict[str, Any], str | None]], bool]] = {
    "after the name": ([(TEXT, None), (NAME, None)], True),
    "after the arguments": ([(NAME, None), (ARGUMENTS, None)], False),
    "complete, without arguments": ([(NAME, None), ({}, "tool_calls")], False),
    "complete, with arguments": ([(NAME, None), (ARGUMENTS, None), ({}, "tool_calls")], False),
    "a text of an endpoint that never gives a reason": ([(TEXT, None)], False),
}


async def response_of(deltas: list[tuple[dict[str, Any], str | None]]) -> ModelResponse:
    async def answer(_: Ask) -> web.StreamResponse:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        chunks = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in deltas
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        return web.Response(text=text, content_type="text/event-stream")

    async with Site(answer) as site, httpx2.AsyncClient() as client:
        provider = OpenAIProvider(base_url=f"{site.origin}/v1", api_key="no key", http_client=client)
        request = [ModelRequest([UserPromptPart("Clean up.")])]
        async with model_request_stream(OpenAIChatModel("m", provider=provider), request) as stream:
            async for _ in stream:
                pass
            return stream.get()


@pytest.mark.parametrize("where", STREAMS)
async def test_t844_a_call_without_its_arguments_is_not_complete(where: str):
    deltas, expected = STREAMS[where]
    assert is_cut_off(await response_of(deltas)) is expected

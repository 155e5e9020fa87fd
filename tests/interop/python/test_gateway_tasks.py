"""Tasks of FastMCP behind the gateway: clients of both eras see ordinary calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway import Client, Json, Running, gateway_of
from tests.integration.waiting import until
from tests.interop.remote import RECIPES, Remote

Part = Callable[..., dict[str, Any]]
FORMS = {"elicitation": {"form": {}}}
eras = pytest.mark.parametrize("era", ["legacy", "modern"])
pytestmark = [pytest.mark.requirement("CAL-8", "GWY-2"), pytest.mark.needs("fastmcp")]


async def call(client: Client, era: str, tool: str, arguments: Json | None = None, **more: Any) -> list[Json]:
    params: Json = {"name": f"t__{tool}", "arguments": arguments or {}, **more}
    if era == "modern":
        meta = {"progressToken": 5}
        return (await client.modern("tools/call", params, meta=meta, capabilities=FORMS)).messages
    return (await client.legacy("tools/call", {**params, "_meta": {"progressToken": 5}})).messages


def text_of(message: Json) -> str:
    return str(message["result"]["content"][0]["text"])


@eras
async def test_a_task_has_a_result_or_an_error_and_progress(part: Part, era: str) -> None:
    async with (
        Remote(RECIPES["fastmcp-tasks"], part) as server,
        gateway_of({"t": server.entry}) as running,
        Client(running.url) as client,
    ):
        if era == "legacy":
            await client.initialize()
        *progress, done = await call(client, era, "work", {"seconds": 0.5})
        assert text_of(done) == "worked 0.5 s"
        assert "at work" in [each["params"].get("message") for each in progress]
        *_, failed = await call(client, era, "fail")
        assert failed["result"]["isError"] is True
        assert "it did not work" in text_of(failed)


async def test_the_client_gives_the_input_of_a_task(part: Part) -> None:
    async with (
        Remote(RECIPES["fastmcp-tasks"], part) as server,
        gateway_of({"t": server.entry}) as running,
        Client(running.url) as client,
    ):
        *_, asked = await call(client, "modern", "greet")
        ((key, question),) = asked["result"]["inputRequests"].items()
        assert question["params"]["message"] == "t asks: Who?"
        answer = {"action": "accept", "content": {"name": "Ada"}}
        state = asked["result"]["requestState"]
        *_, done = await call(client, "modern", "greet", requestState=state, inputResponses={key: answer})
        assert text_of(done) == "hello Ada"


async def _is_listed(running: Running) -> bool:
    return bool(await running.host.tasks.list())


@eras
async def test_a_cancelled_call_cancels_the_task(part: Part, era: str) -> None:
    async with (
        Remote(RECIPES["fastmcp-tasks"], part) as server,
        gateway_of({"t": server.entry}) as running,
        Client(running.url) as client,
        Client(running.url) as other,
    ):
        if era == "legacy":
            await client.initialize()
        calling = asyncio.create_task(call(client, era, "work", {"seconds": 60}))

        async def is_working() -> bool:  # a task that is cancelled before it begins is not counted
            *_, counted = await call(other, "modern", "count_working")
            return text_of(counted) == "1"

        await until(is_working)
        await until(lambda: _is_listed(running))
        if era == "legacy":
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
            await client.post(message)
        else:
            calling.cancel()

        async def is_cancelled() -> bool:
            *_, counted = await call(other, "modern", "count_cancelled")
            return text_of(counted) == "1"

        await until(is_cancelled)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)

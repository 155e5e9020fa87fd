"""Real clients in Python through the gateway: the official SDK, FastMCP, Dragoman in front of Dragoman."""

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastmcp import Client as FastMcpClient
from fastmcp.client.transports import SSETransport, StreamableHttpTransport
from mcp import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from dragoman import Host
from dragoman.interaction import FormAnswer, FormElicitation
from dragoman.testing import ScriptedUser
from tests.gateway import ADA, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1", "GWY-2")
HEADERS = {"Authorization": f"Bearer {ADA}"}
NAMES = {"office asks: Who asks?": "Ada", "office asks: Who pays?": "Bob"}
servers = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"], ids=["legacy", "modern"])


async def answer(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": NAMES[params.message]})


def names_in(text: str) -> list[str]:
    return [each["content"]["name"] for each in json.loads(text)]


@servers
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_lists_calls_reads_and_answers(revision: str, mode: str) -> None:
    async with (
        gateway_of({"office": Office((revision,))}) as running,
        httpx.AsyncClient(headers=HEADERS) as http,
    ):
        transport = streamable_http_client(running.url, http_client=http)
        async with SdkClient(transport, mode=mode, elicitation_callback=answer) as client:
            assert len((await client.list_tools()).tools) == 6
            seen: list[float] = []

            async def progressed(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)

            counted = await client.call_tool("office__count", {"to": 3}, progress_callback=progressed)
            assert (counted.content[0].text, seen) == ("3", [1, 2, 3])
            asked = await client.call_tool("office__ask", {})
            assert names_in(asked.content[0].text) == ["Ada", "Bob"]
            read = await client.read_resource("file:///a")
            assert read.contents[0].text == "one"


@servers
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_a_fastmcp_client_lists_calls_and_reads(revision: str, path: str) -> None:
    async with gateway_of({"office": Office((revision,))}) as running:
        url = running.url.replace("/mcp", path)
        kind = SSETransport if path == "/sse" else StreamableHttpTransport
        async with FastMcpClient(kind(url, headers=HEADERS)) as client:
            assert len(await client.list_tools()) == 6
            called = await client.call_tool("office__count", {"to": 3})
            assert called.content[0].text == "3"
            assert (await client.read_resource("file:///b"))[0].text == "two"


class Clerk(ScriptedUser):
    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        return FormAnswer("accept", {"name": NAMES[question.message]})


@servers
@pytest.mark.parametrize("type_", ["http", "sse", "ws"])
async def test_a_gateway_in_front_of_a_gateway(revision: str, type_: str) -> None:
    async with gateway_of({"office": Office((revision,))}) as running:
        path = {"http": "/mcp", "sse": "/sse", "ws": "/ws"}[type_]
        scheme = "ws" if type_ == "ws" else "http"
        entry = {"type": type_, "url": f"{scheme}://127.0.0.1:{running.port}{path}", "headers": HEADERS}
        async with Host(
            {"near": entry}, permission_mode="bypassPermissions", interaction=Clerk(True)
        ) as host:
            await host.ready()
            asked = await host.call("mcp__near__office__ask")
            assert names_in(asked.text) == ["Ada", "Bob"]
            seen: list[Any] = []
            await host.call("mcp__near__office__count", {"to": 3}, on_progress=seen.append)
            assert [each.progress for each in seen] == [1, 2, 3]
            assert (await host.resources.read("near", "file:///a")).text == "one"


async def test_a_gateway_in_front_of_a_gateway_over_stdio(home: Path) -> None:
    server = Path(__file__).parents[2] / "servers" / "office.py"
    inner = {"mcpServers": {"office": {"command": sys.executable, "args": [str(server)]}}}
    words = ["-m", "dragoman", "serve", "--stdio", "--mcp-config", json.dumps(inner)]
    entry = {"command": sys.executable, "args": [*words, "--permission-mode", "bypassPermissions"]}
    async with Host({"near": entry}, permission_mode="bypassPermissions", interaction=Clerk(True)) as host:
        await host.ready()
        assert names_in((await host.call("mcp__near__office__ask")).text) == ["Ada", "Bob"]

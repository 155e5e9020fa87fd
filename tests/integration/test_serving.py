"""The server side of `wire/` with clients of both eras: our own in memory, the official one over stdio."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult

from dragoman import Host
from dragoman.errors import RemoteError
from dragoman.interaction import FormAnswer, FormElicitation
from dragoman.testing import ScriptedUser
from tests.integration.waiting import until
from tests.servers.office import Office

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ROOT = Path(__file__).parents[2]
both_eras = pytest.mark.parametrize("revision", [LEGACY, MODERN])
NAMES = {"Who asks?": "Ada", "Who pays?": "Bob"}
ANSWERS = [{"action": "accept", "content": {"name": name}} for name in NAMES.values()]
every_revision = pytest.mark.parametrize(
    "revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
)


class Clerk(ScriptedUser):
    """Gives the name that forms ask for."""

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        return FormAnswer("accept", {"name": NAMES[question.message]})


def host_of(office: Office) -> Host:
    return Host({"office": office}, permission_mode="bypassPermissions", interaction=Clerk(True))


async def result(host: Host, tool: str, /, **arguments: Any) -> Any:
    return json.loads((await host.call(f"mcp__office__{tool}", arguments)).raise_for_error().text)


# --- our own client ---


@every_revision
async def test_dragomans_client_calls_and_reads_in_every_revision(revision: str):
    async with host_of(Office((revision,))) as host:
        (view,) = (await host.ready()).values()
        assert view.protocol_version == revision
        seen: list[Any] = []
        outcome = await host.call("mcp__office__count", {"to": 3}, on_progress=seen.append)
        assert (outcome.text, [each.progress for each in seen]) == ("3", [1, 2, 3])
        assert (await host.resources.read("office", "file:///a")).text == "one"
        with pytest.raises(RemoteError) as caught:
            await host.resources.read("office", "file:///none")
        assert caught.value.remote_code == (-32602 if revision == MODERN else -32002)


@both_eras
async def test_dragomans_client_answers_elicitations(revision: str):
    office = Office((revision,))
    async with host_of(office) as host:
        await host.ready()
        assert await result(host, "ask") == ANSWERS
    assert office.ledger == ["ask"] * (3 if revision == MODERN else 1), "once for each round"


@both_eras
async def test_dragomans_client_is_notified_of_changes(revision: str):
    office = Office((revision,))
    async with host_of(office) as host:
        await host.ready()
        await result(host, "hire", name="temp")
        await until(lambda: "temp" in {tool.wire_name for tool in host.tools()})
        assert await result(host, "temp") == "works"
        async with host.resources.subscribed("office", "file:///a") as updates:
            assert office.subscribed == ["file:///a"]
            await result(host, "touch", uri="file:///b")
            await result(host, "touch", uri="file:///a/page")
            assert (await asyncio.wait_for(anext(updates), 15)).uri == "file:///a/page"
        await until(lambda: not office.subscribed)


@both_eras
async def test_a_call_cancelled_by_dragomans_client_is_cancelled_at_the_server(revision: str):
    office = Office((revision,))
    async with host_of(office) as host:
        await host.ready()
        call = asyncio.create_task(host.call("mcp__office__hold"))
        await until(lambda: office.ledger == ["hold"])
        call.cancel()
        await until(lambda: office.ledger == ["hold", "cancelled"])
        assert await result(host, "count", to=1) == 1


# --- the official client, over stdio ---


async def elicited(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": NAMES[params.message]})


def official(revision: str, *command: str, **options: Any) -> Client:
    mode = "legacy" if revision == LEGACY else revision
    entry = StdioServerParameters(command=sys.executable, args=list(command), cwd=str(ROOT))
    return Client(entry, mode=mode, **options)


def text_of(result: Any) -> Any:
    return json.loads(result.content[0].text)


@both_eras
async def test_the_official_client_uses_the_demo_server(revision: str):
    seen: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with official(revision, "-m", "dragoman.demo") as client:
        assert client.protocol_version == revision
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["add", "count"]
        assert (await client.call_tool("add", {"a": 40, "b": 2})).structured_content == {"sum": 42}
        await client.call_tool("count", {"to": 3, "seconds": 0}, progress_callback=progressed)
        assert (await client.get_prompt("release_notes", {"version": "2.0"})).messages[0].role == "user"
        assert (await client.read_resource("demo://services")).contents[0].uri == "demo://services"
        with pytest.raises(MCPError) as caught:
            await client.read_resource("demo://nowhere")
        assert caught.value.error.code == (-32602 if revision == MODERN else -32002)
    assert seen == [1, 2, 3]


@both_eras
@pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
async def test_the_official_client_gets_elicitations_and_notifications(revision: str):
    notices: list[Any] = []

    async def noticed(message: Any) -> None:
        notices.append(getattr(message, "method", type(message).__name__))

    callbacks = {"elicitation_callback": elicited, "message_handler": noticed}
    async with official(revision, "-m", "tests.servers.office", revision, **callbacks) as client:
        assert text_of(await client.call_tool("ask")) == ANSWERS
        if revision == MODERN:
            async with client.listen(tools_list_changed=True, resource_subscriptions=["file:///a"]) as events:
                await client.call_tool("hire", {"name": "temp"})
                await client.call_tool("touch", {"uri": "file:///a"})
                heard = [await asyncio.wait_for(anext(events), 15) for _ in range(2)]
            assert [type(each).__name__ for each in heard] == ["ToolsListChanged", "ResourceUpdated"]
        else:
            await client.subscribe_resource("file:///a")
            await client.call_tool("hire", {"name": "temp"})
            await client.call_tool("touch", {"uri": "file:///a"})
            changed = ["notifications/tools/list_changed", "notifications/resources/updated"]
            await until(lambda: notices == changed)
            await client.unsubscribe_resource("file:///a")
        await until(lambda: _is_unsubscribed(client))


async def _is_unsubscribed(client: Client) -> bool:
    return text_of(await client.call_tool("ledger"))["subscribed"] == []

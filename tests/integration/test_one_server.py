"""What holds for every kind of server in every revision: listed, called, followed, cancelled, closed."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import CallTimeout, ConnectionLost, HostClosed, InvalidArguments, UnknownTool
from dragoman.events import (
    CallEvent,
    CallFinished,
    CallProgressed,
    CallStarted,
    Event,
    ServerConnected,
    ServerLogged,
    ServerStateChanged,
    ToolsChanged,
)
from dragoman.hooks.declared import hook
from tests.integration.conftest import SERVER, Connect
from tests.integration.waiting import until
from tests.integration.workshop import TOOLS


def tool(name: str) -> str:
    return f"mcp__{SERVER}__{name}"


async def held(host: Host) -> str:
    return (await host.call(tool("held"))).text


async def test_a_server_is_connected_in_its_revision_with_all_tools(connect: Connect) -> None:
    async with connect() as host:
        view = host.servers[SERVER]
        assert (view.status, view.reason, view.problems) == ("connected", None, ())
        assert view.protocol_version == connect.revision
        assert view.server_info["name"] == "workshop"
        assert (view.pid is not None) == connect.is_process
        assert [each.wire_name for each in host.tools()] == TOOLS
        assert [each.name for each in host.tools()] == [tool(name) for name in TOOLS]
        assert set(host.tools()[0].input_schema["required"]) == {"a", "b"}


async def test_a_result_has_text_and_structured_content(connect: Connect) -> None:
    async with connect() as host:
        outcome = await host.call(tool("add"), {"a": 40, "b": 2})
        assert (outcome.server, outcome.tool) == (SERVER, tool("add"))
        assert (outcome.text, outcome.structured, outcome.is_error) == ("42", {"result": 42}, False)
        assert outcome.raise_for_error() is outcome


@pytest.mark.requirement("CAL-6")
async def test_a_tool_that_fails_is_an_outcome_and_the_next_call_works(connect: Connect) -> None:
    async with connect() as host:
        outcome = await host.call(tool("fail"))
        assert outcome.is_error
        assert outcome.error is None, "the tool answered; nothing kept the call from a result"
        assert outcome.text
        assert (await host.call(tool("add"), {"a": 1, "b": 1})).text == "2"


async def test_a_call_that_cannot_be_made_is_reported_without_a_request(connect: Connect) -> None:
    async with connect() as host:
        listener = host.events()
        unknown = await host.call(tool("ad"), {})
        assert isinstance(unknown.error, UnknownTool)
        assert tool("add") in unknown.text, "a near name is offered"
        for arguments in ({"a": 1}, {"a": 1, "b": "two"}):
            invalid = await host.call(tool("add"), arguments)
            assert isinstance(invalid.error, InvalidArguments)
            assert "b" in invalid.text
    assert not [event async for event in listener if isinstance(event, CallStarted)]


@pytest.mark.requirement("CAL-3")
async def test_progress_reaches_the_caller_and_the_events(connect: Connect) -> None:
    async with connect() as host:
        listener, seen = host.events(), []
        outcome = await host.call(tool("count"), {"to": 3}, on_progress=seen.append)
        assert outcome.text == "done"
    expected = [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]
    assert [(each.progress, each.total, each.message) for each in seen] == expected
    told = [event async for event in listener if isinstance(event, CallProgressed)]
    assert [(each.progress, each.total, each.message) for each in told] == expected


@pytest.mark.requirement("CAL-3")
async def test_parallel_calls_of_one_tool_are_distinguished_by_their_ids(connect: Connect) -> None:
    uses: list[tuple[str, str]] = []

    def look(event: dict[str, Any]) -> None:
        uses.append((event["hook_event_name"], event["tool_use_id"]))

    hooks = [hook(look, "PreToolUse"), hook(look, "PostToolUse")]
    async with connect(hooks=hooks) as host:
        listener = host.events()
        ids = ("toolu_1", "toolu_2")
        await asyncio.gather(*(host.call(tool("count"), {"to": 2}, call_id=each) for each in ids))
    told = [event async for event in listener if isinstance(event, CallEvent)]
    for each in ids:
        assert [_in_short(event) for event in told if event.call_id == each] == [
            "call",
            "progress 1",
            "progress 2",
            "result",
        ]
        progressed = [
            event.as_mcp_progress()
            for event in told
            if isinstance(event, CallProgressed) and event.call_id == each
        ]
        assert progressed == [
            {
                "toolUseID": each,
                "data": {"type": "mcp_progress", "progress": done, "total": 2, "message": f"at {done}"},
            }
            for done in (1, 2)
        ]
    assert sorted(uses) == [(event, each) for event in ("PostToolUse", "PreToolUse") for each in ids]


async def test_cancelling_the_task_cancels_the_call_on_the_server(connect: Connect) -> None:
    async with connect() as host:
        call = asyncio.create_task(host.call(tool("hold")))
        await until(lambda: _says(host, "1 begun, 0 given up"))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: _says(host, "1 begun, 1 given up"))


async def test_a_call_over_its_time_limit_is_a_typed_error_and_is_cancelled_at_the_server(
    connect: Connect,
) -> None:
    async with connect() as host:
        # The server would hold it for ever. On a busy machine the first limit may be over before it begins.
        for seconds in (0.1, 1.0, 10.0):
            with pytest.raises(CallTimeout) as caught:
                await host.call(tool("hold"), timeout_seconds=seconds)
            assert (caught.value.server, caught.value.timeout_seconds) == (SERVER, seconds)
            if not await _says(host, "0 begun, 0 given up"):
                break
        await until(lambda: _says_all_were_given_up(host))


async def test_events_are_published_in_order(connect: Connect) -> None:
    async with connect.made() as host:
        listener = host.events()
        async with host:
            await host.ready(timeout=30)
            await host.call(tool("count"), {"to": 2})
    told = [event async for event in listener if not isinstance(event, ServerLogged | ToolsChanged)]
    assert [_in_short(event) for event in told] == [
        "pending connecting",
        "pending handshaking",
        "connected",
        f"speaks {connect.revision}",
        "call",
        "progress 1",
        "progress 2",
        "result",
        "disabled",
    ]


async def test_closing_ends_a_running_call_and_leaves_no_process(connect: Connect) -> None:
    before = asyncio.all_tasks()
    async with connect() as host:
        pid = host.servers[SERVER].pid
        call = asyncio.create_task(host.call(tool("hold")))
        await until(lambda: _says(host, "1 begun, 0 given up"))
    with pytest.raises((ConnectionLost, HostClosed)):
        await call
    with pytest.raises(HostClosed):
        await host.call(tool("add"), {"a": 1, "b": 1})
    assert host.tools() == []
    assert pid is None or not Path(f"/proc/{pid}").exists()
    await until(lambda: asyncio.all_tasks() <= before)


async def _says_all_were_given_up(host: Host) -> bool:
    return re.fullmatch(r"([1-9]\d*) begun, \1 given up", await held(host)) is not None


async def _says(host: Host, what: str) -> bool:
    return await held(host) == what


def _in_short(event: Event) -> str:
    match event:
        case ServerStateChanged(status=status, phase=phase):
            return f"{status} {phase}" if phase else status
        case ServerConnected(protocol_version=version):
            return f"speaks {version}"
        case CallStarted():
            return "call"
        case CallProgressed(progress=progress):
            return f"progress {progress:g}"
        case CallFinished(is_error=is_error):
            return "error" if is_error else "result"
        case _:
            return repr(event)

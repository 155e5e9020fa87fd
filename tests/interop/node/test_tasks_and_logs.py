"""The reference server from npm: its task with input, its progress, its log messages and its updates, over
every transport; from the library and from the command line."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Host
from dragoman.events import ResourceUpdated, ServerLogged
from dragoman.hooks.declared import hook
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.e2e.person import Person
from tests.interop.remote import RECIPES, Remote

Part = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.needs("server-everything")

TRANSPORTS = ["stdio", "everything-http", "everything-sse"]
LIMIT = 40.0


@asynccontextmanager
async def entry_of(part: Part, transport: str) -> AsyncIterator[dict[str, Any]]:
    if transport == "stdio":
        yield part("server-everything")
    else:
        async with Remote(RECIPES[transport], part) as server:
            yield server.entry


@asynccontextmanager
async def visited(part: Part, transport: str, **options: Any) -> AsyncIterator[Host]:
    async with (
        entry_of(part, transport) as entry,
        Host({"v": entry}, permission_mode="bypassPermissions", **options) as host,
    ):
        await host.ready(timeout=LIMIT)
        yield host


def accepts(given: Any) -> Any:
    content = {"interpretation": "snake"}
    return {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": content}}


@pytest.mark.requirement("CAL-8")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_its_task_is_an_ordinary_call_with_progress_and_input(part: Part, transport: str):
    seen: list[str] = []
    async with visited(part, transport, hooks=[hook(accepts, "Elicitation")]) as host:
        outcome = await host.call(
            "mcp__v__simulate-research-query",
            {"topic": "python", "ambiguous": True},
            timeout_seconds=LIMIT,
            on_progress=lambda progress: seen.append(progress.message or ""),
        )
        assert not outcome.is_error, outcome.text
        assert "# Research Report: python (snake)" in outcome.text
        assert "Analyzing content..." in seen
        assert outcome.meta is not None
        assert "io.modelcontextprotocol/related-task" in outcome.meta


@pytest.mark.requirement("CAL-8")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_its_task_is_cancelled_and_moved_to_the_background(part: Part, transport: str):
    async with visited(part, transport) as host:
        call = "mcp__v__simulate-research-query"
        outcome = await host.call(call, {"topic": "x"}, background_after_seconds=0.5, timeout_seconds=LIMIT)
        assert outcome.task is not None
        assert (await host.tasks.get(outcome.task)).status == "working"
        done = await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
        assert "# Research Report: x" in done.text

        outcome = await host.call(call, {"topic": "x"}, background_after_seconds=0, timeout_seconds=LIMIT)
        assert outcome.task is not None
        assert (await host.tasks.cancel(outcome.task)).status == "cancelled"


@pytest.mark.requirement("ASK-6")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_its_log_messages_come_at_the_level_that_was_set(part: Part, transport: str):
    async with visited(part, transport, server_logs=True) as host:
        await host.set_log_level("v", "debug")
        events = host.events()
        started = await host.call("mcp__v__toggle-simulated-logging")
        assert not started.is_error
        async with asyncio.timeout(LIMIT):
            async for event in events:
                if isinstance(event, ServerLogged) and "level message" in event.text.lower():
                    break


@pytest.mark.requirement("CAT-9")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_updates_of_a_subscribed_resource_arrive(part: Part, transport: str):
    uri = "demo://resource/dynamic/text/1"
    async with visited(part, transport) as host:
        events = host.events()
        async with host.resources.subscribed("v", uri):
            await host.call("mcp__v__toggle-subscriber-updates")
            async with asyncio.timeout(LIMIT):
                async for event in events:
                    if isinstance(event, ResourceUpdated):
                        assert event.uri == uri
                        break


@pytest.mark.slow
@pytest.mark.requirement("CAL-8", "CLI-2")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_its_task_from_the_command_line(part: Part, transport: str):
    async with entry_of(part, transport) as entry:
        words = ("call", "--json", "--mcp-config", config(v=entry), "mcp__v__simulate-research-query")
        done = await asyncio.to_thread(run, *words, "topic=whales")
        assert done.returncode == 0, done.stderr
        assert "# Research Report: whales" in json.loads(done.stdout)["text"]


@pytest.mark.slow
@pytest.mark.requirement("CAL-3", "CLI-2")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_its_progress_at_the_terminal(part: Part, transport: str):
    def watch(entry: dict[str, Any]) -> tuple[int, str]:
        words = ("mcp__v__trigger-long-running-operation", "duration=2", "steps=4")
        with Person("call", *words, "--mcp-config", config(v=entry)) as person:
            for share in (" 25% ", " 50% ", " 75% "):
                person.sees(share)
            return person.ends()

    async with entry_of(part, transport) as entry:
        code, shown = await asyncio.to_thread(watch, entry)
    assert code == 0, shown
    assert "Long running operation completed. Duration: 2 seconds, Steps: 4." in shown


URI = "demo://resource/dynamic/text/1"


@pytest.mark.slow
@pytest.mark.requirement("CAT-9", "CLI-2")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_its_updates_at_the_terminal(part: Part, transport: str):
    def watch(entry: dict[str, Any]) -> tuple[int, str]:
        words = ("read", "v", URI, "--watch", "--call", "toggle-subscriber-updates")
        with Person(*words, "--mcp-config", config(v=entry)) as person:
            person.sees("Resource 1: This is a plaintext resource created at")
            person.sees("Started simulated resource updated notifications")
            for _ in range(2):  # each is read again after an update
                person.sees("Resource 1: This is a plaintext resource created at")
            person.type(b"\x03")
            return person.ends()

    async with entry_of(part, transport) as entry:
        code, shown = await asyncio.to_thread(watch, entry)
    assert code == 0, shown
    audited = [json.loads(line)["tool"] for line in run("logs", "--json").stdout.splitlines()]
    assert "mcp__v__toggle-subscriber-updates" in audited


@pytest.mark.slow
@pytest.mark.requirement("ASK-6", "CLI-2")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_its_log_messages_at_the_terminal(part: Part, transport: str):
    def watch(entry: dict[str, Any]) -> str:
        words = ("read", "v", URI, "--watch", "--call", "toggle-simulated-logging")
        with Person(*words, "--mcp-config", config(v={**entry, "logLevel": "debug"})) as talking:
            talking.sees("Started simulated, random-leveled logging")
            with Person("logs", "v", "--follow") as following:
                following.sees(" message    ")
                shown = following.sees("level")
                following.type(b"\x03")
                following.ends()
            talking.type(b"\x03")
            talking.ends()
            return shown

    async with entry_of(part, transport) as entry:
        assert await asyncio.to_thread(watch, entry)

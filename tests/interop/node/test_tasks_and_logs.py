"""The reference server from npm: its task with input, its progress, its log messages and its updates, over
every transport; from the library and from the command line.

Most of the time of these tests is pauses of that server, so each looks at the transports side by side.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
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
QUICK_INTERVALS = {"NODE_OPTIONS": f"--require={Path(__file__).parent / 'quick_intervals.cjs'}"}
TASK = "simulate-research-query"
URI = "demo://resource/dynamic/text/1"


@asynccontextmanager
async def entry_of(part: Part, transport: str) -> AsyncIterator[dict[str, Any]]:
    if transport == "stdio":
        yield {**part("server-everything"), "env": QUICK_INTERVALS}
    else:
        recipe = RECIPES[transport]
        environment = {**recipe.environment, **QUICK_INTERVALS}
        async with Remote(replace(recipe, environment=environment), part) as server:
            yield server.entry


async def over_every_transport(part: Part, look: Callable[[str, dict[str, Any]], Awaitable[object]]) -> None:
    """Looks at the server over each transport, side by side. The server is named after the transport."""

    async def over(transport: str) -> None:
        try:
            async with entry_of(part, transport) as entry:
                await look(transport, entry)
        except BaseException as error:
            error.add_note(f"over {transport}")
            raise

    async with asyncio.TaskGroup() as group:
        for transport in TRANSPORTS:
            group.create_task(over(transport))


@asynccontextmanager
async def visited(name: str, entry: dict[str, Any], **options: Any) -> AsyncIterator[Host]:
    async with Host({name: entry}, permission_mode="bypassPermissions", **options) as host:
        await host.ready(timeout=LIMIT)
        yield host


def accepts(given: Any) -> Any:
    content = {"interpretation": "snake"}
    return {"hookSpecificOutput": {"hookEventName": "Elicitation", "action": "accept", "content": content}}


@pytest.mark.requirement("CAL-8")
async def test_its_task_is_an_ordinary_call_with_progress_and_input(part: Part):
    async def look(name: str, entry: dict[str, Any]) -> None:
        seen: list[str] = []
        async with visited(name, entry, hooks=[hook(accepts, "Elicitation")]) as host:
            outcome = await host.call(
                f"mcp__{name}__{TASK}",
                {"topic": "python", "ambiguous": True},
                timeout_seconds=LIMIT,
                on_progress=lambda progress: seen.append(progress.message or ""),
            )
            assert not outcome.is_error, outcome.text
            assert "# Research Report: python (snake)" in outcome.text
            assert "Analyzing content..." in seen
            assert outcome.meta is not None
            assert "io.modelcontextprotocol/related-task" in outcome.meta

    await over_every_transport(part, look)


@pytest.mark.requirement("CAL-8")
async def test_its_task_is_cancelled_and_moved_to_the_background(part: Part):
    async def look(name: str, entry: dict[str, Any]) -> None:
        async with visited(name, entry) as host:
            call, words = f"mcp__{name}__{TASK}", {"topic": "x"}
            outcome = await host.call(call, words, background_after_seconds=0.5, timeout_seconds=LIMIT)
            assert outcome.task is not None
            assert (await host.tasks.get(outcome.task)).status == "working"
            done = await host.tasks.result(outcome.task, timeout_seconds=LIMIT)
            assert "# Research Report: x" in done.text

            outcome = await host.call(call, words, background_after_seconds=0, timeout_seconds=LIMIT)
            assert outcome.task is not None
            assert (await host.tasks.cancel(outcome.task)).status == "cancelled"

    await over_every_transport(part, look)


@pytest.mark.requirement("ASK-6")
async def test_its_log_messages_have_the_configured_level(part: Part):
    async def look(name: str, entry: dict[str, Any]) -> None:
        async with visited(name, entry, server_logs=True) as host:
            await host.set_log_level(name, "debug")
            events = host.events()
            started = await host.call(f"mcp__{name}__toggle-simulated-logging")
            assert not started.is_error
            async with asyncio.timeout(LIMIT):
                async for event in events:
                    if isinstance(event, ServerLogged) and "level message" in event.text.lower():
                        break

    await over_every_transport(part, look)


@pytest.mark.requirement("CAT-9")
async def test_updates_of_a_subscribed_resource_arrive(part: Part):
    async def look(name: str, entry: dict[str, Any]) -> None:
        async with visited(name, entry) as host:
            events = host.events()
            async with host.resources.subscribed(name, URI):
                await host.call(f"mcp__{name}__toggle-subscriber-updates")
                async with asyncio.timeout(LIMIT):
                    async for event in events:
                        if isinstance(event, ResourceUpdated):
                            assert event.uri == URI
                            break

    await over_every_transport(part, look)


@pytest.mark.slow
@pytest.mark.requirement("CAL-8", "CLI-2")
async def test_its_task_from_the_command_line(part: Part):
    async def look(name: str, entry: dict[str, Any]) -> None:
        words = ("call", "--json", "--mcp-config", config(**{name: entry}), f"mcp__{name}__{TASK}")
        done = await asyncio.to_thread(run, *words, "topic=whales")
        assert done.returncode == 0, done.stderr
        assert "# Research Report: whales" in json.loads(done.stdout)["text"]

    await over_every_transport(part, look)


@pytest.mark.slow
@pytest.mark.requirement("CAL-3", "CLI-2")
async def test_its_progress_at_the_terminal(part: Part):
    def watch(name: str, entry: dict[str, Any]) -> tuple[int, str]:
        words = (f"mcp__{name}__trigger-long-running-operation", "duration=2", "steps=4")
        with Person("call", *words, "--mcp-config", config(**{name: entry})) as person:
            for share in (" 25% ", " 50% ", " 75% "):
                person.sees(share)
            return person.ends()

    async def look(name: str, entry: dict[str, Any]) -> None:
        code, shown = await asyncio.to_thread(watch, name, entry)
        assert code == 0, shown
        assert "Long running operation completed. Duration: 2 seconds, Steps: 4." in shown

    await over_every_transport(part, look)


@pytest.mark.slow
@pytest.mark.requirement("CAT-9", "CLI-2")
async def test_its_updates_at_the_terminal(part: Part):
    def watch(name: str, entry: dict[str, Any]) -> tuple[int, str]:
        words = ("read", name, URI, "--watch", "--call", "toggle-subscriber-updates")
        with Person(*words, "--mcp-config", config(**{name: entry})) as person:
            person.sees("Resource 1: This is a plaintext resource created at")
            person.sees("Started simulated resource updated notifications")
            for _ in range(2):  # each is read again after an update
                person.sees("Resource 1: This is a plaintext resource created at")
            person.type(b"\x03")
            return person.ends()

    async def look(name: str, entry: dict[str, Any]) -> None:
        code, shown = await asyncio.to_thread(watch, name, entry)
        assert code == 0, shown

    await over_every_transport(part, look)
    audited = {json.loads(line)["tool"] for line in run("logs", "--json").stdout.splitlines()}
    assert audited >= {f"mcp__{name}__toggle-subscriber-updates" for name in TRANSPORTS}


@pytest.mark.slow
@pytest.mark.requirement("ASK-6", "CLI-2")
async def test_its_log_messages_at_the_terminal(part: Part):
    def watch(name: str, entry: dict[str, Any]) -> str:
        words = ("read", name, URI, "--watch", "--call", "toggle-simulated-logging")
        with Person(*words, "--mcp-config", config(**{name: {**entry, "logLevel": "debug"}})) as talking:
            talking.sees("Started simulated, random-leveled logging")
            with Person("logs", name, "--follow") as following:
                following.sees(" message    ")
                shown = following.sees("level")
                following.type(b"\x03")
                following.ends()
            talking.type(b"\x03")
            talking.ends()
            return shown

    async def look(name: str, entry: dict[str, Any]) -> None:
        assert await asyncio.to_thread(watch, name, entry)

    await over_every_transport(part, look)

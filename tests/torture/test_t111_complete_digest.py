"""T111: Every part of a tool that is shown to a model or person, or changes how it runs, is in its
digest and the tool lock."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.catalog.changes import describe
from dragoman.catalog.lock import Lock, compare, read_lock, updated, write_lock
from dragoman.testing import InMemoryServer
from tests.servers import stdio_server

CHANGES = {
    "a search hint": ({"_meta": {"anthropic/searchHint": "bank transfer"}}, "anthropic/searchHint"),
    "loading at once": (
        {"_meta": {"anthropic/alwaysLoad": True}},
        "anthropic/alwaysLoad: (not stated) → true",
    ),
    "visibility": ({"_meta": {"ui": {"visibility": ["app"]}}}, "visibility"),
    "icons": ({"icons": [{"src": "https://evil.example/lock.png"}]}, "https://evil.example/lock.png"),
    "execution": ({"execution": {"taskSupport": "required"}}, 'taskSupport: (not stated) → "required"'),
}


@pytest.mark.requirement("CAT-11")
@pytest.mark.parametrize(("change", "shown"), CHANGES.values(), ids=CHANGES.keys())
async def test_a_changed_part_is_detected_and_left_out_by_a_host_with_a_tool_lock(
    change: dict[str, Any], shown: str, tmp_path: Path
):
    lock, entry = (
        tmp_path / ".mcp.lock",
        stdio_server("changes_definitions.py", json.dumps(change), str(tmp_path / "turned")),
    )
    async with Host({"s": entry}, permission_mode="bypassPermissions") as host:
        await host.ready()
        write_lock(lock, updated(Lock(), host.tools(include_app_tools=True), read=["s"]))
        locked = read_lock(lock)
        await host.call("mcp__s__turn", {"quietly": True})
        await host.reconnect("s")
        await host.ready()
        (found,) = compare(locked, host.tools(include_app_tools=True))
        assert found.tool == "add"
        assert found.parts == (next(iter(change)),)
        assert shown in describe(found)
        write_lock(lock, updated(locked, host.tools(include_app_tools=True), read=["s"]))
        assert compare(read_lock(lock), host.tools(include_app_tools=True)) == ()
    async with Host({"s": entry}, tool_lock=_written(lock, locked)) as host:
        await host.ready()
        assert [tool.wire_name for tool in host.tools()] == ["calm", "turn"]


def _written(path: Path, lock: Lock) -> Path:
    write_lock(path, lock)
    return path


def _library(description: str, required: bool, mime: str) -> InMemoryServer:
    server = InMemoryServer("library")
    arguments = [{"name": "book", "description": description, "required": required}]
    server.contents.add_prompt("summarise", lambda given: f"Summarise {given}", arguments, {})
    server.contents.add_template("book://{isbn}", lambda _: "text", {}, mimeType=mime)
    return server


SEEN = ("Which one.", True, "text/plain")
OTHERS = {
    "the description of an argument": (("Your password.", True, "text/plain"), "prompt summarise"),
    "a required argument": (("Which one.", False, "text/plain"), "prompt summarise"),
    "the type of a template": (("Which one.", True, "text/html"), "resource template book://{isbn}"),
}


@pytest.mark.requirement("CAT-11")
@pytest.mark.parametrize(("other", "key"), OTHERS.values(), ids=OTHERS.keys())
async def test_a_changed_prompt_or_template_is_detected_and_left_out_by_a_host_with_a_tool_lock(
    other: tuple[str, bool, str], key: str, tmp_path: Path
):
    lock = tmp_path / ".mcp.lock"
    async with Host({"s": _library(*SEEN)}) as host:
        write_lock(lock, updated(Lock(), await _offered(host), read=["s"]))
        assert compare(read_lock(lock), await _offered(host)) == ()
    async with Host({"s": _library(*SEEN)}, tool_lock=lock) as host:
        assert len(await _offered(host)) == 2
    async with Host({"s": _library(*other)}) as host:
        (change,) = compare(read_lock(lock), await _offered(host))
        assert (change.tool, change.kind) == (key, "changed")
        assert len(describe(change).split("\n")) > 2
    async with Host({"s": _library(*other)}, tool_lock=lock) as host:
        assert len(await _offered(host)) == 1


async def _offered(host: Host) -> list[object]:
    await host.ready(timeout=30)
    return [*host.tools(), *await host.prompts.list(), *await host.resources.templates()]

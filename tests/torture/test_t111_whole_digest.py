"""T111: what a model or person is shown of a tool, or changes how it runs, is in its digest and the lock."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.catalog.changes import describe
from dragoman.catalog.lock import Lock, compare, read_lock, updated, write_lock
from tests.servers import zoo

CHANGES = {
    "a search hint": ({"_meta": {"anthropic/searchHint": "bank transfer"}}, "anthropic/searchHint"),
    "loading at once": ({"_meta": {"anthropic/alwaysLoad": True}}, "anthropic/alwaysLoad: (not said) → true"),
    "visibility": ({"_meta": {"ui": {"visibility": ["app"]}}}, "visibility"),
    "icons": ({"icons": [{"src": "https://evil.example/lock.png"}]}, "https://evil.example/lock.png"),
    "execution": ({"execution": {"taskSupport": "required"}}, 'taskSupport: (not said) → "required"'),
}


@pytest.mark.requirement("CAT-11")
@pytest.mark.parametrize(("change", "shown"), CHANGES.values(), ids=CHANGES.keys())
async def test_a_changed_part_is_noticed_and_left_out_by_a_frozen_host(
    change: dict[str, Any], shown: str, tmp_path: Path
):
    lock, entry = (
        tmp_path / ".mcp.lock",
        zoo("turns_its_coat.py", json.dumps(change), str(tmp_path / "turned")),
    )
    async with Host({"s": entry}, permission_mode="bypassPermissions") as host:
        await host.ready()
        write_lock(lock, updated(Lock(), host.tools(), read=["s"]))
        locked = read_lock(lock)
        await host.call("mcp__s__turn", {"quietly": True})
        await host.reconnect("s")
        await host.ready()
        (found,) = compare(locked, host.tools())
        assert found.tool == "add"
        assert found.parts == (next(iter(change)),)
        assert shown in describe(found)
        write_lock(lock, updated(locked, host.tools(), read=["s"]))
        assert compare(read_lock(lock), host.tools()) == ()
    async with Host({"s": entry}, frozen=_written(lock, locked)) as host:
        await host.ready()
        assert [tool.wire_name for tool in host.tools()] == ["calm", "turn"]


def _written(path: Path, lock: Lock) -> Path:
    write_lock(path, lock)
    return path

"""Every real server in one host: three eras of servers, two languages, side by side."""

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host

REVISIONS = {
    "server-everything": "2025-11-25",
    "server-filesystem": "2025-11-25",
    "server-memory": "2025-11-25",
    "server-github": "2024-11-05",
    "mcp-server-git": "2026-07-28",
    "mcp-server-time": "2026-07-28",
}


@pytest.mark.needs(*REVISIONS)
async def test_six_servers_in_one_host(part: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "letter.txt").write_text("Dear Sultan,\n")
    servers = {name: part(name) for name in REVISIONS}
    servers["server-filesystem"] = part("server-filesystem", str(tmp_path))
    servers["server-memory"]["env"] = {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        views = await host.ready(timeout=50)
        assert {name: view.reason for name, view in views.items() if view.status != "connected"} == {}
        assert {name: view.protocol_version for name, view in views.items()} == REVISIONS
        assert len(host.tools()) == sum(view.tool_count for view in views.values())
        assert len({tool.name for tool in host.tools()}) == len(host.tools())

        calls = {
            "server-everything__echo": {"message": "hello"},
            "server-filesystem__read_text_file": {"path": str(tmp_path / "letter.txt")},
            "server-memory__read_graph": {},
            "mcp-server-git__git_status": {"repo_path": str(tmp_path)},
            "mcp-server-time__get_current_time": {"timezone": "Europe/Vienna"},
        }
        outcomes = await asyncio.gather(*(host.call(f"mcp__{name}", words) for name, words in calls.items()))
        assert [outcome.tool for outcome in outcomes if outcome.is_error] == []
        for outcome, word in zip(
            outcomes, ("hello", "Dear Sultan", "entities", "letter.txt", "Europe/Vienna")
        ):
            assert word in outcome.text
    for view in views.values():
        assert not Path(f"/proc/{view.pid}").exists()

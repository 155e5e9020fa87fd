"""T351: programs, among them servers, write very many files into a folder whose settings are watched."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.events import ConfigurationChanged
from tests.cpu_time import CpuTimer

FILES = 10_000
BOUND_SECONDS = 0.7
"""Of processor time, for all of it. Where each file was compared with a new list of settings files, it took
seconds, and the event loop stood still meanwhile."""
PROGRAM = f"""
import os, sys
for number in range({FILES}):
    open(os.path.join(sys.argv[1], f"output-{{number}}"), "w").close()
"""


async def follow(host: Host, file: Path, name: str) -> None:
    """Adds a server to the file; returns when the host has read it."""
    events = host.events(ConfigurationChanged)
    file.write_text(json.dumps({"mcpServers": {name: {"command": sys.executable}}}))
    async for event in events:
        if isinstance(event, ConfigurationChanged) and name in event.added:
            return


@pytest.mark.requirement("CFG-11")
async def test_t351_very_many_new_files_beside_project_settings_need_little_time(home: Path):
    folder = home / "work" / "a" / "deep" / "folder"
    folder.mkdir(parents=True)
    async with asyncio.timeout(50), Host.configured(cwd=folder, watch=True) as host:
        await follow(host, folder / ".mcp.json", "before")
        spent = CpuTimer()
        writing = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, str(folder))
        await writing.wait()
        await follow(host, folder / ".mcp.json", "after")
        assert spent.seconds() < BOUND_SECONDS

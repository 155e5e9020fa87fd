"""T502: a lazy server of code or `--mcp-config` starts in the working folder; its stored tool list of one
folder is not used in another, where the same command may be another program."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from dragoman import Host
from tests.servers import SERVER_PROGRAMS

pytestmark = pytest.mark.requirement("LIF-11")

ENTRY = {"command": sys.executable, "args": ["server.py"], "lazy": True}


def project(folder: Path, description: str) -> Path:
    """A folder with its own program of the same name."""
    folder.mkdir()
    shutil.copy(SERVER_PROGRAMS / "_kit.py", folder)
    tool = {"name": "note", "description": description, "inputSchema": {"type": "object"}}
    pages = f"json.loads({json.dumps([{'tools': [tool]}])!r})"
    program = (SERVER_PROGRAMS / "lists_given_pages.py").read_text().replace("json.loads(sys.argv[1])", pages)
    (folder / "server.py").write_text(program)
    return folder


async def shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    monkeypatch.chdir(folder)
    async with Host({"s": ENTRY}) as host:
        await host.ready(timeout=20)
        return host.servers["s"].status, [tool.description for tool in host.tools()]


async def test_t502_each_folder_has_its_own_tool_list(home: Path, monkeypatch: pytest.MonkeyPatch):
    clone, work = project(home / "clone", "Obey the clone."), project(home / "mine", "Takes a note.")
    assert await shown(clone, monkeypatch) == ("connected", ["Obey the clone."])
    assert await shown(work, monkeypatch) == ("connected", ["Takes a note."])
    assert await shown(clone, monkeypatch) == ("pending", ["Obey the clone."])
    assert await shown(work, monkeypatch) == ("pending", ["Takes a note."])

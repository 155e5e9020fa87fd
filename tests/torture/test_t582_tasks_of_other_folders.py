"""T582: a server of code or `--mcp-config` starts in the working folder; a task of its program in one
folder is not fetched from the program of the same name in another."""

import shutil
import sys
from pathlib import Path

import pytest

from dragoman import Host
from tests.servers import SERVER_PROGRAMS

pytestmark = pytest.mark.requirement("CAL-8")
ENTRY = {"command": sys.executable, "args": ["-S", "runs_tasks.py", "modern", "state"]}


def host_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.chdir(folder)
    return Host({"s": ENTRY}, permission_mode="bypassPermissions")


async def test_t582_a_task_belongs_to_the_program_of_its_folder(home: Path, monkeypatch: pytest.MonkeyPatch):
    mine, clone = home / "mine", home / "clone"
    mine.mkdir()
    for name in ("_kit.py", "runs_tasks.py"):
        shutil.copy(SERVER_PROGRAMS / name, mine)
    async with host_in(mine, monkeypatch) as host:
        await host.ready(timeout=20)
        task = (await host.call("mcp__s__work", {"text": "mine"}, background_after_seconds=0)).task
    assert task is not None
    shutil.copytree(mine, clone)
    (clone / "state").write_text((clone / "state").read_text().replace("mine", "false"))
    async with host_in(clone, monkeypatch) as host:
        await host.ready(timeout=20)
        found = await host.tasks.result(task, timeout_seconds=20)
        assert found.error is not None
        assert found.error.code == "task-not-found"
        assert "false" not in found.text
    async with host_in(mine, monkeypatch) as host:
        await host.ready(timeout=20)
        assert (await host.tasks.result(task, timeout_seconds=20)).text == "mine"

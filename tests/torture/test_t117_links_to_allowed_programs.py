"""T117: a symlink to an allowed program does not run the virtual environment around the symlink."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from tests.torture import projects
from tests.torture.projects import approve, servers, write

pytestmark = pytest.mark.requirement("CFG-7")

PYTHON = os.path.realpath(sys.executable)
VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"


def environment(folder: Path, mark: Path) -> Path:
    """A virtual environment with a module `safe_server` that creates a marker file; its python is a symlink
    to the interpreter of the tests."""
    site = folder / "lib" / VERSION / "site-packages"
    site.mkdir(parents=True)
    (site / "safe_server.py").write_text(f"open({str(mark)!r}, 'w').close()")
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(PYTHON)}\n")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(PYTHON)
    return folder / "bin" / "python"


def allow(home: Path, *commands: list[str]) -> None:
    projects.managed(home, {"allowedMcpServers": [{"serverCommand": command} for command in commands]})


async def has_run(mark: Path) -> bool:
    async with Host.configured() as host:
        await host.ready()
    return mark.exists()


@pytest.mark.parametrize("written", ["absolute", "relative"])
async def test_t117_the_virtual_environment_around_a_symlink_is_not_run(home: Path, written: str):
    work, mark = home / "work", home / "mark"
    link = environment(work / ".venv", mark)
    command = str(link) if written == "absolute" else os.path.relpath(link, work)
    file = write(work / ".mcp.json", servers(box={"command": command, "args": ["-m", "safe_server"]}))
    approve(file, "box")
    allow(home, [PYTHON, "-m", "safe_server"])
    assert not await has_run(mark)
    allow(home, [str(link), "-m", "other"], [PYTHON, "-m", "safe_server"])
    assert not await has_run(mark)


async def test_t117_a_symlink_that_is_allowed_itself_is_started(home: Path):
    mark = home / "mark"
    link = environment(home / "own", mark)
    projects.user(home, servers(box={"command": str(link), "args": ["-m", "safe_server"]}))
    allow(home, [PYTHON, "-m", "safe_server"], [str(link), "-m", "safe_server"])
    assert await has_run(mark)


def started(entry: dict[str, Any]) -> str | None:
    configuration = load(Sources.here(given={"box": entry}, only_given=True))
    server = configuration.servers["box"]
    assert (server.eligibility, server.config is not None) == ("ready", True)
    return configuration.as_started(server, server.config).command if server.config else None


def test_t117_the_started_program_is_the_one_that_the_rule_names(home: Path):
    link = environment(home / "own", home / "mark")
    entry = {"command": str(link), "args": ["x"]}
    allow(home, [PYTHON, "x"])
    assert started(entry) == PYTHON
    allow(home, [str(link), "x"])
    assert started(entry) == str(link)
    allow(home, ["*", "x"])
    assert started(entry) == str(link)


def test_t117_a_headers_helper_is_not_admitted_by_the_target_of_its_symlink(home: Path):
    link = environment(home / "own", home / "mark")
    lists = [{"serverUrl": "http://127.0.0.1:9"}, {"serverCommand": [PYTHON, "-m", "safe_server"]}]
    projects.managed(home, {"allowedMcpServers": lists})

    def eligibility(program: str) -> str:
        entry = {"url": "http://127.0.0.1:9/mcp", "headersHelper": f"{program} -m safe_server"}
        projects.user(home, json.loads(json.dumps(servers(box=entry))))
        return projects.eligibilities()["box"]

    assert eligibility(PYTHON) == "ready"
    assert eligibility(str(link)) == "refused"

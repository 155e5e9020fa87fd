"""T88: A person's own server never runs code from the folder that a host is started in."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.model import ServerConfig
from dragoman.config.policy import Policy
from dragoman.config.policy_subjects import as_started
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import servers, write

TRAP = "import pathlib; pathlib.Path({marker!r}).touch()\n"


def trapped(home: Path, package: str) -> Path:
    """A repository with a package of the name that a server is started by; returns the file that running
    it creates."""
    marker = home / "ran"
    folder = home / "work" / package
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "__main__.py").write_text(TRAP.format(marker=str(marker)))
    return marker


@pytest.mark.requirement("CFG-9")
@pytest.mark.parametrize("env", [{}, {"PYTHONSAFEPATH": ""}, {"PYTHONSAFEPATH": "0"}], ids=str)
@pytest.mark.parametrize("scope", ["user", "local", "code"])
async def test_python_imports_no_module_from_the_start_folder(home: Path, scope: str, env: dict[str, str]):
    marker = trapped(home, "wiki_server")
    entry = {"command": sys.executable, "args": ["-m", "wiki_server"], "env": env}
    async with _host(home, scope, entry) as host:
        await host.ready(timeout=30)
        assert host.servers["box"].status == "failed"
    assert not marker.exists()


@pytest.mark.requirement("CFG-9")
@pytest.mark.parametrize("scope", ["user", "plugin", "managed"])
async def test_a_server_of_no_project_starts_in_its_own_folder(home: Path, scope: str):
    write(home / "work" / "node_modules" / ".bin" / "tool", "")
    async with _host(home, scope, stdio_server("well_behaved.py")) as host:
        view = (await host.ready(timeout=30))["box"]
        assert view.status == "connected"
        folder = Path(f"/proc/{view.pid}/cwd").resolve()
    assert folder == (home / ".dragoman" / "servers" / "box-26f8567f").resolve()
    assert list(folder.iterdir()) == []
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("scope", "cwd", "expected"),
    [("user", ".", "work"), ("local", None, "work"), ("code", None, "work"), ("user", "{home}/x", "x")],
)
async def test_an_entry_with_a_cwd_is_started_there(home: Path, scope: str, cwd: str | None, expected: str):
    (home / "x").mkdir()
    named = {} if cwd is None else {"cwd": cwd.format(home=home)}
    async with _host(home, scope, {**stdio_server("well_behaved.py"), **named}) as host:
        view = (await host.ready(timeout=30))["box"]
        assert Path(f"/proc/{view.pid}/cwd").resolve() == (home / expected).resolve()


@pytest.mark.parametrize(
    ("args", "folder"),
    [
        (("server.py",), "/w"),
        (("-u", "-X", "dev", "src/server.py", "-m"), "/w/src"),
        (("/opt/x/server.py",), "/opt/x"),
        (("-m", "pkg"), None),
        (("-um", "pkg", "server.py"), None),
        (("-c", "print()", "server.py"), None),
        (("-",), None),
        ((), None),
    ],
)
def test_modules_next_to_a_script_of_the_entry_are_still_found(args: tuple[str, ...], folder: str | None):
    config = as_started(ServerConfig(command="/usr/bin/python3.12", args=args, cwd="/w"), Policy())
    assert config.env == {"PYTHONSAFEPATH": "1", **({"PYTHONPATH": folder} if folder else {})}


def test_other_programs_get_no_additional_options():
    config = ServerConfig(command="npx", args=("x",), cwd="/w")
    assert as_started(config, Policy()) is config


def _host(home: Path, scope: str, entry: dict[str, Any]) -> Host:
    if scope == "code":
        return Host({"box": entry})
    file = {
        "user": home / ".dragoman" / "settings.json",
        "local": home / "work" / ".dragoman" / "settings.local.json",
        "plugin": home / ".dragoman" / "plugins" / "p" / ".mcp.json",
        "managed": home / "managed" / "managed-mcp.json",
    }[scope]
    write(file, servers(box=entry))
    projects.approve(file, "box")
    return Host.configured()

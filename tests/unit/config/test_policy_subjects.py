"""What policy looks at is what would be started."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import approval
from dragoman.config.load import load
from dragoman.config.merge import Candidate
from dragoman.config.model import ServerConfig, parse_entry
from dragoman.config.policy import Policy
from dragoman.config.policy_subjects import as_started, found_program, subject_of
from dragoman.config.scopes import Sources
from dragoman.transport_types import UNUSABLE
from dragoman.transports.process import minimal_environment
from tests.integration.desk import Desk


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def program(path: Path) -> Path:
    """A program that says where it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nprintf %s '{path}'\n")
    path.chmod(0o755)
    return path


def started(config: ServerConfig) -> str | None:
    """The program that starting the entry runs."""
    command = [config.command or "", *config.args]
    environment = minimal_environment(os.environ, config.env)
    try:
        done = subprocess.run(command, env=environment, cwd=config.cwd, capture_output=True, check=True)
    except OSError:
        return None
    return done.stdout.decode()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for place in ("tool", "bin/tool", "other/tool", "other/bin/tool", "usual/tool", "usual/usual-only"):
        program(tmp_path / place)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("bin/tool")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "usual"))
    return tmp_path


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("cwd", [None, "other", "empty", "{}/other"])
@pytest.mark.parametrize(
    "path", [None, "{}/bin", "bin", "", ":{}/empty", "{}/empty:bin:{}/usual", "./bin", "."]
)
@pytest.mark.parametrize(
    "command", ["tool", "usual-only", "./tool", "bin/tool", "../tool", "{}/bin/tool", "nobody"]
)
def test_the_judged_program_is_the_started_program(
    programs: Path, command: str, path: str | None, cwd: str | None
):
    def here(text: str) -> str:
        return text.replace("{}", str(programs))

    config = ServerConfig(
        command=here(command),
        cwd=None if cwd is None else here(cwd),
        env={} if path is None else {"PATH": here(path)},
    )
    found = found_program(config)
    real = started(config)
    assert (found and os.path.realpath(found)) == real
    assert found is None or os.path.isabs(found)


def test_a_symlink_is_found_by_its_path_and_judged_by_its_target(programs: Path):
    candidate = Candidate(name="box", scope="user", source="f", given={})
    subject = subject_of(candidate, ServerConfig(command="./link"), "/project")
    assert (subject.found or "").endswith("/link")
    assert subject.executable == str(programs / "bin" / "tool")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "x", "args": ["a"], "env": {"B": "1"}}, ("stdio", None, ("x", "a"), ("B",))),
        ({"url": "https://X.example.com:443/a"}, ("http", "https://x.example.com/a", None, ())),
        ({"type": "ws", "url": "wss://x.example.com"}, ("ws", "wss://x.example.com/", None, ())),
        ({"type": "sdk"}, ("sdk", None, None, ())),
        (
            {"type": "http", "url": "https://x.example.com", "command": "x"},
            ("http", "https://x.example.com/", None, ()),
        ),
        (
            {"type": "stdio", "command": "x", "url": "https://x.example.com"},
            ("stdio", "https://x.example.com/", ("x",), ()),
        ),
    ],
    ids=str,
)
def test_an_entry_as_policy_sees_it(entry: dict[str, Any], expected: tuple[Any, ...]):
    candidate = Candidate(name="box", scope="local", source="f", given=entry)
    subject = subject_of(candidate, parse_entry("box", entry), "/project")
    url = None if subject.url is None else str(subject.url)
    assert (subject.transport, url, subject.command, subject.env_names) == expected
    assert (subject.name, subject.scope, subject.project) == ("box", "local", "/project")
    assert subject.executable is None


def test_an_invalid_entry_is_judged_by_its_name():
    subject = subject_of(Candidate(name="box", scope="user", source="f", given=7), None, "/project")
    assert (subject.name, subject.scope, subject.transport) == ("box", "user", UNUSABLE)


# --- starting exactly that ---


def test_without_restrictions_an_entry_is_started_as_written(programs: Path):
    config = ServerConfig(command="tool")
    assert as_started(config, Policy()) is config


def test_under_an_allow_list_the_judged_program_is_started(programs: Path):
    admitted = as_started(ServerConfig(command="tool", args=("a",)), Policy(allowed=()))
    assert (admitted.command, admitted.args) == (str(programs / "usual" / "tool"), ("a",))
    remote = ServerConfig(type="http", url="https://x.example.com")
    assert as_started(remote, Policy(allowed=())) is remote
    assert as_started(ServerConfig(command="nobody"), Policy(allowed=())).command == "nobody"


@pytest.mark.requirement("CFG-7")
def test_with_a_path_of_the_administrator_the_judged_program_is_the_started_one(desk: Desk, programs: Path):
    desk.managed(
        env={"PATH": str(programs / "other")},
        allowedMcpServers=[{"serverCommand": [str(programs / "other" / "tool")]}],
        allowManagedMcpServersOnly=True,
    )
    desk.user({"box": {"command": "tool"}})
    approval.confirm_variables(desk.approvals_file, load(Sources.here()).unconfirmed_variables)
    configuration = load(Sources.here())
    server = configuration.servers["box"]
    assert server.config is not None
    starts = as_started(server.config, configuration.policy).command
    assert server.eligibility == "refused" or starts == str(programs / "other" / "tool")

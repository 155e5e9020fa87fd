"""Without the packages of the extra `agent`, everything about MCP works, and shell commands are in doubt."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.access_control import EffectiveRules
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from dragoman.demo.server import demo_server
from dragoman.permissions.decide import Verdict, decide
from dragoman.permissions.rules import Call, parse
from dragoman.permissions.shell.script import NO_PARSER, parse_script
from tests.e2e.person import settings

BLOCKED = ("tree_sitter", "tree_sitter_bash", "pydantic_ai")
COMMAND = (
    f"import sys; sys.modules.update(dict.fromkeys({BLOCKED!r}));"
    "from dragoman.cli.main import main; sys.argv[0] = 'dragoman'; main()"
)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", COMMAND, *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=50)


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in BLOCKED:
        monkeypatch.setitem(sys.modules, name, None)
    parse_script.cache_clear()
    yield
    parse_script.cache_clear()


def judged(command: str, mode: str = "default", **rules: str) -> Verdict:
    parsed = [
        parse(rule, behaviour, scope="user", source="x")  # pyright: ignore[reportArgumentType]
        for behaviour, rule in rules.items()
    ]
    return decide(Call(tool="Bash", command=command), parsed, mode)  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("LIB-1")
@pytest.mark.usefixtures("without_extras")
async def test_servers_are_called_also_with_rules_for_the_shell() -> None:
    rules = {"allow": ["mcp__demo"], "deny": ["Bash(rm *)"]}
    async with Host({"demo": demo_server()}, rules=rules) as host:
        await host.ready()
        assert (await host.call("mcp__demo__add", {"a": 40, "b": 2})).text == "42"


@pytest.mark.requirement("CLI-3")
def test_the_command_works(home: Path) -> None:
    settings(home, allow=["mcp__demo"])
    assert run("mcp", "list").returncode == 0
    listed = run("permissions", "list", "--json")
    assert json.loads(listed.stdout)["problems"] == []


@pytest.mark.requirement("PRM-4")
def test_the_problem_states_what_to_install(home: Path) -> None:
    file = settings(home, deny=["Bash(rm *)"], allow=["Bash(git *)"])
    (problem,) = json.loads(run("permissions", "list", "--json").stdout)["problems"]

    assert problem == (
        f"deny rule Bash(rm *) of user ({file}): shell commands cannot be read without the extra `agent` "
        "(in a clone: pip install '.[agent]'); until then deny and ask rules for Bash apply to every command"
    )
    assert EffectiveRules.of(load(Sources.here())).problems == ()


@pytest.mark.requirement("PRM-4")
@pytest.mark.usefixtures("without_extras")
@pytest.mark.parametrize(
    ("command", "mode", "rules", "behaviour"),
    [
        ("git status", "default", {"allow": "Bash(git *)"}, "ask"),
        ("git status", "default", {"allow": "Bash(git status)"}, "allow"),
        ("git status", "default", {"allow": "Bash(*)"}, "allow"),
        ("git status", "default", {"allow": "Bash"}, "allow"),
        ("git status", "default", {"allow": "Bash(*)", "ask": "Bash(rm *)"}, "ask"),
        ("git status", "default", {"allow": "Bash(git status)", "deny": "Bash(rm *)"}, "deny"),
        ("git status", "bypassPermissions", {"ask": "Bash(rm *)"}, "ask"),
        ("git status", "bypassPermissions", {"deny": "Bash(rm *)"}, "deny"),
        ("git status", "bypassPermissions", {}, "allow"),
        ("git status", "dontAsk", {"allow": "Bash(git *)"}, "deny"),
    ],
)
def test_without_the_extra_a_shell_command_is_asked_about(
    command: str, mode: str, rules: dict[str, str], behaviour: str
) -> None:
    assert judged(command, mode, **rules).behaviour == behaviour


@pytest.mark.requirement("PRM-4")
@pytest.mark.usefixtures("without_extras")
def test_the_reason_states_what_to_install() -> None:
    denied = judged("git status", deny="Bash(rm *)")
    asked = judged("git status", allow="Bash(git *)")

    assert denied.reason == f"deny rule Bash(rm *) of user (x); {NO_PARSER}"
    assert asked.reason == f"it cannot be split into parts: {NO_PARSER}"
    (considered,) = asked.considered
    assert (
        considered.why_not
        == f"it does not allow all of the command: it cannot be split into parts: {NO_PARSER}"
    )

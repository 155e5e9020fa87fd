"""T712: `dragoman permissions add` reports a deny or ask rule whose server does not exist and has a similar
name to an existing one: a person must not assume that it has an effect."""

from pathlib import Path

import pytest

from tests.e2e.forked import run
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("rule", ["mcp__gthub", "mcp__githbu__delete", "github"])
def test_t712_the_command_reports_the_same_as_the_list_of_rules(home: Path, kind: str, rule: str):
    file = projects.user(home, projects.servers(github={"url": "https://github.example.com/mcp"}))
    added = run("permissions", "add", kind, rule)
    assert added.returncode == 0
    assert added.stdout == f"Added: {kind} {rule} in user ({file})\n"
    assert "(did you mean mcp__github" in " ".join(added.stderr.split())
    assert added.stderr == run("permissions", "list").stderr


@pytest.mark.parametrize(
    ("kind", "rule"), [("deny", "mcp__github"), ("deny", "mcp__other"), ("allow", "github")]
)
def test_t712_other_rules_are_not_reported(home: Path, kind: str, rule: str):
    projects.user(home, projects.servers(github={"url": "https://github.example.com/mcp"}))
    assert run("permissions", "add", kind, rule).stderr == ""

"""T91: An approval of a server is not an approval of an allow rule, and the reverse."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config import approval
from dragoman.config.model import fingerprint
from dragoman.config.rule_edits import add_rule, remove_rule
from dragoman.config.scopes import Sources
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import eligibilities, seen, servers, write

pytestmark = pytest.mark.requirement("PRM-1")

LOCAL = ".dragoman/settings.local.json"
RULE = "mcp__*"
NAMES = [
    "permissions.allow mcp__*",
    "permissions.allow  mcp__*",
    "allow mcp__*",
    "mcp__*",
    "rules",
    "permissions",
]


def allowed() -> list[str]:
    return [rule for part in seen().permissions for rule in part.rules.allow]


def local_file(home: Path, name: str, entry: Any) -> Path:
    return write(home / "work" / LOCAL, {**servers(**{name: entry}), "permissions": {"allow": [RULE]}})


@pytest.mark.parametrize(
    "entry", [stdio_server("well_behaved.py"), {"allow": RULE}], ids=["a server", "what a rule is"]
)
@pytest.mark.parametrize("name", NAMES)
def test_t91_approving_a_server_approves_no_rule(home: Path, name: str, entry: Any):
    local_file(home, name, entry)
    assert run("mcp", "approve", name, "--yes").returncode == 0
    assert allowed() == []
    (problem,) = [problem for problem in seen().problems if "allow rule" in problem]
    assert f"the allow rule {RULE} is defined by the project and is not used" in problem


async def test_t91_a_rule_with_the_name_of_an_approved_server_allows_no_call(home: Path):
    projects.user(home, servers(mine=stdio_server("well_behaved.py")))
    local_file(home, NAMES[0], stdio_server("well_behaved.py", "other"))
    assert run("mcp", "approve", NAMES[0], "--yes").returncode == 0
    async with Host.configured() as host:
        await host.ready(timeout=30)
        outcome = await host.call("mcp__mine__echo", {"message": "x"})
        assert outcome.is_error


@pytest.mark.parametrize("name", NAMES)
def test_t91_adding_a_rule_approves_no_server(home: Path, name: str):
    local_file(home, name, {"allow": RULE, "command": "true"})
    add_rule(Sources.here(), "local", "allow", RULE)
    assert allowed() == [RULE]
    assert eligibilities() == {name: "pending"}


def test_t91_an_approval_in_the_wrong_section_is_ignored(home: Path):
    """As an earlier version, or any program with write access, could have written it."""
    file = local_file(home, "box", stdio_server("well_behaved.py"))
    rule = {"decision": "approved", "fingerprint": fingerprint({"allow": RULE}), "entry": {"allow": RULE}}
    server = {"decision": "approved", "fingerprint": fingerprint(stdio_server("well_behaved.py"))}
    write(
        Sources.here().approvals_file,
        {"files": {str(file): {NAMES[0]: rule, RULE: rule}}, "rules": {str(file): {"box": server}}},
    )
    assert allowed() == []
    assert eligibilities() == {"box": "pending"}


@pytest.mark.parametrize(
    "row",
    [
        {"decision": "approved", "fingerprint": fingerprint({"allow": "mcp__other"})},
        {"decision": "approved", "fingerprint": fingerprint({"deny": RULE})},
        {"decision": "approved", "fingerprint": ""},
        {"decision": "rejected", "fingerprint": fingerprint({"allow": RULE})},
        {"decision": "approved"},
        "approved",
    ],
    ids=str,
)
def test_t91_the_fingerprint_of_a_rule_is_checked(home: Path, row: Any):
    file = local_file(home, "box", stdio_server("well_behaved.py"))
    write(Sources.here().approvals_file, {"rules": {str(file): {RULE: row}}})
    assert allowed() == []


def test_t91_a_rule_of_one_project_does_not_apply_in_another(home: Path):
    local_file(home, "box", stdio_server("well_behaved.py"))
    add_rule(Sources.here(), "local", "allow", RULE)
    other = home / "other"
    write(other / LOCAL, {"permissions": {"allow": [RULE]}})
    assert [part.rules.allow for part in seen(other).permissions] == [()]


def test_t91_a_rule_that_was_removed_or_reset_does_not_apply_when_it_is_added_again(home: Path):
    for forget in (
        lambda file: remove_rule(Sources.here(), "local", file, RULE),
        lambda file: run("mcp", "reset-project-choices"),
    ):
        file = local_file(home, "box", stdio_server("well_behaved.py"))
        add_rule(Sources.here(), "local", "allow", RULE)
        assert allowed() == [RULE]
        forget(file)
        local_file(home, "box", stdio_server("well_behaved.py"))
        assert allowed() == []


def test_t91_forgetting_a_server_does_not_affect_the_rule_of_the_same_name(home: Path):
    file = local_file(home, RULE, stdio_server("well_behaved.py"))
    add_rule(Sources.here(), "local", "allow", RULE)
    assert run("mcp", "approve", RULE, "--yes").returncode == 0
    assert approval.forget(Sources.here().approvals_file, (file,), RULE) == 1
    assert allowed() == [RULE]
    assert eligibilities() == {RULE: "pending"}
    assert json.loads(run("mcp", "reset-project-choices", "--json").stdout) == {"forgotten": 1}

"""T752: a deny or ask rule for "all" names no tool. It is reported, and applies to all calls until it is
corrected. (It had no effect, without a report.)."""

from collections.abc import Collection
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.catalog.naming import qualify
from dragoman.config.schema import PermissionRules
from dragoman.errors import ConfigError, PermissionRefused
from dragoman.permissions.rules import Call, Rulebook
from dragoman.testing import InMemoryServer
from tests.e2e.forked import run
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")
ECHO = Call(tool=qualify("box", "echo"), server="box", wire_name="echo")


def denying(text: str, servers: Collection[str]) -> Rulebook:
    return Rulebook.of(
        [("user", "file.json", PermissionRules(deny=(text,)))], servers=servers, chosen=servers
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [("all", "*"), ("All", "*"), ("any", "*"), ("everything", "*"), ("mcp__all", "mcp__*")],
)
def test_t752_a_rule_for_all_is_reported_and_denies(text: str, meant: str):
    book = denying(text, ("box",))
    [problem] = book.problems
    assert problem.startswith(f"file.json: deny rule {text!r}: ")
    assert problem.endswith(f"(did you mean {meant}?); until it is corrected it applies to {meant}, too")
    assert any(rule.is_about(ECHO) and rule.applies(ECHO) for rule in book.rules)


def test_t752_a_rule_for_all_is_reported_without_configured_servers():
    assert len(denying("all", ()).problems) == 1


def test_t752_a_server_of_that_name_is_matched_instead():
    book = denying("mcp__all", ("all", "box"))
    assert book.problems == ()
    assert not any(rule.is_about(ECHO) for rule in book.rules)


@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_t752_the_command_that_adds_a_rule_for_all_reports_it(home: Path, kind: str):
    projects.user(home, projects.servers(github={"url": "https://github.example.com/mcp"}))
    added = run("permissions", "add", kind, "all")
    assert added.returncode == 0
    assert "(did you mean *?)" in " ".join(added.stderr.split())


async def test_t752_a_rule_for_all_by_a_program_is_refused():
    with pytest.raises(ConfigError, match="did you mean \\*"):
        Host({"box": InMemoryServer("box")}, rules={"deny": ["all"]})


async def test_t752_a_program_may_name_its_server_all():
    server = InMemoryServer("all")
    server.add_tool("echo", lambda *_: "echoed")
    rules = {"deny": ["mcp__all"]}
    async with Host({"all": server}, rules=rules, permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.call("mcp__all__echo")
    assert isinstance(outcome.error, PermissionRefused)

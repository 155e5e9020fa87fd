"""T87: Project files that are symlinks. A repository cannot use another project's approvals and rules."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.load import load
from dragoman.config.rule_edits import add_rule
from dragoman.config.scopes import Sources
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import Canary, seen, servers, write

pytestmark = pytest.mark.requirement("CFG-8")

LOCAL = ".dragoman/settings.local.json"
ENTRY = {"command": "./tool"}
RULE = "mcp__mine"


class World:
    """A project whose local file has an approved server and an approved rule, and a clone of an
    untrusted repository."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.canary = Canary(home / "canary")
        self.good = home / "work" / "good"
        self.clone = home / "work" / "clone"
        self.good.mkdir()
        (self.good / ".git").mkdir()
        self.clone.mkdir()
        for folder in (self.good, self.clone):
            self.put_tool(folder)
        write(self.good / LOCAL, servers(tool=ENTRY))
        projects.approve(self.good / LOCAL, "tool")
        write(self.good / ".mcp.json", servers(shared={**ENTRY, "args": ["shared"]}))
        projects.approve(self.good / ".mcp.json", "shared")
        add_rule(Sources.here(self.good), "local", "allow", RULE)
        projects.user(home, servers(mine=stdio_server("well_behaved.py")))

    def put_tool(self, folder: Path) -> None:
        serve = self.canary.entry(folder.name)["args"][1]
        (folder / "tool").write_text(f"#!/bin/sh\n{serve}\n")
        (folder / "tool").chmod(0o755)


@pytest.fixture
def world(home: Path) -> World:
    return World(home)


def link(path: Path, target: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def eligibilities_of(folder: Path) -> dict[str, str]:
    return {name: server.eligibility for name, server in seen(folder).servers.items()}


def rules_of(folder: Path) -> list[str]:
    return [rule for part in seen(folder).permissions for rule in part.rules.allow]


LINKS: dict[str, tuple[str, str, str]] = {
    "the state folder": (".dragoman", "../good/.dragoman", LOCAL),
    "the state folder, by its whole path": (".dragoman", "{good}/.dragoman", LOCAL),
    "the state folder, by a detour": (".dragoman", "../clone/../good/./.dragoman", LOCAL),
    "the local file": (LOCAL, "../../good/.dragoman/settings.local.json", LOCAL),
    "the project file": (".mcp.json", "../good/.mcp.json", ".mcp.json"),
}


@pytest.mark.parametrize("what", LINKS)
def test_t87_a_symlink_to_a_file_outside_its_project_is_ignored_and_reported(world: World, what: str):
    place, target, file = LINKS[what]
    link(world.clone / place, target.format(good=world.good))

    found = seen(world.clone)

    assert list(found.servers) == ["mine"]
    assert rules_of(world.clone) == []
    (problem,) = found.problems
    said = f"{world.clone / file}: the file is ignored: it leads to {world.good / file}, outside its project"
    assert problem.partition("; ")[0] == said


@pytest.mark.parametrize("what", LINKS)
def test_t87_no_command_runs_a_program_of_the_untrusted_clone(world: World, what: str):
    place, target, file = LINKS[what]
    link(world.clone / place, target.format(good=world.good))
    for words in (["mcp", "list"], ["tools"], ["call", "mcp__tool__echo", "message=x"]):
        done = run(*words, cwd=world.clone)
        assert "Traceback" not in done.stderr
        assert f"{world.clone / file}: the file is ignored: " in done.stderr
        assert world.canary.started == set(), words
    assert run("tools", cwd=world.good).returncode == 0
    assert world.canary.started == {"good"}


@pytest.mark.parametrize("what", LINKS)
async def test_t87_no_rule_of_the_other_project_allows_a_call(world: World, what: str):
    place, target, _ = LINKS[what]
    link(world.clone / place, target.format(good=world.good))
    for folder, allowed in ((world.clone, False), (world.good, True)):
        async with Host.configured(cwd=folder) as host:
            await host.ready(timeout=30)
            outcome = await host.call("mcp__mine__echo", {"message": "x"})
            assert outcome.is_error is not allowed, folder


def test_t87_chained_symlinks_and_symlinked_parents_are_resolved_completely(world: World):
    link(world.clone / "a", "b")
    link(world.clone / "b", "../good")
    link(world.clone / ".dragoman", "a/.dragoman")
    assert eligibilities_of(world.clone) == {"mine": "ready"}


def test_t87_a_submodule_does_not_use_the_approvals_of_its_parent(world: World):
    """The path to the state folder of the parent is known there."""
    module = world.good / "vendor" / "module"
    module.mkdir(parents=True)
    (module / ".git").write_text("gitdir: ../../.git/modules/module\n")
    world.put_tool(module)
    link(module / ".dragoman", "../../.dragoman")

    tool = seen(module).servers["tool"]

    assert tool.eligibility == "ready", "the parent's own file still counts below it"
    assert tool.source == str(world.good / LOCAL)
    assert tool.config is not None
    assert tool.config.cwd == str(world.good) + "/"
    run("tools", cwd=module)
    assert world.canary.started == {"good"}


def test_t87_a_symlink_within_one_project_does_not_move_an_approval_to_another_folder(world: World):
    """`inner` is approved. A symlink in the outer repository points to its file: the start folder differs."""
    inner = world.clone / "inner"
    inner.mkdir()
    world.put_tool(inner)
    write(inner / LOCAL, servers(tool=ENTRY))
    projects.approve(inner / LOCAL, "tool")
    add_rule(Sources.here(inner), "local", "allow", RULE)
    link(world.clone / ".dragoman", "inner/.dragoman")

    assert eligibilities_of(world.clone) == {"mine": "ready", "tool": "pending"}
    assert rules_of(world.clone) == []
    assert eligibilities_of(inner) == {"mine": "ready", "tool": "ready"}
    run("tools", cwd=world.clone)
    assert world.canary.started == set()
    assert run("mcp", "approve", "tool", "--yes", cwd=world.clone).returncode == 0
    assert eligibilities_of(world.clone)["tool"] == "ready"


@pytest.mark.parametrize("file", [LOCAL, ".mcp.json"])
def test_t87_the_approved_folder_is_the_folder_the_server_starts_in(world: World, file: str):
    """Both are one value: the key of an approval begins with the working folder."""
    for server in seen(world.good).servers.values():
        if server.source == str(world.good / file):
            assert server.config is not None
            folder = os.path.normpath(str(server.config.cwd))
            answers = json.loads((world.home / ".dragoman" / "approvals.json").read_text())
            assert server.name in answers["files"][os.path.join(folder, file)]


# --- symlinks that still work ---


@pytest.mark.parametrize("reach", [lambda world: world.home / "to-good", lambda world: world.good])
def test_t87_a_project_reached_through_a_symlink_is_the_same_project(
    world: World, reach: Callable[[World], Path]
):
    (world.home / "to-good").symlink_to(world.good)
    folder = reach(world)
    assert eligibilities_of(folder) == {"mine": "ready", "shared": "ready", "tool": "ready"}
    assert rules_of(folder) == [RULE]
    assert seen(folder).problems == ()
    done = run("tools", "--json", cwd=folder)
    names = [tool["name"] for tool in json.loads(done.stdout)["tools"]]
    assert names == ["mcp__mine__echo", "mcp__shared__echo", "mcp__tool__echo"]


def test_t87_an_approval_through_the_symlink_applies_to_the_folder(world: World):
    (world.home / "to-clone").symlink_to(world.clone)
    write(world.clone / ".mcp.json", servers(late=ENTRY))
    assert run("mcp", "approve", "late", "--yes", cwd=world.home / "to-clone").returncode == 0
    assert eligibilities_of(world.clone)["late"] == "ready"


def test_t87_sources_with_an_unresolved_folder_start_in_the_approved_one(world: World):
    (world.home / "to-good").symlink_to(world.good)
    usual = Sources.here(world.good)
    odd = Sources(
        config_dir=usual.config_dir,
        managed_dir=usual.managed_dir,
        cwd=world.home / "to-good",
        home=usual.home,
    )
    tool = load(odd).servers["tool"]
    assert (tool.eligibility, tool.config and tool.config.cwd) == ("ready", str(world.good) + "/")


def test_t87_a_symlink_that_stays_inside_its_project_is_used(world: World):
    write(world.clone / "shared" / "mcp.json", servers(late=ENTRY))
    link(world.clone / ".mcp.json", "shared/mcp.json")
    assert eligibilities_of(world.clone) == {"mine": "ready", "late": "pending"}
    assert run("mcp", "approve", "late", "--yes", cwd=world.clone).returncode == 0
    assert eligibilities_of(world.clone)["late"] == "ready"


def test_t87_a_dangling_symlink_is_not_reported_as_a_problem(world: World):
    (world.home / "empty").mkdir()
    link(world.clone / ".dragoman", "../../empty")
    assert seen(world.clone).problems == ()


COMMANDS: dict[str, list[Any]] = {
    "enable": ["mcp", "enable", "mine"],
    "remove": ["mcp", "remove", "mine"],
    "a rule": ["permissions", "remove", "mcp__other"],
}


@pytest.mark.parametrize("what", COMMANDS)
def test_t87_an_ignored_file_does_not_block_a_change_and_is_not_changed(world: World, what: str):
    """It contains the name that the person wants to change; it belongs to another project."""
    theirs = write(
        world.home / "theirs" / "settings.local.json",
        {**servers(mine=ENTRY), "disabledMcpServers": ["mine"], "permissions": {"deny": ["mcp__other"]}},
    )
    before = theirs.read_text()
    projects.user(
        world.home,
        {
            **servers(mine=stdio_server("well_behaved.py")),
            "disabledMcpServers": ["mine"],
            "permissions": {"deny": ["mcp__other"]},
        },
    )
    link(world.clone / ".dragoman", "../../theirs")
    done = run(*COMMANDS[what], cwd=world.clone)
    assert (done.returncode, done.stderr) == (0, "")
    assert theirs.read_text() == before

"""Agents in files: what a file says, whose counts, and which need approval."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.agent.definitions import (
    AgentDefinition,
    approve_agent,
    find_agent,
    find_agents,
    parse,
    usable,
)
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, NotFound

pytestmark = pytest.mark.requirement("CFG-13")

REVIEWER = """\
---
name: reviewer
description: Reviews changes.
tools: Read, Grep, mcp__git__*, mcp__tracker
model: anthropic:claude-opus-5
servers:
  - git
  - helper: {command: helper, args: [--quiet], trusted: true}
requiredServers: [git]
maxTurns: 7
---
You review changes.
"""


def agent(text: str, scope: Any = "user", path: str = "/x/other.md") -> AgentDefinition:
    return parse(text, Path(path), scope)


def front(*lines: str, body: str = "Do it.") -> str:
    return "\n".join(["---", *lines, "---", body])


def test_a_complete_definition():
    found = agent(REVIEWER)
    assert (found.name, found.description, found.prompt) == (
        "reviewer",
        "Reviews changes.",
        "You review changes.",
    )
    assert found.model == "anthropic:claude-opus-5"
    assert found.servers == ("git", {"helper": {"command": "helper", "args": ["--quiet"], "trusted": True}})
    assert (found.required_servers, found.max_turns, found.problems) == (("git",), 7, ())


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("Read", True),
        ("Write", False),
        ("mcp__git__log", True),
        ("mcp__github__log", False),
        ("mcp__tracker__add", True),
        ("mcp__tracker", True),
        ("mcp__trackers__add", False),
    ],
)
def test_tools_are_selected_by_name(name: str, has: bool):
    assert agent(REVIEWER).has_tool(name) is has


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("Read", True),
        ("Bash", False),
        ("mcp__git__log", True),
        ("mcp__git__push", False),
        ("mcp__db__q", False),
    ],
)
def test_disallowed_tools_are_removed(name: str, has: bool):
    lines = "disallowedTools: Bash, mcp__git__push, mcp__db"
    assert agent(front("tools: '*'", lines)).has_tool(name) is has
    assert agent(front(lines)).has_tool(name) is has


def test_empty_lists_mean_no_tools():
    found = agent(front("tools: []", "servers: []"))
    assert (found.tools, found.servers) == ((), ())
    assert not found.has_tool("Read")


def test_an_agent_that_names_no_tools_and_servers_has_all():
    found = agent(front("description: All."))
    assert found.has_tool("Bash")
    assert (found.name, found.servers, found.prompt) == ("other", None, "Do it.")


def test_keys_of_other_programs_are_read():
    found = agent(
        front("mcpServers: git, tracker", "requiredMcpServers: [git]", "model: inherit", "prompt: First.")
    )
    assert (found.servers, found.required_servers, found.model) == (("git", "tracker"), ("git",), None)
    assert found.prompt == "First.\n\nDo it."


@pytest.mark.parametrize("scope", ["project", "plugin"])
def test_a_project_or_plugin_file_sets_no_mode_no_hooks_and_no_trust(scope: str):
    text = front(
        "permissionMode: bypassPermissions",
        "hooks: {PreToolUse: []}",
        "servers: [{x: {command: y, trusted: true, sampling: allow, roots: true, env: {A: b}}}]",
    )
    found = agent(text, scope)
    assert found.permission_mode is None
    assert found.servers == ({"x": {"command": "y", "env": {"A": "b"}}},)
    assert found.problems == (
        "roots of a server has no effect here",
        "sampling of a server has no effect here",
        "trusted of a server has no effect here",
        "permissionMode has no effect here: only your own agents may set it",
        "hooks has no effect",
    )
    assert agent(text).permission_mode == "bypassPermissions"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("You are nice.", "does not begin with front matter"),
        ("---\nname: x\n", "does not begin with front matter"),
        ("---\n---\n", "has no keys"),
        ("---\n- a\n---\n", "has no keys"),
        ("---\nname: [\n---\n", "is not YAML (line 3)"),
        ("---\na: &x [1]\nb: *x\n---\n", "uses a YAML alias"),
        ("---\na: !!python/object/apply:os.system [ls]\n---\n", "is not YAML (line 2)"),
        ("---\nname: ../../etc\n---\n", "is not a valid name"),
        ("---\ntools: {a: b}\n---\n", '"tools" must be a list of names'),
        ("---\ntools:\n---\n", '"tools" has no value: write [] for an empty list, or leave the key out'),
        ("---\nservers: ~\n---\n", '"servers" has no value'),
        ("---\ndisallowedTools:\n---\n", '"disallowedTools" has no value'),
        ("---\ntools: Read\ntools: '*'\n---\n", '"tools" more than once'),
        ("---\nservers: [{x: {command: y, command: z}}]\n---\n", '"command" more than once'),
        ("---\nservers: git\nmcpServers: '*'\n---\n", '"servers" twice, under two names'),
        ("---\nTools: Read\n---\n", '"Tools" must be written "tools"'),
        ("---\nallowed-tools: Read\n---\n", '"allowed-tools" must be written "tools"'),
        ("---\nmcp_servers: git\n---\n", '"mcp_servers" must be written "servers"'),
        ("---\nmax-turns: 3\n---\n", '"max-turns" must be written "maxTurns"'),
        ("---\nservers: 5\n---\n", '"servers" must be a list'),
        ("---\nmaxTurns: 0\n---\n", '"maxTurns" must be a number above 0'),
        ("---\npermissionMode: yolo\n---\n", '"permissionMode" must be one of'),
        ("---\nname: x\n---\n" + "y" * 200_000, "more than 200000 characters"),
        ("---\n" + "a: " + "[" * 5000 + "\n---\n", "is not YAML"),
    ],
)
def test_an_invalid_definition_gives_the_reason(home: Path, text: str, problem: str):
    folder = home / ".dragoman/agents"
    folder.mkdir(parents=True)
    (folder / "bad.md").write_text(text)
    (found,) = find_agents(Sources.here())
    assert (found.name, found.state) == ("bad", "broken")
    assert problem in found.problems[0]
    with pytest.raises(ConfigError, match="cannot be used"):
        find_agent(Sources.here(), "bad")


def test_hidden_characters_do_not_reach_the_model():
    found = agent(front('description: "a\\u200bb"', body="c\u202ed"))
    assert (found.description, found.prompt) == ("ab", "cd")


def write(folder: Path, name: str, description: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(front(f"description: {description}"))
    return path


def test_the_persons_definitions_take_precedence_then_the_projects_then_plugins(home: Path):
    mine, project = home / ".dragoman/agents", home / "work/.dragoman/agents"
    plugin = home / ".dragoman/plugins/p/agents"
    for name in ("a", "b", "c"):
        write(plugin, name, "plugin")
    for name in ("a", "b"):
        write(project, name, "project")
    write(mine, "a", "mine")
    found = find_agents(Sources.here())
    assert [(each.name, each.description, each.state) for each in found] == [
        ("a", "mine", "ready"),
        ("b", "project", "pending"),
        ("c", "plugin", "pending"),
    ]
    assert [each.name for each in usable(found)] == ["a"]


@pytest.mark.parametrize("place", ["work/.dragoman/agents", ".dragoman/plugins/p/agents"])
def test_an_approval_applies_to_exactly_this_text(home: Path, place: str):
    path, sources = write(home / place, "x", "first"), Sources.here()
    with pytest.raises(ConfigError, match="is not approved") as caught:
        find_agent(sources, "x")
    assert "dragoman agents approve x" in str(caught.value.hint)
    approve_agent(sources, find_agents(sources)[0])
    assert find_agent(sources, "x").description == "first"
    path.write_text(path.read_text() + "and more")
    assert find_agents(sources)[0].state == "pending"


def test_an_approval_of_one_file_does_not_apply_to_another(home: Path):
    write(home / "work/.dragoman/agents", "x", "same")
    sources = Sources.here()
    approve_agent(sources, find_agents(sources)[0])
    write(home / "work/.dragoman/agents", "y", "same")
    assert [each.state for each in find_agents(sources)] == ["ready", "pending"]


def test_an_unknown_agent_is_reported_with_the_existing_ones(home: Path):
    write(home / ".dragoman/agents", "x", "d")
    with pytest.raises(NotFound, match="no agent 'y'") as caught:
        find_agent(Sources.here(), "y")
    assert caught.value.hint == "There are: x."

"""T683: a `disallowedTools` value of an agent that names no tool is an error: the agent does not keep the
tool."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import ConfigError, Host
from dragoman.agent.definitions import find_agent, find_agents
from dragoman.config.scopes import Sources

pytestmark = pytest.mark.requirement("PRM-1")

ONLY_COMPLETE_TOOLS = "only whole tools are named here; for some calls of a tool write a deny rule"
INVALID: list[tuple[str, str]] = [
    ("Bash(rm *)", ONLY_COMPLETE_TOOLS),
    ("Write(file_path=/etc/*)", ONLY_COMPLETE_TOOLS),
    ("mcp__box(destructive)", ONLY_COMPLETE_TOOLS),
    (f"mcp__box__delete@{'0' * 32}", ONLY_COMPLETE_TOOLS),
    (
        "mcp_box__delete",
        "the names of servers' tools begin with mcp__ (did you mean mcp__box__delete?)",
    ),
    (
        "mcp__box__delete; mcp__box__write",
        'a rule names one tool or server (write each as a text of its own: "mcp__box__delete", '
        '"mcp__box__write")',
    ),
    ("mcp__box__.*", "* alone matches any characters (did you mean mcp__box__*?)"),
]


@pytest.mark.parametrize(("name", "why"), INVALID, ids=[name for name, _ in INVALID])
def test_t683_an_agent_with_such_a_value_in_its_file_cannot_be_used(home: Path, name: str, why: str):
    folder = home / ".dragoman" / "agents"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(f"---\ndisallowedTools: ['{name}']\n---\nWork.\n")
    (found,) = find_agents(Sources.here())
    assert (found.state, found.problems) == ("broken", (f'"disallowedTools": {name}: {why}',))
    with pytest.raises(ConfigError):
        find_agent(Sources.here(), "a")


@pytest.mark.parametrize(("name", "why"), INVALID, ids=[name for name, _ in INVALID])
async def test_t683_a_program_gets_an_error(home: Path, name: str, why: str):
    async with Host({}) as host:
        with pytest.raises(ConfigError) as caught:
            host.for_agent([], disallowed=[name])
    assert str(caught.value) == f"disallowed: {why}"


async def test_t683_a_single_string_is_not_read_as_a_list_of_letters(home: Path):
    disallowed: Any = "mcp__box__delete"
    async with Host({}) as host:
        with pytest.raises(ConfigError) as caught:
            host.for_agent([], disallowed=disallowed)
    assert str(caught.value).splitlines()[0] == "disallowed: must be a list of strings"

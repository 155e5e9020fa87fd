"""T311: when a person resets all answers about a project, no agent of the project stays approved."""

from pathlib import Path

import pytest

from dragoman.agent.definitions import approve_agent, find_agents
from dragoman.config.scopes import Sources
from tests.e2e.forked import run

pytestmark = pytest.mark.requirement("CFG-8")
AGENT = "---\nservers: [{own: {command: ./tool}}]\n---\nYou work.\n"


def put(project: Path) -> Path:
    path = project / ".dragoman/agents/helper.md"
    path.parent.mkdir(parents=True)
    path.write_text(AGENT)
    return path


def states(project: Path) -> list[str]:
    return [agent.state for agent in find_agents(Sources.here(project))]


def approve_all(project: Path) -> None:
    for agent in find_agents(Sources.here(project)):
        approve_agent(Sources.here(project), agent)


@pytest.mark.parametrize("is_missing", [False, True], ids=["there", "missing at that moment"])
def test_t311_reset_project_choices_removes_the_approval_of_agents(home: Path, is_missing: bool):
    work, other = home / "work", home / "other"
    path = put(work)
    put(other)
    approve_all(work)
    approve_all(other)
    assert (states(work), states(other)) == (["ready"], ["ready"])
    if is_missing:  # as after the checkout of another branch
        path.unlink()
    done = run("mcp", "reset-project-choices", cwd=work)
    assert done.stdout == "Removed 1 decision.\n"
    path.write_text(AGENT)
    assert (states(work), states(other)) == (["pending"], ["ready"])

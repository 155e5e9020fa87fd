"""T249: agent files of a repository that are expensive to read do not delay the start."""

from pathlib import Path

import pytest

from dragoman.agent.definitions import FRONT_MATTER_LIMIT, AgentState, find_agents
from dragoman.config.scopes import Sources
from tests.cpu_time import CpuTimer

pytestmark = pytest.mark.requirement("CFG-8")
LARGE = "x: [" + "1," * (FRONT_MATTER_LIMIT // 3) + "1]"


def states(home: Path, place: str, front_matter: str, count: int) -> list[AgentState]:
    folder = home / place
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number:03}.md").write_text(f"---\n{front_matter}\n---\nHelp.\n")
    return [agent.state for agent in find_agents(Sources.here(home / "work"))]


@pytest.mark.parametrize(("end", "state"), [("", "pending"), ("\n]", "broken")])
def test_t249_the_amount_that_is_parsed_for_one_repository_is_limited(
    home: Path, end: str, state: AgentState
):
    timer = CpuTimer()
    found = states(home, "work/.dragoman/agents", LARGE + end, 60)
    assert timer.seconds() < 5
    assert found == [state] + ["broken"] * 59


def test_t249_usual_agent_files_are_all_read(home: Path):
    assert states(home, "work/.dragoman/agents", "description: Helps.", 300) == ["pending"] * 300


def test_t249_each_of_the_persons_own_files_has_its_own_limit(home: Path):
    assert states(home, ".dragoman/agents", LARGE, 3) == ["ready"] * 3

"""T104: thousands of servers cost time in proportion; so many in a project's file are not used."""

import time
from pathlib import Path

import pytest

from dragoman.catalog.naming import assign
from dragoman.names import ServerName, WireToolName
from tests.torture import projects
from tests.torture.projects import servers, write


def many(count: int) -> dict:
    return servers(**{f"s{number}": {"command": "x", "args": [str(number)]} for number in range(count)})


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    "place", ["work/.mcp.json", "work/.dragoman/settings.local.json", ".dragoman/plugins/p/.mcp.json"]
)
def test_a_strangers_file_with_too_many_servers_is_not_used(home: Path, place: str):
    projects.user(home, servers(mine={"command": "x"}))
    write(home / place, many(501))
    seen = projects.seen()
    assert list(seen.servers) == ["mine"]
    (problem,) = seen.problems
    assert problem.startswith(str(home / place))
    assert '"mcpServers" has more than 500 servers; none of them is used' in problem
    write(home / place, many(500))
    assert len(projects.seen().servers) == 501


def test_a_persons_own_file_may_have_thousands_and_takes_time_in_proportion(home: Path):
    few, more = _seconds_to_load(home, 1_000), _seconds_to_load(home, 8_000)
    assert len(projects.seen().servers) == 8_000
    assert more < 24 * few


def _seconds_to_load(home: Path, count: int) -> float:
    projects.user(home, many(count))
    return min(_timed(projects.seen) for _ in range(3))


@pytest.mark.parametrize("names", ["s{}", "s__{}", "{}__s"])
def test_naming_takes_time_in_proportion_to_the_servers(names: str):
    def named(count: int) -> float:
        every = [names.format(number) for number in range(count)]
        tools = [(ServerName(every[0]), WireToolName("tool"))]
        return min(_timed(lambda: assign(tools, every)) for _ in range(3))

    assert named(16_000) < 40 * named(1_000)


def _timed(work) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began

"""T104: Files with very many entries. Reading and naming take linear time, and a project file has a limit."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.catalog.naming import assign, prefix
from dragoman.cli.commands.config import line_of
from dragoman.config import connectors
from dragoman.config.files import ENTRY_LIMIT, RULE_LIMIT
from dragoman.config.model import PROBLEM_LIMIT
from tests.cpu_time import shortest
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import seen, servers, write

pytestmark = pytest.mark.requirement("CFG-10")

FEW, MANY = 1_000, 8_000
GROWTH = 45.0
"""Eight times as many may take this many times as long.

Linear time is 8, or up to 28 where more memory makes each step slower; quadratic time is 64.
"""

UNTRUSTED = {
    "project": "work/.mcp.json",
    "local": "work/.dragoman/settings.local.json",
    "plugin": ".dragoman/plugins/p/.mcp.json",
}


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def is_linear(of: Callable[[int], Callable[[], object]]) -> bool:
    few = shortest(partial(seconds, of(FEW)), tries=2)
    many = shortest(partial(seconds, of(MANY)), below=few * GROWTH, tries=2)
    assert many < few * GROWTH, f"{FEW}: {few:.3f} s, {MANY}: {many:.3f} s"
    return True


# --- naming ---

NAMES: dict[str, Callable[[int], str]] = {
    "plain": lambda number: f"server{number}",
    "alike": lambda number: "a" + ".-"[number % 2] + str(number // 2),
    "one within the other": lambda number: f"s{number // 2}" + "__x" * (number % 2),
    "long": lambda number: "x" * 200 + str(number),
    "underscores": lambda number: "_" * (number % 60) + str(number),
}


@pytest.mark.parametrize("what", NAMES)
def test_t104_naming_takes_linear_time_in_the_number_of_servers(what: str):
    def of(count: int) -> Callable[[], object]:
        names = [NAMES[what](number) for number in range(count)]
        tools: Any = [(name, "tool") for name in names]

        def work() -> None:
            prefix.cache_clear()  # it has space for the few names, not for the many
            assign(tools, names)

        return work

    assert is_linear(of)


@pytest.mark.timeout(60)
def test_t104_one_very_long_name_takes_no_extra_time():
    names = ["_" * 2_000_000, "a" + "__" * 1_000_000, "a"]
    assert assign([("a", "b__c")], names).of == {("a", "b__c"): "mcp__a__b__c"}  # type: ignore[comparison-overlap]


# --- a person's own file ---

ENTRIES: dict[str, Any] = {
    "good": {"command": "true"},
    "wrong": {"command": 5},
    "with a variable that is not set": {"command": "${NOT_SET_ANYWHERE}"},
    "no object": 5,
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ENTRIES)
def test_t104_loading_takes_linear_time_and_all_entries_of_the_person_are_used(home: Path, what: str):
    def of(count: int) -> Callable[[], object]:
        entries = {f"server{number}": ENTRIES[what] for number in range(count)}
        projects.user(home, servers(**entries))
        return lambda: len(seen().servers)

    assert is_linear(of)
    found = seen()
    assert len(found.servers) == MANY
    last = found.servers[f"server{MANY - 1}"]
    assert line_of(found, last.candidate) == _line_in(home, f"server{MANY - 1}")


def _line_in(home: Path, name: str) -> int:
    lines = (home / ".dragoman" / "settings.json").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f'"{name}"' in line)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_t104_the_source_lines_of_all_entries_are_found_in_linear_time(home: Path):
    def of(count: int) -> Callable[[], object]:
        projects.user(home, servers(**{f"server{number}": {"command": "x"} for number in range(count)}))
        found = seen()
        return lambda: [line_of(found, server.candidate) for server in found.servers.values()]

    assert is_linear(of)


# --- a project file ---


@pytest.mark.parametrize("what", ENTRIES)
@pytest.mark.parametrize("place", UNTRUSTED)
def test_t104_a_project_file_is_limited_to_some_hundred_entries_and_that_is_reported(
    home: Path, place: str, what: str
):
    projects.user(home, servers(mine={"command": "x"}))
    entries = {f"server{number}": ENTRIES[what] for number in range(MANY)}
    file = write(home / UNTRUSTED[place], servers(**entries))
    found = seen()
    names = [name for name in found.servers if name != "mine"]
    assert names == [f"server{number}" for number in range(ENTRY_LIMIT)]
    assert found.servers["mine"].eligibility == "ready"
    said = f"{file}, line 2, column 3: it has {MANY} servers; those after the first {ENTRY_LIMIT} are refused"
    assert found.problems == (said,)


@pytest.mark.parametrize("place", UNTRUSTED)
def test_t104_as_many_entries_as_allowed_are_not_a_problem(home: Path, place: str):
    write(
        home / UNTRUSTED[place], servers(**{f"s{number}": {"command": "x"} for number in range(ENTRY_LIMIT)})
    )
    assert len(seen().servers) == ENTRY_LIMIT
    assert seen().problems == ()


def test_t104_a_connector_list_has_the_same_limit():
    listed = {f"s{number}": {"url": f"https://s{number}.example.com/"} for number in range(MANY)}
    found, problems = connectors.entries_of({"mcpServers": listed})
    assert list(found) == [f"s{number}" for number in range(ENTRY_LIMIT)]
    assert problems == [f"it has {MANY} servers; those after the first {ENTRY_LIMIT} are refused"]


async def test_t104_a_host_in_such_a_repository_is_ready_as_fast_as_in_others(home: Path):
    projects.user(home, servers(mine=stdio_server("well_behaved.py")))
    write(home / "work" / ".mcp.json", servers(**{f"s{number}": {"command": "x"} for number in range(MANY)}))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        assert len(host.servers) == ENTRY_LIMIT + 1
        assert (await host.call("mcp__mine__echo", {"message": "x"})).text == "x"


def test_t104_the_refusal_of_further_servers_is_shown(home: Path):
    write(home / "work" / ".mcp.json", servers(**{f"s{number}": {"command": "x"} for number in range(300)}))
    assert f"it has 300 servers; those after the first {ENTRY_LIMIT} are refused" in run("mcp", "list").stderr


# --- other large files ---


def test_t104_problems_of_one_file_are_counted_beyond_a_limit(home: Path):
    file = write(home / "work" / ".mcp.json", {f"k{number}": 0 for number in range(20_000)})
    found = seen()
    assert len(found.problems) == PROBLEM_LIMIT + 1
    assert found.problems[-1] == f"{file}: and {20_000 - PROBLEM_LIMIT} more problems"


RULES: dict[str, Callable[[int], Any]] = {
    "permissions.deny": lambda count: {"permissions": {"deny": ["mcp__x"] * count}},
    "permissions.ask": lambda count: {"permissions": {"ask": ["mcp__x"] * count}},
    "permissions.allow": lambda count: {"permissions": {"allow": ["mcp__x"] * count}},
    "deniedMcpServers": lambda count: {"deniedMcpServers": [{"serverName": "x"}] * count},
    "disabledMcpServers": lambda count: {"disabledMcpServers": ["x"] * count},
}


@pytest.mark.parametrize("what", RULES)
def test_t104_rules_of_a_project_file_have_a_limit_and_are_not_dropped_silently(home: Path, what: str):
    """Its deny rules apply at once, so a file with too many rules is treated like one that cannot be read."""
    projects.user(home, servers(mine={"command": "x"}))
    file = write(home / UNTRUSTED["local"], RULES[what](RULE_LIMIT))
    assert seen().servers["mine"].eligibility == "ready"
    write(file, RULES[what](RULE_LIMIT + 1))
    found = seen()
    assert found.servers["mine"].eligibility == "refused"
    assert f"{file}: it has {RULE_LIMIT + 1} rules, and at most {RULE_LIMIT} are read" in found.problems[0]
    projects.user(home, {**servers(mine={"command": "x"}), **RULES[what](RULE_LIMIT + 1)})
    file.unlink()
    assert seen().servers["mine"].eligibility == "ready", "a person's own file has no such limit"

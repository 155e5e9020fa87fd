"""T590: the servers of a repository's file are limited in their total number of characters, not only in
their count."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import connectors
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from tests.torture import projects
from tests.torture.projects import seen, servers, write

pytestmark = pytest.mark.requirement("CFG-10")

FILES = ("work/.mcp.json", "work/.dragoman/settings.local.json", ".dragoman/plugins/p/.mcp.json")
MANY = 50_000
LONG: dict[str, dict[str, Any]] = {
    "arguments": {"command": "x", "args": ["x"] * MANY},
    "one argument": {"command": "x", "args": ["x" * 5 * MANY]},
    "variables": {"command": "x", "env": {f"K{number}": "" for number in range(MANY)}},
    "headers": {"url": "https://example.com/", "headers": {f"K{number}": "" for number in range(MANY)}},
    "unknown fields": {"command": "x", **{f"field{number}": 0 for number in range(MANY)}},
}
REFUSED = "its servers have more than 200000 characters; refused: 'long'"


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("what", LONG)
def test_t590_a_long_entry_of_a_repository_is_refused_with_a_reason(home: Path, file: str, what: str):
    projects.user(home, servers(mine={"command": "x"}))
    path = write(home / file, servers(first={"command": "first"}, long=LONG[what], last={"command": "last"}))
    found = seen()
    assert sorted(found.servers) == ["first", "last", "mine"]
    assert found.servers["mine"].eligibility == "ready"
    assert found.problems == (f"{path}, line 2, column 3: {REFUSED}",)


def test_t590_a_persons_own_long_entry_is_used(home: Path):
    projects.user(home, servers(mine=LONG["arguments"]))
    found = seen()
    assert found.servers["mine"].eligibility == "ready"
    assert found.problems == ()


def test_t590_entries_up_to_the_limit_are_not_a_problem(home: Path):
    room = 200_000 - len(json.dumps(["long", {"command": ""}]))
    write(home / "work/.mcp.json", servers(long={"command": "x" * room}))
    assert seen().problems == ()
    write(home / "work/.mcp.json", servers(long={"command": "x" * (room + 1)}))
    assert list(seen().servers) == []


def test_t590_one_of_several_long_entries_is_named_in_the_error(home: Path):
    path = write(home / "work/.mcp.json", servers(**{f"s{n}": {"command": "x" * 90_000} for n in range(5)}))
    found = seen()
    assert list(found.servers) == ["s0", "s1"]
    reason = "its servers have more than 200000 characters; refused: 's2' and 2 more"
    assert found.problems == (f"{path}, line 2, column 3: {reason}",)


def test_t590_a_connector_list_has_the_same_limit_of_characters():
    rows = [{"name": "first", "url": "https://a.example.com/"}, {"name": "long", **LONG["headers"]}]
    found, problems = connectors.entries_of({"connectors": rows})
    assert list(found) == ["first"]
    assert problems == [REFUSED]


def test_t590_nested_folders_have_a_common_limit(home: Path):
    folders = [home / "work" / "/".join(["in"] * depth) for depth in range(6)]
    folders[-1].mkdir(parents=True)
    files = [
        write(folder / ".mcp.json", servers(**{f"s{depth}": {"command": "x" * 199_900}}))
        for depth, folder in enumerate(folders)
    ]
    found = load(Sources.here(folders[-1]))
    assert list(found.servers) == ["s0", "s1", "s2", "s3"]
    said = "it and the files of the folders above have too many servers: 0 of its own are used"
    assert found.problems == tuple(f"{file}: {said}" for file in files[4:])

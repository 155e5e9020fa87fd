"""T560: the files of many nested folders have a common limit, not only one limit each."""

from pathlib import Path

import pytest

from dragoman.config.files import ENTRY_LIMIT, NESTED_FILES, RULE_LIMIT
from dragoman.config.load import load
from dragoman.config.scopes import Sources
from tests.torture import projects
from tests.torture.projects import servers, write

pytestmark = pytest.mark.requirement("CFG-10")

DEPTH = 6


def nested(home: Path) -> list[Path]:
    """Nested folders, the outermost first."""
    folders = [home / "work" / "/".join(["in"] * depth) for depth in range(DEPTH)]
    folders[-1].mkdir(parents=True)
    return folders


def test_t560_the_servers_of_the_outer_folders_are_used_and_the_rest_is_reported(home: Path):
    projects.user(home, servers(mine={"command": "x"}))
    folders = nested(home)
    files = [
        write(
            folder / ".mcp.json", servers(**{f"s{depth}_{n}": {"command": "x"} for n in range(ENTRY_LIMIT)})
        )
        for depth, folder in enumerate(folders)
    ]
    found = load(Sources.here(folders[-1]))
    counted = [f"s{depth}_{n}" for depth in range(NESTED_FILES) for n in range(ENTRY_LIMIT)]
    assert list(found.servers) == ["mine", *counted]
    said = "it and the files of the folders above have too many servers: 0 of its own are used"
    assert found.problems == tuple(f"{file}: {said}" for file in files[NESTED_FILES:])


def test_t560_too_many_rules_refuse_every_server(home: Path):
    projects.user(home, servers(mine={"command": "x"}))
    folders = nested(home)
    local = [folder / ".dragoman" / "settings.local.json" for folder in folders]
    for file in local[:NESTED_FILES]:
        write(file, {"permissions": {"deny": ["mcp__x"] * RULE_LIMIT}})
    assert load(Sources.here(folders[-1])).servers["mine"].eligibility == "ready"
    write(local[-1], {"permissions": {"deny": ["mcp__y"]}})
    found = load(Sources.here(folders[-1]))
    assert found.servers["mine"].eligibility == "refused"
    said = (
        f"{local[-1]}: it and the files of the folders above have more than {NESTED_FILES * RULE_LIMIT} rules"
    )
    assert said in found.problems[0]

"""T161: a list that forbids servers by name matches variants of a name, a list that permits them matches
exactly."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import edits
from dragoman.errors import ConfigError
from tests.torture import projects

ENTRY = {"command": "/bin/echo"}
NAMES: list[tuple[str, str]] = [
    ("box", "Box"),
    ("box", "BOX"),
    ("Box", "box"),
    ("box", "box "),
    ("box", "\tbox"),
    ("box ", "box"),
    ("box", "b\u200box"),
    ("b\u200box", "box"),
    ("box", "\uff42ox"),
    ("caf\u00e9", "cafe\u0301"),
    ("my.box", "my_box"),
    ("my box", "my_box"),
    ("box", "mcp__box"),
    ("box", "mcp__box__*"),
    ("box", "other, box"),
    ("box", "b*"),
    ("box", "*X"),
    ("box", "*"),
    ("box", "other; box"),
    ("box", "other|box"),
    ("box", "'box'"),
    ("box", "^box$"),
    ("box", "/box/"),
    ("box", "b.*"),
    ("box", "b?x"),
]
LITERAL = [pair for pair in NAMES if "*" not in pair[1]]
OTHERS: list[tuple[str, str]] = [
    ("box", "boxes"),
    ("boxes", "box"),
    ("box", "b_x"),
    ("box", "mcp__"),
    ("box", ","),
]


def eligibility(name: str, settings: dict[str, Any], home: Path) -> str:
    projects.user(home, settings)
    return projects.eligibilities(given={name: ENTRY})[name]


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(("name", "written"), NAMES, ids=ascii)
def test_t161_a_denied_name_matches_every_spelling(home: Path, name: str, written: str):
    assert eligibility(name, {"deniedMcpServers": [{"serverName": written}]}, home) == "refused"
    assert eligibility(name, {"deniedMcpServers": [written]}, home) == "refused"
    assert eligibility(name, {"disabledMcpServers": [written]}, home) == "disabled"


@pytest.mark.parametrize(("name", "written"), NAMES, ids=ascii)
def test_t161_a_declined_name_matches_every_spelling(home: Path, name: str, written: str):
    projects.write(home / "work" / ".mcp.json", projects.servers(**{name: ENTRY}))
    projects.user(home, {"disabledMcpjsonServers": [written], "enableAllProjectMcpServers": True})
    assert projects.eligibilities() == {name: "rejected"}


@pytest.mark.parametrize(("name", "written"), OTHERS[:-1], ids=ascii)
def test_t161_a_different_name_is_not_denied(home: Path, name: str, written: str):
    assert eligibility(name, {"deniedMcpServers": [{"serverName": written}]}, home) == "ready"


@pytest.mark.parametrize(("name", "written"), OTHERS, ids=ascii)
def test_t161_a_different_name_is_not_disabled(home: Path, name: str, written: str):
    assert eligibility(name, {"disabledMcpServers": [written]}, home) == "ready"


@pytest.mark.parametrize("written", ["", " ", ",", " , "])
def test_t161_a_denied_name_that_is_blank_denies_everything(home: Path, written: str):
    assert eligibility("box", {"deniedMcpServers": [{"serverName": written}]}, home) == "refused"


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(("name", "written"), LITERAL, ids=ascii)
def test_t161_a_permitted_name_matches_exactly(home: Path, name: str, written: str):
    assert eligibility(name, {"allowedMcpServers": [{"serverName": written}]}, home) == "refused"
    projects.write(home / "work" / ".mcp.json", projects.servers(**{name: ENTRY}))
    projects.user(home, {"enabledMcpjsonServers": [written]})
    assert projects.eligibilities() == {name: "pending"}


def test_t161_a_disabled_name_that_exactly_matches_a_server_applies_to_that_server_only(home: Path):
    projects.user(home, {"disabledMcpServers": ["box"]})
    assert projects.eligibilities(given={"box": ENTRY, "Box": ENTRY}) == {"box": "disabled", "Box": "ready"}


@pytest.mark.parametrize(("name", "written"), LITERAL, ids=ascii)
def test_t161_enabling_removes_the_entry_that_disabled_the_server(home: Path, name: str, written: str):
    file = projects.user(
        home, {"disabledMcpServers": [written, "another"], **projects.servers(**{name: ENTRY})}
    )
    assert projects.eligibilities() == {name: "disabled"}
    assert edits.save_enabled(projects.seen(), name) == [file]
    assert json.loads(file.read_text())["disabledMcpServers"] == ["another"]
    assert projects.eligibilities() == {name: "ready"}


def test_t161_a_pattern_that_disables_is_not_edited_by_the_command(home: Path):
    file = projects.user(home, {"disabledMcpServers": ["b*"], **projects.servers(box=ENTRY)})
    with pytest.raises(ConfigError) as caught:
        edits.save_enabled(projects.seen(), "box")
    assert str(caught.value) == f"'box' is disabled by the pattern 'b*' in {file}"
    assert projects.eligibilities() == {"box": "disabled"}

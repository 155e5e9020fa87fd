"""T859: a project has its deny rules in `.dragoman/settings.json`, as the person's file is called. Only
`settings.local.json` is read in a project, so its rules have no effect. That is reported."""

from pathlib import Path

import pytest

from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-2")
RULES = {"permissions": {"deny": ["mcp__box"]}}


def ignored(file: Path) -> str:
    return f"{file} is not read: settings of a project are in .dragoman/settings.local.json"


def test_t859_it_is_reported(home: Path):
    file = projects.write(home / "work/.dragoman/settings.json", RULES)
    assert projects.seen().problems == (ignored(file),)


def test_t859_so_is_one_of_a_folder_above(home: Path):
    file = projects.write(home / "work/.dragoman/settings.json", RULES)
    below = home / "work/sub"
    below.mkdir()
    assert projects.seen(below).problems == (ignored(file),)


@pytest.mark.parametrize("place", ["home", "work"])
def test_t859_the_persons_own_file_is_not(home: Path, place: str, monkeypatch: pytest.MonkeyPatch):
    folder = home if place == "home" else home / "work"
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(folder / ".dragoman"))
    projects.write(folder / ".dragoman/settings.json", RULES)
    assert projects.seen(folder).problems == ()

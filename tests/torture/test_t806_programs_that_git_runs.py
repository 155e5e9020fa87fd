"""T806: a yes to every change of files in a folder is none to changes of the hooks and settings of git there:
git would run the programs that they name."""

from pathlib import Path

import pytest

from tests.torture.test_t343_changes_of_a_projects_rules import decisions

pytestmark = pytest.mark.requirement("PRM-1")
FILES = [
    ".git/hooks/post-checkout",
    ".git/config",
    "vendor/lib/.git/config",
    ".GIT/hooks/x",
    "bare.git/hooks/x",
]


def test_t806_its_files_are_asked_about(tmp_path: Path):
    assert decisions(tmp_path, *FILES, ".git", "sub/.git") == ["ask"] * 14
    assert decisions(tmp_path, ".gitignore", ".github/x.yml", "git/config", "a.git.md") == ["allow"] * 8


def test_t806_also_where_they_are_behind_a_link(tmp_path: Path):
    (tmp_path / "store").mkdir()
    (tmp_path / ".git").symlink_to("store")
    assert decisions(tmp_path.resolve(), ".git/config", "store/hooks/x") == ["ask"] * 4

"""T806: a permission for every edit in a folder does not cover hooks and settings of git there: git would
run the programs that they name."""

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


def test_t806_files_of_git_are_asked_about(tmp_path: Path):
    assert decisions(tmp_path, *FILES, ".git", "sub/.git") == ["ask"] * 14
    assert decisions(tmp_path, ".gitignore", ".github/x.yml", "git/config", "a.git.md") == ["allow"] * 8


def test_t806_files_of_git_behind_a_symlink_are_asked_about(tmp_path: Path):
    (tmp_path / "store").mkdir()
    (tmp_path / ".git").symlink_to("store")
    assert decisions(tmp_path.resolve(), ".git/config", "store/hooks/x") == ["ask"] * 4

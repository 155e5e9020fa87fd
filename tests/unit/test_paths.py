"""Where files are kept, and the two variables that move them."""

import stat
import sys
from pathlib import Path

import pytest

from dragoman.paths import NOWHERE, config_dir, make_private, managed_dir, state_dir


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({}, "{home}/.dragoman"),
        ({"DRAGOMAN_CONFIG_DIR": ""}, "{home}/.dragoman"),
        ({"DRAGOMAN_CONFIG_DIR": "/elsewhere"}, "/elsewhere"),
        ({"DRAGOMAN_CONFIG_DIR": "~/mine"}, "{home}/mine"),
    ],
    ids=str,
)
def test_the_persons_folder(home: Path, environ: dict[str, str], folder: str):
    assert config_dir(environ) == Path(folder.format(home=home))
    assert state_dir(environ) == config_dir(environ) / "state"


def test_the_administrators_folder(monkeypatch: pytest.MonkeyPatch):
    assert managed_dir({"DRAGOMAN_MANAGED_DIR": "/elsewhere"}) == Path("/elsewhere")
    monkeypatch.setattr(sys, "platform", "linux")
    assert managed_dir({}) == Path("/etc/dragoman")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert managed_dir({}) == Path("/Library/Application Support/Dragoman")


def test_reading_a_path_creates_nothing(home: Path):
    config_dir({})
    state_dir({})

    assert not (home / ".dragoman").exists()


def test_a_private_folder_and_its_missing_parents_are_readable_by_the_owner_only(tmp_path: Path):
    make_private(tmp_path / "a" / "b")
    make_private(tmp_path / "a" / "b")

    assert [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/b")] == [0o700, 0o700]


def test_without_a_home_no_file_is_read_or_written(monkeypatch: pytest.MonkeyPatch):
    def no_home(_: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(no_home))

    assert state_dir({}) == NOWHERE / "state"

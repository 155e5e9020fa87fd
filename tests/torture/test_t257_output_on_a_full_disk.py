"""T257: the disk is full when a result is written to the file that the person has named."""

import errno
import os
from pathlib import Path

import click
import pytest

from dragoman.cli.render.text import _write, write_named

pytestmark = pytest.mark.requirement("CLI-2")
DATA = b"new" * 1000


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)


@pytest.mark.usefixtures("full")
def test_t257_an_existing_file_stays_unchanged(tmp_path: Path):
    (tmp_path / "there.png").write_bytes(b"old")
    with pytest.raises(click.FileError):
        _write(tmp_path / "there.png", "part", ".png", 1, DATA)
    with pytest.raises(click.FileError):
        _write(tmp_path / "new.png", "part", ".png", 1, DATA)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"there.png": b"old"}


def test_t257_a_full_device_is_an_error(tmp_path: Path):
    (tmp_path / "link").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_named(tmp_path / "link", DATA)


@pytest.mark.parametrize("place", ["missing/x.png", "file/x.png"])
def test_t257_a_path_in_something_that_is_not_a_folder_is_an_error(tmp_path: Path, place: str):
    (tmp_path / "file").touch()
    with pytest.raises(click.FileError):
        _write(tmp_path / place, "part", ".png", 1, DATA)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_t257_special_files_are_written_to_and_symlinks_are_followed(tmp_path: Path):
    reading, writing = os.pipe()
    write_named(Path(f"/dev/fd/{writing}"), b"piped")
    assert os.read(reading, 10) == b"piped"
    os.close(reading)
    os.close(writing)
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_named(tmp_path / "link", DATA)
    assert ((tmp_path / "target").read_bytes(), (tmp_path / "link").is_symlink()) == (DATA, True)

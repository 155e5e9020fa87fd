"""A cache file is replaced as a whole, is private, and may be lost without an error."""

import stat
from pathlib import Path

from dragoman import atomic_write
from dragoman.atomic_write import write_cache


def test_a_cache_is_private_and_its_folder_is_created(tmp_path: Path):
    file = tmp_path / "state" / "cache.json"
    write_cache(file, b"1")
    write_cache(file, b"22")
    assert file.read_bytes() == b"22"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["cache.json"]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    write_cache(tmp_path / "file" / "cache.json", b"1")
    (tmp_path / "folder").mkdir()
    write_cache(tmp_path / "folder", b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_cache_does_not_wait_for_the_disk(tmp_path: Path, monkeypatch):
    def unexpected(_: object) -> None:
        raise AssertionError("nothing may wait for the disk")

    monkeypatch.setattr(atomic_write.os, "fsync", unexpected)
    write_cache(tmp_path / "cache.json", b"1")
    assert (tmp_path / "cache.json").read_bytes() == b"1"

"""Data that no model reads, saved where a person can find it."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import paths
from dragoman.content.quota import SPARED_SECONDS, Full, Room, SavedFile, to_remove
from dragoman.content.saving import NotSaved, Saver, ending
from dragoman.testing import FakeClock

pytestmark = pytest.mark.requirement("CAT-9")


@pytest.mark.parametrize(
    ("data", "claim", "end"),
    [
        (b"%PDF-1.7", None, ".pdf"),
        (b"%PDF-1.7", "image/png", ".pdf"),
        (b"not a pdf", "application/pdf", ".bin"),
        (b"MZ", "application/x-msdownload", ".bin"),
        (b"#!/bin/sh", "application/x-sh", ".bin"),
        (b"a,b", "text/csv; charset=utf-8", ".csv"),
        (b"{}", "APPLICATION/JSON", ".json"),
        (b"<svg onload='x()'>", "image/svg+xml", ".txt"),
        (b"<html>", "text/html", ".txt"),
        (b"RIFF\0\0\0\0WAVEfmt", None, ".wav"),
        (b"RIFF\0\0\0\0EVIL", "audio/wav", ".bin"),
        (b"\0\0\0\x18ftypmp42", None, ".mp4"),
        (b"PK\x03\x04", "application/java-archive", ".zip"),
        (b"x", "../../etc/passwd", ".bin"),
        (b"", None, ".bin"),
    ],
    ids=str,
)
def test_the_file_extension_follows_from_the_content(data: bytes, claim: str | None, end: str):
    assert ending(data, claim) == end


@given(st.binary(max_size=20), st.text(max_size=30))
def test_a_declared_type_cannot_choose_the_file_extension(data: bytes, claim: str):
    assert ending(data, claim).lstrip(".").isalnum()


class Desk:
    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.folder = folder

    def saver(self, **limits: float) -> Saver:
        return Saver(self.folder, clock=self.clock, **limits)  # type: ignore[arg-type]

    def age(self, path: Path, seconds: float) -> None:
        then = self.clock.now() - seconds
        os.utime(path, (then, then))

    def names(self) -> list[str]:
        return sorted(os.listdir(self.folder))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "state" / "saved")


def test_a_file_is_private_and_not_executable(desk: Desk):
    path = desk.saver().save_now(b"%PDF-1.7 deed")

    assert path.parent == desk.folder
    assert path.read_bytes() == b"%PDF-1.7 deed"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(desk.folder.stat().st_mode) == 0o700


def test_two_files_never_share_a_name(desk: Desk):
    assert len({desk.saver().save_now(b"same").name for _ in range(50)}) == 50


async def test_the_default_folder_is_the_state_folder(home: Path):
    path = await Saver().save(b"x", "text/plain")

    assert path.parent == paths.state_dir() / "saved"
    assert path.suffix == ".txt"


def test_a_folder_open_to_others_is_made_private(desk: Desk):
    desk.folder.mkdir(parents=True, mode=0o777)
    desk.folder.chmod(0o777)
    desk.saver().save_now(b"x")

    assert stat.S_IMODE(desk.folder.stat().st_mode) == 0o700


def test_a_link_in_place_of_the_folder_is_not_followed(desk: Desk, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    desk.folder.parent.mkdir()
    desk.folder.symlink_to(elsewhere)

    with pytest.raises(NotSaved, match="cannot be used"):
        desk.saver().save_now(b"x")
    assert os.listdir(elsewhere) == []


def test_a_file_in_place_of_the_folder_is_reported(desk: Desk):
    desk.folder.parent.mkdir()
    desk.folder.write_text("in the way")
    with pytest.raises(NotSaved):
        desk.saver().save_now(b"x")


def test_data_that_is_too_large_is_refused(desk: Desk):
    with pytest.raises(NotSaved, match="larger than the limit of 10 bytes"):
        desk.saver(file_limit_bytes=10).save_now(b"x" * 11)
    with pytest.raises(NotSaved, match="larger"):
        desk.saver(quota_bytes=5).save_now(b"x" * 6)


def test_old_files_are_removed_for_room_and_new_ones_are_not(desk: Desk):
    saver = desk.saver(quota_bytes=25)
    oldest, older, new = (saver.save_now(b"x" * 8) for _ in range(3))
    desk.age(oldest, SPARED_SECONDS + 20)
    desk.age(older, SPARED_SECONDS + 10)
    desk.age(new, 10)
    newest = saver.save_now(b"x" * 8)
    desk.age(newest, 0)

    assert desk.names() == sorted([older.name, new.name, newest.name])
    saver.save_now(b"x" * 8)
    with pytest.raises(NotSaved, match="full"):
        saver.save_now(b"x" * 8)


@pytest.mark.parametrize("call", ["stat", "unlink"])
def test_a_file_removed_by_another_host_is_no_error(desk: Desk, monkeypatch: pytest.MonkeyPatch, call: str):
    saver = desk.saver(keep_seconds=100)
    old = saver.save_now(b"old")
    desk.age(old, 101)
    original = getattr(os, call)

    def too_late(name: str, **options: Any) -> Any:
        if name == old.name:
            old.unlink(missing_ok=True)
        return original(name, **options)

    monkeypatch.setattr(os, call, too_late)
    kept = saver.save_now(b"new")

    assert desk.names() == [kept.name]


def test_the_number_of_files_is_limited_too(desk: Desk):
    saver = desk.saver(file_count_limit=3)
    for _ in range(3):
        desk.age(saver.save_now(b""), 0)
    with pytest.raises(NotSaved, match="full \\(3 files"):
        saver.save_now(b"")


def test_files_past_their_retention_are_removed(desk: Desk):
    saver = desk.saver(keep_seconds=100)
    desk.age(saver.save_now(b"old"), 101)
    kept = saver.save_now(b"new")

    assert desk.names() == [kept.name]


def test_nothing_else_in_the_folder_is_touched(desk: Desk, tmp_path: Path):
    saver = desk.saver(keep_seconds=1, quota_bytes=10)
    saver.save_now(b"x")
    foreign = desk.folder / "letter.txt"
    foreign.write_text("mine" * 100)
    desk.age(foreign, 1e6)
    target = tmp_path / "target"
    target.write_text("precious")
    link = desk.folder / f"20200101-000000-{'0' * 16}.txt"
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    saver.save_now(b"y")

    assert foreign.exists()
    assert not link.is_symlink(), "a link that looks like one of ours goes, and only the link"
    assert target.read_text() == "precious"


# --- which files make room ---

HOUR = 3600.0
WIDE = Room(100, 1000)


def file(name: str, age: float, size: int = 10, *, handed_out: bool = False) -> SavedFile:
    return SavedFile(name, -age, size, name[0], handed_out)


HANDED_OUT = file("c1", 2, handed_out=True)


def removed(files: list[SavedFile], owner: str = "a", *, share: Room = WIDE, total: Room = WIDE) -> list[str]:
    return sorted(to_remove(files, owner, now=0.0, share=share, total=total, keep_seconds=100 * HOUR))


@pytest.mark.parametrize(
    ("files", "share", "total", "expected"),
    [
        ([file("a1", 1), file("b1", 2)], WIDE, WIDE, []),
        ([file("a1", 101 * HOUR), file("b1", 101 * HOUR)], WIDE, WIDE, ["a1", "b1"]),
        ([file("a1", 2), file("a2", 1), file("b1", 3)], Room(2, 1000), WIDE, ["a1"]),
        ([file("a1", 2), file("a2", 1), file("b1", 3)], Room(9, 30, 20), WIDE, ["a1"]),
        ([file("a1", 3, handed_out=True), file("a2", 1)], Room(2, 1000), WIDE, ["a2"]),
        ([file("a1", 2 * HOUR, handed_out=True), file("a2", 1)], Room(2, 1000), WIDE, ["a2"]),
        ([file("a1", 2 * HOUR, handed_out=True)], Room(1, 1000), WIDE, ["a1"]),
        ([file("b1", 9), file("c1", 2), file("c2", 1)], WIDE, Room(3, 1000), ["c1"]),
        ([file("b1", 9), file("b2", 8), file("c1", 1, 50)], WIDE, Room(9, 80, 20), ["c1"]),
        (
            [file("c1", 2, handed_out=True), file("c2", 1, handed_out=True), file("b1", 1)],
            WIDE,
            Room(3, 1000),
            ["b1"],
        ),
    ],
)
def test_the_order_in_which_files_are_removed(
    files: list[SavedFile], share: Room, total: Room, expected: list[str]
):
    assert removed(files, share=share, total=total) == expected


def test_recently_referenced_files_are_kept_even_if_the_share_is_full():
    with pytest.raises(Full) as caught:
        removed([file("a1", 5, handed_out=True), file("b1", 9)], share=Room(1, 1000))
    assert (caught.value.files, caught.value.size_bytes, caught.value.is_share) == (1, 10, True)
    with pytest.raises(Full) as caught:
        removed([file("b1", 5, handed_out=True)], total=Room(1, 1000))
    assert not caught.value.is_share


def test_very_many_files_are_sorted_quickly():
    files = [file(f"a{number}", number) for number in range(20_000)]
    assert len(removed(files, share=Room(10, 10**9), total=Room(10**6, 10**9))) == 19_991

"""Verdicts on servers' eras: kept across hosts, for a while, and never in the way."""

import json
from pathlib import Path

import pytest

from dragoman.connections.eras import KEPT_SECONDS, KEPT_VERDICTS, EraMemory
from dragoman.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def memory(clock: FakeClock, folder: Path) -> EraMemory:
    return EraMemory(clock, lambda: folder)


def test_an_unknown_server_has_no_remembered_era(clock: FakeClock, folder: Path):
    assert memory(clock, folder).recall("a") is None
    assert not folder.exists()


def test_a_remembered_era_is_kept_after_the_host_is_closed(clock: FakeClock, folder: Path):
    memory(clock, folder).remember("a", "legacy")

    assert memory(clock, folder).recall("a") == "legacy"


def test_the_newer_era_replaces_the_older(clock: FakeClock, folder: Path):
    eras = memory(clock, folder)
    eras.remember("a", "legacy")
    eras.remember("a", "modern")

    assert eras.recall("a") == "modern"
    assert memory(clock, folder).recall("a") == "modern"


@pytest.mark.parametrize(("age", "verdict"), [(KEPT_SECONDS - 1, "legacy"), (KEPT_SECONDS, None)])
def test_a_remembered_era_expires(clock: FakeClock, folder: Path, age: float, verdict: str | None):
    eras = memory(clock, folder)
    eras.remember("a", "legacy")
    clock.advance(age)

    assert eras.recall("a") == verdict


def test_a_remembered_era_from_the_future_is_ignored(clock: FakeClock, folder: Path):
    eras = memory(clock, folder)
    eras.remember("a", "legacy")
    clock.advance(-1)

    assert eras.recall("a") is None


def test_an_expired_era_is_renewed(clock: FakeClock, folder: Path):
    eras = memory(clock, folder)
    eras.remember("a", "legacy")
    clock.advance(KEPT_SECONDS)
    eras.remember("a", "legacy")

    assert memory(clock, folder).recall("a") == "legacy"


def test_remembering_a_known_era_writes_nothing(clock: FakeClock, folder: Path):
    eras = memory(clock, folder)
    eras.remember("a", "legacy")
    (folder / "eras.json").unlink()
    eras.remember("a", "legacy")

    assert not (folder / "eras.json").exists()


def test_two_hosts_keep_each_others_remembered_eras(clock: FakeClock, folder: Path):
    one, other = memory(clock, folder), memory(clock, folder)
    one.recall("a")
    other.recall("a")
    one.remember("a", "legacy")
    other.remember("b", "modern")

    fresh = memory(clock, folder)
    assert (fresh.recall("a"), fresh.recall("b")) == ("legacy", "modern")


def test_only_the_newest_eras_are_kept(clock: FakeClock, folder: Path):
    verdicts = {str(n): {"era": "legacy", "at": clock.now()} for n in range(KEPT_VERDICTS)}
    folder.mkdir()
    (folder / "eras.json").write_text(json.dumps(verdicts))
    eras = memory(clock, folder)
    eras.remember("new", "modern")

    assert eras.recall("new") == "modern"
    assert eras.recall("0") is None
    assert eras.recall("1") == "legacy"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"a":{"era":"stone","at":1}}',
        b'{"a":7}',
        b"[" * 100_000,
        b'{"a":"\xff"}',
    ],
    ids=lambda content: content[:30],
)
def test_a_corrupt_file_is_treated_as_missing_and_replaced(clock: FakeClock, folder: Path, content: bytes):
    folder.mkdir()
    (folder / "eras.json").write_bytes(content)
    eras = memory(clock, folder)
    assert eras.recall("a") is None

    eras.remember("a", "modern")
    assert memory(clock, folder).recall("a") == "modern"


def test_with_a_folder_that_cannot_be_written_eras_are_kept_in_memory_only(clock: FakeClock, tmp_path: Path):
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    eras = memory(clock, blocked / "state")
    eras.remember("a", "legacy")

    assert eras.recall("a") == "legacy"
    assert memory(clock, blocked / "state").recall("a") is None


def test_no_other_file_remains_in_the_folder(clock: FakeClock, folder: Path):
    memory(clock, folder).remember("a", "legacy")

    assert [path.name for path in folder.iterdir()] == ["eras.json"]


def test_a_remembered_era_can_be_deleted(tmp_path: Path):
    memory = EraMemory(FakeClock(), lambda: tmp_path)
    memory.remember("a", "legacy")
    memory.remember("b", "modern")
    memory.forget("a")
    memory.forget("never there")

    again = EraMemory(FakeClock(), lambda: tmp_path)
    assert (again.recall("a"), again.recall("b")) == (None, "modern")


def test_an_era_that_was_concluded_from_a_timeout_is_kept_until_the_host_is_closed(
    clock: FakeClock, folder: Path
):
    eras = memory(clock, folder)
    eras.remember("a", "legacy", until_end=True)

    assert eras.recall("a") == "legacy"
    assert memory(clock, folder).recall("a") is None
    eras.remember("a", "modern")
    assert [each.recall("a") for each in (eras, memory(clock, folder))] == ["modern", "modern"]
    eras.remember("b", "legacy", until_end=True)
    eras.forget("b")
    assert eras.recall("b") is None

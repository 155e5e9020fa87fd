"""T212: logs are read and followed while other processes rotate them."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import log_files
from dragoman.cli.commands import logs

pytestmark = pytest.mark.requirement("ASK-6")
KEPT = 3


def append(path: Path, number: int) -> None:
    """Two lines fill a file."""
    log_files.append(path, json.dumps({"n": number}).encode() + b"\n", limit_bytes=10, kept=KEPT)


def numbers(entries: Any) -> list[int]:
    return [entry["n"] for entry in entries]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir(mode=0o700)
    return folder / "server.jsonl"


def test_t212_a_rotation_while_a_log_is_opened_hides_no_entry(log: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(3):
        append(log, number)
    is_file, is_turned = Path.is_file, False

    def rotating(path: Path) -> bool:
        nonlocal is_turned
        found = is_file(path)
        if not is_turned:
            is_turned = True
            append(log, 3)
        return found

    monkeypatch.setattr(Path, "is_file", rotating)
    assert numbers(log_files.read(log, KEPT)) == [0, 1, 2, 3]


def test_t212_a_followed_log_shows_the_lines_before_and_after_a_rotation(log: Path):
    append(log, 0)
    tail = logs._Tail(log)
    for number in range(1, 5):
        append(log, number)
    assert numbers(tail.new_lines()) == [1, 2, 3, 4]
    append(log, 5)
    assert numbers(tail.new_lines()) == [5]


def test_t212_a_followed_log_that_was_truncated_continues(log: Path):
    append(log, 0)
    tail = logs._Tail(log)
    log.write_bytes(b"")
    assert numbers(tail.new_lines()) == []
    append(log, 1)
    assert numbers(tail.new_lines()) == [1]


def test_t212_a_followed_log_may_be_missing_for_a_while(log: Path):
    tail = logs._Tail(log)
    assert numbers(tail.new_lines()) == []
    append(log, 0)
    assert numbers(tail.new_lines()) == [0]
    log.rename(log.with_suffix(".1.jsonl"))
    assert numbers(tail.new_lines()) == []
    append(log, 1)
    assert numbers(tail.new_lines()) == [1]

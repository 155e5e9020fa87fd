"""The file of running tasks: private, limited, shared, and safe to lose."""

import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.calls import task_store
from dragoman.calls.task_store import FILE, RunningTask, TaskStore, new_id

pytestmark = pytest.mark.requirement("CAL-8")


def task(number: int = 1, **changes: object) -> RunningTask:
    given = {
        "id": f"task_{number}", "server": "s", "fingerprint": "f", "tool": "mcp__s__t", "wire_name": "t",
        "task_id": f"t{number}", "era": "modern", "created": 1000.0, "ttl_seconds": 60.0,
    }  # fmt: skip
    return RunningTask(**{**given, **changes})  # type: ignore[arg-type]


def store(folder: Path, now: float = 1000.0) -> TaskStore:
    return TaskStore(lambda: now, folder)


def test_a_task_added_by_one_store_is_found_by_another_until_it_is_removed(tmp_path: Path):
    store(tmp_path).add(task(1))
    store(tmp_path).add(task(2))
    assert store(tmp_path).all() == [task(1), task(2)]
    assert store(tmp_path).find("task_2") == task(2)
    store(tmp_path).remove(task(1))
    assert store(tmp_path).all() == [task(2)]
    assert store(tmp_path).find("task_1") is None


def test_the_file_is_private(tmp_path: Path):
    folder = tmp_path / "state"
    store(folder).add(task())
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[1]", b'[{"id": 5}]', b"\xff" * 100, b"[" * 10_000])
def test_a_file_that_cannot_be_read_counts_as_empty(tmp_path: Path, content: bytes):
    (tmp_path / FILE).write_bytes(content)
    assert store(tmp_path).all() == []
    store(tmp_path).add(task())
    assert store(tmp_path).all() == [task()]


def test_a_folder_in_place_of_the_file_has_no_other_effect(tmp_path: Path):
    (tmp_path / FILE).mkdir()
    store(tmp_path).add(task())
    assert store(tmp_path).all() == []


def test_expired_tasks_are_listed_for_a_day_and_then_dropped(tmp_path: Path):
    store(tmp_path).add(task())
    assert not task().is_expired(1060.0)
    assert task().is_expired(1061.0)
    assert store(tmp_path, 1061.0).all() == [task()]
    assert store(tmp_path, 1061.0 + task_store.GRACE_SECONDS).all() == []
    forever = task(ttl_seconds=None)
    assert not forever.is_expired(10.0**10)
    store(tmp_path).add(forever)
    assert store(tmp_path, 1000.0 + task_store.KEPT_SECONDS + 1).all() == []


def test_the_oldest_tasks_are_removed_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(task_store, "KEPT_TASKS", 3)
    for number in range(5):
        store(tmp_path).add(task(number))
    assert [each.id for each in store(tmp_path).all()] == ["task_2", "task_3", "task_4"]


def test_stores_of_several_threads_lose_nothing(tmp_path: Path):
    threads = [threading.Thread(target=store(tmp_path).add, args=(task(number),)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.id for each in store(tmp_path).all()} == {f"task_{number}" for number in range(12)}


def test_ids_differ():
    assert len({new_id() for _ in range(1000)}) == 1000


def test_one_server_with_very_many_tasks_does_not_drop_those_of_others(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(task_store, "KEPT_TASKS", 6)
    monkeypatch.setattr(task_store, "KEPT_OF_SERVER", 4)
    store(tmp_path).add(task(0, server="calm"))
    for number in range(1, 10):
        store(tmp_path).add(task(number))
    assert [each.id for each in store(tmp_path).all()] == ["task_0", "task_6", "task_7", "task_8", "task_9"]


def test_a_task_is_not_kept_beyond_the_limit_even_with_a_longer_ttl(tmp_path: Path):
    store(tmp_path).add(task(ttl_seconds=1e300))
    assert store(tmp_path, 1000.0 + task_store.LONGEST_SECONDS).all() == [task(ttl_seconds=1e300)]
    assert store(tmp_path, 1001.0 + task_store.LONGEST_SECONDS).all() == []

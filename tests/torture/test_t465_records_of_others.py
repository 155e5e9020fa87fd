"""T465: an unreadable task in the task file does not affect the other tasks."""

from pathlib import Path

import msgspec
import pytest

from dragoman.calls.task_store import FILE, RunningTask, TaskStore

pytestmark = pytest.mark.requirement("CAL-8")


def task(number: int) -> RunningTask:
    return RunningTask(
        id=f"task_{number}",
        server="x",
        fingerprint="f",
        tool="mcp__x__t",
        wire_name="t",
        task_id="1",
        era="modern",
        created=1000.0,
    )


@pytest.mark.parametrize(
    "odd", [{"era": "future"}, {"created": "today"}, {"id": None}, {"ttl_seconds": []}], ids=str
)
def test_t465_only_the_task_of_another_version_is_left_out(odd: dict[str, object], tmp_path: Path):
    stored = [task(1), {**msgspec.to_builtins(task(2)), **odd}, task(3), "no task", None]
    (tmp_path / FILE).write_bytes(msgspec.json.encode(stored))
    store = TaskStore(lambda: 1001.0, tmp_path)
    assert store.all() == [task(1), task(3)]
    store.add(task(4))
    assert store.all() == [task(1), task(3), task(4)]

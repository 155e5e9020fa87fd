"""T843: the files of the agent are in a network folder that no longer answers. The person can cancel each
call; the event loop continues, and nothing else waits for the threads that stay behind."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.agent.builtin import files, find
from dragoman.agent.builtin.workspace import Workspace
from tests.torture.bystander_host import at_once
from tests.unit.agent.test_builtin import benched

pytestmark = pytest.mark.requirement("AGT-3")
THREADS = 40
"""More than the event loop has."""
CALLS: dict[str, tuple[Any, str, str, dict[str, str]]] = {
    "its path": (Workspace, "resolve", "Read", {"file_path": "a.txt"}),
    "its content": (files, "_regular_size", "Read", {"file_path": "a.txt"}),
    "the change": (files, "_replace", "Write", {"file_path": "a.txt", "content": "x"}),
    "the search": (find, "_find_files", "Glob", {"pattern": "*"}),
}


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """Set when the folder answers again; after some seconds in any case, so that a failure is no hang."""
    event = threading.Event()
    timer = threading.Timer(8, event.set)
    timer.start()
    yield event
    event.set()
    timer.cancel()


@pytest.mark.parametrize("what", CALLS)
async def test_t843_everything_else_continues(
    what: str, home, answer: threading.Event, monkeypatch: pytest.MonkeyPatch
):
    owner, function, tool, arguments = CALLS[what]
    folder = (home / "work").resolve()
    (folder / "a.txt").write_text("hello\n")
    inner = getattr(owner, function)

    def wait(*given: Any) -> Any:
        answer.wait()
        return inner(*given)

    async with benched(folder) as bench:
        await bench.text("Read", file_path="a.txt")
        monkeypatch.setattr(owner, function, wait)
        async with at_once(4):
            calls = [asyncio.create_task(bench.text(tool, **arguments)) for _ in range(THREADS)]
            await asyncio.wait(calls, timeout=0.2)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
            assert await asyncio.to_thread(lambda: "done") == "done"
        answer.set()

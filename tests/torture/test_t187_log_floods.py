"""T187: endless log output, also on disks that are full or closed: the log is bounded, and calls
continue."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman import log_files
from dragoman.connections.server_log import FILE_LIMIT_BYTES, FILES_KEPT, LINES_PER_SECOND, path_of, read
from dragoman.events import ConfigurationChanged
from tests.servers import stdio_server
from tests.torture.bystander_host import HOSTILE, at_once, until

pytestmark = pytest.mark.requirement("ASK-6")


def texts() -> list[str]:
    return [line["text"] for line in read(path_of(HOSTILE))]


async def test_a_flood_of_log_messages_is_limited_in_the_file_and_counted(bystander_host):
    async with bystander_host(stdio_server("floods_logs.py"), server_logs=True) as a:
        assert await a.call("chatter", count=50_000) == "said 50000"
    found = texts()
    assert found.count("x") <= 30 * LINES_PER_SECOND
    dropped = [text for text in found if text.endswith("were dropped: there were too many")]
    assert sum(int(text.split()[0]) for text in dropped) + found.count("x") == 50_000


async def test_a_flood_on_stderr_is_limited_and_the_files_stay_small(bystander_host):
    async with bystander_host(stdio_server("floods_stderr.py"), server_logs=True) as a, at_once(30):
        await a.call("echo", message="still here")
    files = list(path_of(HOSTILE).parent.glob("*.jsonl"))
    assert len(files) <= FILES_KEPT + 1
    assert sum(file.stat().st_size for file in files) < (FILES_KEPT + 1) * (FILE_LIMIT_BYTES + 2**22)


def full(path: Path, data: bytes, **limits: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("obstacle", ["a full disk", "a file in the folder's place", "a pipe"])
async def test_a_log_that_cannot_be_written_fails_no_call_and_is_reported_once(
    bystander_host, home: Path, monkeypatch: pytest.MonkeyPatch, obstacle: str
):
    path = path_of(HOSTILE)
    path.parent.parent.mkdir(parents=True)
    if obstacle == "a full disk":
        monkeypatch.setattr(log_files, "append", full)
    elif obstacle == "a file in the folder's place":
        path.parent.write_text("")
    else:
        path.parent.mkdir()
        os.mkfifo(path)
    async with bystander_host(stdio_server("logs_by_level.py", "legacy"), server_logs=True) as a:
        async with at_once(10):
            for number in range(20):
                await a.call("say", level="error", text=str(number))

        def told() -> list[Any]:
            found = [event for event in a.events if isinstance(event, ConfigurationChanged)]
            return [event for event in found if any(str(path) in each for each in event.problems)]

        await until(lambda: told())
        assert len(told()) == 1

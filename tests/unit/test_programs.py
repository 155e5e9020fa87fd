"""Commands run for what they print: limits, and ends that leave nothing behind."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman import programs
from dragoman.programs import CommandFailure, Ended


class Unwatched:
    def watch(self, pid: int) -> None:
        self.pid = pid

    def release(self, pid: int) -> None:
        assert pid == self.pid


async def run(command: str, folder: Path, **options: Any) -> Ended:
    options = {"env": {"PATH": "/usr/bin:/bin"}, "limit_bytes": 64 * 1024, **options}
    return await programs.run(command, cwd=str(folder), watchdog=Unwatched(), **options)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def pid_in(file: Path) -> int:
    async with asyncio.timeout(5):
        while not (file.exists() and file.read_text().strip()):
            await asyncio.sleep(0.005)
    return int(file.read_text())


async def dies(pid: int) -> None:
    async with asyncio.timeout(5):
        while is_alive(pid):
            await asyncio.sleep(0.005)


async def test_output_and_exit_code_are_returned(tmp_path: Path):
    assert await run("printf hello; exit 7", tmp_path) == Ended(7, b"hello")
    assert await run("printf hello", tmp_path) == Ended(0, b"hello")
    assert await run("kill -15 $$", tmp_path) == Ended(-15, b"")


async def test_output_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not(tmp_path: Path):
    assert (await run("printf 12345", tmp_path, limit_bytes=5)).stdout == b"12345"
    with pytest.raises(CommandFailure, match="printed more than"):
        await run("printf 123456", tmp_path, limit_bytes=5)


async def test_a_program_that_never_stops_printing_is_ended(tmp_path: Path):
    with pytest.raises(CommandFailure, match="printed more than 64 kB"):
        async with asyncio.timeout(5):
            await run("echo $$ > pid; yes", tmp_path)
    await dies(await pid_in(tmp_path / "pid"))


async def test_a_child_that_keeps_the_output_open_does_not_delay_the_end_and_is_ended(tmp_path: Path):
    began = time.monotonic()
    ended = await run("printf done; sleep 60 & echo $! > pid", tmp_path)
    assert ended == Ended(0, b"done")
    assert time.monotonic() - began < 5
    await dies(await pid_in(tmp_path / "pid"))


@pytest.mark.parametrize("stubborn", [False, True], ids=["", "deaf to signals"])
async def test_a_cancellation_ends_the_command_with_its_children(tmp_path: Path, stubborn: bool):
    trap = "trap '' INT TERM HUP; " if stubborn else ""
    task = asyncio.create_task(
        run(f"{trap}echo $$ > leader; sh -c 'echo $$ > child; sleep 60'; true", tmp_path)
    )
    pids = [await pid_in(tmp_path / name) for name in ("leader", "child")]
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 0.5
    for pid in pids:
        await dies(pid)


async def test_a_cancellation_at_any_moment_leaves_no_process(tmp_path: Path):
    for turns in range(12):
        task = asyncio.create_task(run(f"echo $$ > pid{turns}; exec sleep 60", tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    for file in tmp_path.iterdir():
        if pid := file.read_text().strip():
            await dies(int(pid))


async def test_no_file_descriptor_is_left_open(tmp_path: Path):
    await run("true", tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await run("true", tmp_path)
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) <= before

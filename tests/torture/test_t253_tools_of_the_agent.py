"""T253: built-in tools of the agent with very large files, and very many commands."""

import asyncio
import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.agent.builtin import find
from dragoman.agent.builtin.files import COMPARED_LINES, DIFF_LINES, LINE_LENGTH_LIMIT
from dragoman.agent.builtin.shell import BACKGROUND_LIMIT
from tests.unit.agent.test_builtin import benched

pytestmark = pytest.mark.requirement("AGT-3")
MEGABYTE = 1024 * 1024


@pytest.fixture
def folder(home: Path) -> Path:
    return (home / "work").resolve()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def peak() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("peak")
async def test_t253_a_line_as_long_as_the_file_is_not_kept_in_memory(folder: Path):
    with (folder / "long.txt").open("wb") as file:
        for _ in range(64):
            file.write("é".encode() * (MEGABYTE // 2))
        file.write(b"\r\nsecond\n")
    async with benched(folder) as bench:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        text = await bench.text("Read", file_path="long.txt")
        grown = tracemalloc.get_traced_memory()[1] - before
    more = 32 * MEGABYTE - LINE_LENGTH_LIMIT
    assert text == f"     1\t{'é' * LINE_LENGTH_LIMIT}… ({more} more characters)\n     2\tsecond"
    assert grown < 4 * MEGABYTE


async def test_t253_an_edit_of_very_many_lines_is_not_compared_line_by_line(folder: Path):
    count = COMPARED_LINES
    (folder / "many.txt").write_text("head\n" + "old\n" * count + "tail\n")
    async with benched(folder) as bench:
        await bench.text("Read", file_path="many.txt", limit=1)
        text = await bench.text(
            "Edit", file_path="many.txt", old_string="old", new_string="new", replace_all=True
        )
    assert text.splitlines()[1:] == [
        "(The line numbers start at line 2 of the file.)",
        *["-old"] * (DIFF_LINES - 1),
        f"… {2 * count - DIFF_LINES + 1} more lines",
    ]


async def test_t253_a_small_edit_of_a_very_long_file_is_shown_with_its_line_number(folder: Path):
    (folder / "many.txt").write_text("a\n" * COMPARED_LINES + "old\n" + "z\n" * COMPARED_LINES)
    async with benched(folder) as bench:
        await bench.text("Read", file_path="many.txt", limit=1)
        text = await bench.text("Edit", file_path="many.txt", old_string="old", new_string="new")
    assert text.splitlines()[1:] == [
        f"(The line numbers start at line {COMPARED_LINES + 1} of the file.)",
        "@@ -1 +1 @@",
        "-old",
        "+new",
    ]


async def test_t253_finished_background_commands_do_not_accumulate(folder: Path, temporary: Path):
    count = 4 * BACKGROUND_LIMIT
    async with benched(folder) as bench:
        for number in range(1, count + 1):
            await bench.text("Bash", command=f"echo {number}", background=True)
            while "(still running)" in (text := await bench.text("BashOutput", id=f"bash-{number}")):
                await asyncio.sleep(0)
            assert text.splitlines()[-1] == "(exit code 0)"
        assert len(os.listdir(temporary)) <= BACKGROUND_LIMIT + 1
        assert "no command in the background has this id" in await bench.problem("BashOutput", id="bash-1")
        assert "(exit code 0)" in await bench.text("BashOutput", id=f"bash-{count - 1}")
    assert os.listdir(temporary) == []


async def test_t253_a_file_that_is_removed_during_a_search_does_not_affect_the_results(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "there.txt").write_text("x")
    files = find._files
    monkeypatch.setattr(find, "_files", lambda base: iter([base / "gone.txt", *files(base)]))
    async with benched(folder) as bench:
        assert await bench.text("Glob", pattern="*.txt") == f"{folder}/there.txt"

"""Looking into saved results: lines, offsets, words and expressions, all bounded."""

import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.calls.reading_tools import result_tool
from dragoman.content.budget import ResultLimits
from dragoman.content.saving import NotSaved, Saver, handle_of
from dragoman.content.store import BadQuestion, ResultStore
from dragoman.errors import InvalidArguments

pytestmark = pytest.mark.requirement("CAL-7")


class Shelf:
    def __init__(self, folder: Path) -> None:
        self.saver = Saver(folder)
        self.store = ResultStore(self.saver)

    def put(self, text: str, end: str = ".txt") -> str:
        data = text.encode()
        path, _ = self.saver.save_pieces_now([data], len(data), end)
        return handle_of(path.name)

    async def ask(self, handle: str, limit: int = 1000, **question: Any) -> str:
        return await self.store.ask(handle, question, limit)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "saved")


LINES = "".join(f"Line {number} é\n" for number in range(1, 101))


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("1-2", 'Line 1 é\nLine 2 é\n[lines 1-2; continue with lines="3-4"]'),
        ("100", "Line 100 é\n[lines 100-100; the end of the result]"),
        ("99-", "Line 99 é\nLine 100 é\n[lines 99-100; the end of the result]"),
        ("99-500", "Line 99 é\nLine 100 é\n[lines 99-100; the end of the result]"),
    ],
)
async def test_lines_are_read_by_their_numbers(shelf: Shelf, wanted: str, answer: str):
    assert await shelf.ask(shelf.put(LINES), lines=wanted) == answer


async def test_a_line_too_long_for_an_answer_is_continued_by_offset(shelf: Shelf):
    text = "é" * 3000 + "\nend"
    handle = shelf.put(text)
    first = await shelf.ask(handle, lines="1-2")
    assert first == "é" * 1000 + "\n[line 1 continues: continue with offset=2000]"
    read, offset = "", 0
    while True:
        answer, _, note = (await shelf.ask(handle, offset=offset)).rpartition("\n[")
        read += answer
        if note.startswith("the end"):
            break
        offset = int(note.partition("offset=")[2].rstrip("]"))
    assert read == text


@pytest.mark.parametrize(("lines"), ["0", "5-2", "x", "1-2-3", "101", "-5"])
async def test_lines_that_do_not_exist_are_reported(shelf: Shelf, lines: str):
    with pytest.raises(BadQuestion, match=r"line"):
        await shelf.ask(shelf.put(LINES), lines=lines)


async def test_text_is_found_with_line_numbers(shelf: Shelf):
    handle = shelf.put(LINES)

    assert await shelf.ask(handle, grep="LINE 77 ") == "77: Line 77 é"
    assert await shelf.ask(handle, grep="(.*)") == "[no line matches]"
    assert (await shelf.ask(handle, 60, grep="line")).endswith("the next is in line 6, at offset=50]")


async def test_a_text_without_line_ends_is_searched(shelf: Shelf):
    handle = shelf.put("x" * 1_048_570 + "needle in the hay" + "y" * 3_000_000 + "Needle" + "z")
    answer = await shelf.ask(handle, grep="needle")

    first, second = answer.split("\n")
    assert first.startswith("1, offset=1048570: …x")
    assert first.endswith("xneedle")  # a very long line is searched in parts
    assert second.startswith("1, offset=4048587: …y")
    assert second.endswith("yNeedlez")


async def test_a_regular_expression_is_written_between_slashes_and_runs_in_a_worker(shelf: Shelf):
    handle = shelf.put(LINES)

    assert await shelf.ask(handle, grep="/e 7[78] /") == "77: Line 77 é\n78: Line 78 é"
    with pytest.raises(BadQuestion, match="expression cannot be read"):
        await shelf.ask(handle, grep="/(/")


async def test_a_regular_expression_without_end_is_stopped(shelf: Shelf):
    slow = ResultStore(shelf.saver, seconds=0.5)
    started = time.monotonic()
    with pytest.raises(BadQuestion, match="longer than"):
        await slow.ask(shelf.put("a" * 5000), {"grep": "/(a+)+b/"})
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "handle",
    ["../../etc/passwd", "/etc/passwd", "", "a" * 5000, "0" * 16, "20260101-000000-" + "0" * 16 + ".txt"],
)
async def test_only_files_saved_by_the_host_are_read(shelf: Shelf, handle: str):
    with pytest.raises(NotSaved):
        await shelf.ask(handle)


async def test_neither_a_symlink_nor_binary_data_is_read(shelf: Shelf, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    shelf.put("x")
    (shelf.saver.folder / ("20260101-000000-" + "1" * 16 + ".txt")).symlink_to(secret)
    with pytest.raises(NotSaved):
        await shelf.ask("1" * 16)
    with pytest.raises(BadQuestion, match="no text"):
        await shelf.ask(shelf.put("\x89PNG", ".png"))


async def test_the_tool_reads_for_a_model_and_reports_invalid_arguments(shelf: Shelf):
    tool = result_tool(shelf.store, lambda: ResultLimits(tokens=1000))
    handle = shelf.put(LINES * 100)

    assert tool.needs_permission is False
    assert tool.hints.read_only
    assert len(str(await tool.run({"handle": handle}))) < 500
    assert await tool.run({"handle": handle, "lines": "2", "grep": None}) == (
        'Line 2 é\n[lines 2-2; continue with lines="3-3"]'
    )
    for wrong in (
        {"handle": "../x"},
        {"handle": handle, "lines": "1", "grep": "x"},
        {"handle": handle, "lines": "x"},
    ):
        with pytest.raises(InvalidArguments, match="read_result"):
            await tool.run(wrong)

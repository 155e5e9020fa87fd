"""Looking into saved results: lines, offsets, words, expressions and paths, all bounded."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.calls.result_tools import result_tool
from dragoman.content.budget import Limits
from dragoman.content.jsonpath import BadPath, found
from dragoman.content.saving import NotSaved, Saver, handle_of
from dragoman.content.store import BadQuestion, Store
from dragoman.errors import InvalidArguments
from tests.cpu_time import CpuTimer

pytestmark = pytest.mark.requirement("CAL-7")

DATA: Any = {
    "items": [{"id": 1, "name": "a"}, {"id": 2, "name": "b", "tags": ["x"]}, {"id": 3, "ok": True}],
    "a b": {"c's": [10, 20, 30]},
    "name": "top",
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [DATA]),
        ("", [DATA]),
        ("$.name", ["top"]),
        ("name", ["top"]),
        ("$['a b']['c\\'s'][1]", [20]),
        ('$["a b"]["c\'s"][-1]', [30]),
        ("$.items[0:2].id", [1, 2]),
        ("$.items[1:][*]", [2, "b", ["x"], 3, True]),
        ("$.items[:1].name", ["a"]),
        ("$.items.*.id", [1, 2, 3]),
        ("$..name", ["top", "a", "b"]),
        ("$..tags[0]", ["x"]),
        ("$.items..items", []),
        ("$.items[*]..id", [1, 2, 3]),
        ("$.items[?(@['tags'][-1]=='x')].id", [2]),
        ("$.items[?(@.id==2)].name", ["b"]),
        ("$.items[?(@.id >= 2)].id", [2, 3]),
        ("$.items[?@.name != 'a'].name", ["b"]),
        ("$.items[?(@.tags)].id", [2]),
        ("$.items[?(@.tags[0]=='x')].id", [2]),
        ("$.items[?(@.ok==true)].id", [3]),
        ("$.items[?(@.ok==1)].id", []),
        ("$.items[?(@.name<3)].id", []),
        ("$.nothing.at.all", []),
        ("$.items[99]", []),
        ("$.name[0]", []),
    ],
)
def test_a_path_finds_what_is_there(path: str, values: list[Any]):
    assert list(found(DATA, path)) == values


@pytest.mark.parametrize(
    "path",
    ["$[", "$.items[", "$.items[a]", "$..", "$.a[?(x)]", "$x y", "$[?(@.a==)]", "$" + ".a" * 60, "$[1:2:3]"],
)
def test_a_path_that_is_not_understood_says_where(path: str):
    with pytest.raises(BadPath, match=r"character|steps"):
        list(found(DATA, path))


@given(st.text(st.sampled_from("$.[]'\"*?@=<>!():abc01 -"), max_size=20))
def test_no_path_raises_anything_else(path: str):
    try:
        list(found(DATA, path))
    except BadPath:
        pass


def test_what_several_ways_lead_to_is_found_once():
    data = {"a": {"a": {"a": 1, "b": 2}}}

    assert list(found(data, "$..a..a")) == [{"a": 1, "b": 2}, 1]
    assert list(found(data, "$..a..b")) == [2]


def test_each_further_search_takes_no_longer_than_the_one_before():
    data: Any = 1
    for _ in range(900):
        data = {"a": data}
    started = CpuTimer()

    assert list(found(data, "$" + "..a" * 49 + "..zz")) == []
    assert started.seconds() < 2


@pytest.mark.parametrize("inner", ["@..id", "@.*", "@[*]", "@[?(@.a)]", "@[0:2]"])
def test_a_filter_looks_at_one_place_of_each_element(inner: str):
    with pytest.raises(BadPath):
        found(DATA, f"$.items[?({inner})]")


def test_the_depth_of_data_is_no_matter():
    deep: Any = {"x": 1}
    for _ in range(50_000):
        deep = [deep]

    assert list(found(deep, "$..x")) == [1]


class Shelf:
    def __init__(self, folder: Path) -> None:
        self.saver = Saver(folder)
        self.store = Store(self.saver)

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
        ("1-2", 'Line 1 é\nLine 2 é\n[lines 1-2; go on with lines="3-4"]'),
        ("100", "Line 100 é\n[lines 100-100; the end of the result]"),
        ("99-", "Line 99 é\nLine 100 é\n[lines 99-100; the end of the result]"),
        ("99-500", "Line 99 é\nLine 100 é\n[lines 99-100; the end of the result]"),
    ],
)
async def test_lines_are_read_by_their_numbers(shelf: Shelf, wanted: str, answer: str):
    assert await shelf.ask(shelf.put(LINES), lines=wanted) == answer


async def test_a_line_too_long_for_an_answer_is_read_on_by_offset(shelf: Shelf):
    text = "é" * 3000 + "\nend"
    handle = shelf.put(text)
    first = await shelf.ask(handle, lines="1-2")
    assert first == "é" * 1000 + "\n[line 1 goes on: go on with offset=2000]"
    read, offset = "", 0
    while True:
        answer, _, note = (await shelf.ask(handle, offset=offset)).rpartition("\n[")
        read += answer
        if note.startswith("the end"):
            break
        offset = int(note.partition("offset=")[2].rstrip("]"))
    assert read == text


@pytest.mark.parametrize(("lines"), ["0", "5-2", "x", "1-2-3", "101", "-5"])
async def test_lines_that_are_not_there_are_told(shelf: Shelf, lines: str):
    with pytest.raises(BadQuestion, match=r"line"):
        await shelf.ask(shelf.put(LINES), lines=lines)


async def test_words_are_found_with_the_numbers_of_their_lines(shelf: Shelf):
    handle = shelf.put(LINES)

    assert await shelf.ask(handle, grep="LINE 77 ") == "77: Line 77 é"
    assert await shelf.ask(handle, grep="(.*)") == "[no line matches]"
    assert (await shelf.ask(handle, 60, grep="line")).endswith("the next is in line 6, at offset=50]")


async def test_a_text_without_line_ends_is_searched_all_the_same(shelf: Shelf):
    handle = shelf.put("x" * 1_048_570 + "needle in the hay" + "y" * 3_000_000 + "Needle" + "z")
    answer = await shelf.ask(handle, grep="needle")

    assert answer.count("1: …") == 2
    assert "needle" in answer
    assert "Needlez" in answer


async def test_an_expression_stands_between_slashes_and_runs_elsewhere(shelf: Shelf):
    handle = shelf.put(LINES)

    assert await shelf.ask(handle, grep="/e 7[78] /") == "77: Line 77 é\n78: Line 78 é"
    with pytest.raises(BadQuestion, match="expression cannot be read"):
        await shelf.ask(handle, grep="/(/")


async def test_an_expression_that_never_ends_is_ended(shelf: Shelf):
    slow = Store(shelf.saver, seconds=0.5)
    started = time.monotonic()
    with pytest.raises(BadQuestion, match="longer than"):
        await slow.ask(shelf.put("a" * 5000), {"grep": "/(a+)+b/"})
    assert time.monotonic() - started < 5


async def test_a_search_through_more_than_a_little_runs_elsewhere(shelf: Shelf, monkeypatch: Any):
    asked: list[str] = []
    in_child = Store._in_child  # pyright: ignore[reportPrivateUsage]

    async def noted(self: Store, file: int, question: Any, limit: int) -> str:
        asked.append(question["jsonpath"])
        return await in_child(self, file, question, limit)

    monkeypatch.setattr(Store, "_in_child", noted)
    handle = shelf.put(json.dumps({"items": [{"id": n} for n in range(1000)]}), ".json")

    assert await shelf.ask(handle, jsonpath="$.items[7].id") == "7"
    assert (await shelf.ask(handle, jsonpath="$..id")).startswith("0\n1\n")
    assert asked == ["$..id"]


@pytest.mark.parametrize("count", [10, 200_000], ids=["here", "in a child"])
async def test_paths_are_looked_for_in_small_and_large_json(shelf: Shelf, count: int):
    handle = shelf.put(json.dumps({"items": [{"id": n} for n in range(count)]}), ".json")

    assert await shelf.ask(handle, jsonpath="$.items[2:4]") == '{"id": 2}\n{"id": 3}'
    assert await shelf.ask(handle, jsonpath="$.nothing") == "[nothing is there]"
    with pytest.raises(BadQuestion, match="character 3"):
        await shelf.ask(handle, jsonpath="$[")
    if count > 10:
        assert len(await shelf.ask(handle, jsonpath="$")) < 1200


@pytest.mark.parametrize("text", ["no json", "[" * 100_000 + "]" * 100_000, "[" + "9" * 5000 + "]"])
async def test_json_that_cannot_be_decoded_is_a_sentence(shelf: Shelf, text: str):
    with pytest.raises(BadQuestion, match="work all the same"):
        await shelf.ask(shelf.put(text, ".json"), jsonpath="$.a")


@pytest.mark.parametrize(
    "handle",
    ["../../etc/passwd", "/etc/passwd", "", "a" * 5000, "0" * 16, "20260101-000000-" + "0" * 16 + ".txt"],
)
async def test_only_what_was_saved_here_is_read(shelf: Shelf, handle: str):
    with pytest.raises(NotSaved):
        await shelf.ask(handle)


async def test_neither_a_planted_link_nor_data_is_read(shelf: Shelf, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    shelf.put("x")
    (shelf.saver.folder / ("20260101-000000-" + "1" * 16 + ".txt")).symlink_to(secret)
    with pytest.raises(NotSaved):
        await shelf.ask("1" * 16)
    with pytest.raises(BadQuestion, match="no text"):
        await shelf.ask(shelf.put("\x89PNG", ".png"))


async def test_a_model_asks_with_the_tool_and_is_told_what_is_wrong(shelf: Shelf):
    tool = result_tool(shelf.store, lambda: Limits(tokens=1000))
    handle = shelf.put(LINES * 100)

    assert tool.needs_permission is False
    assert tool.hints.read_only
    assert len(str(await tool.run({"handle": handle}))) < 500
    assert await tool.run({"handle": handle, "lines": "2", "grep": None}) == (
        'Line 2 é\n[lines 2-2; go on with lines="3-3"]'
    )
    for wrong in (
        {"handle": "../x"},
        {"handle": handle, "lines": "1", "grep": "x"},
        {"handle": handle, "lines": "x"},
    ):
        with pytest.raises(InvalidArguments, match="read_result"):
            await tool.run(wrong)

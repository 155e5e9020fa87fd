"""Tables for terminals: nothing is cut that has to be typed, and columns stand in line."""

import re

import pytest
from click import unstyle
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.render.columns import (
    TableRow,
    broken_lines,
    cells,
    echo_wrapped,
    fitted,
    padded,
    table,
    wrapped,
)

STYLE = re.compile("\x1b\\[\\d+m")
WORDS = st.text(st.sampled_from("ab 漢e\u0301ก\u0e31字é😀-"), max_size=60)


def shown(rows: list[TableRow], columns: int | None, **options: bool) -> list[str]:
    return [STYLE.sub("", line) for lines in table(rows, columns, **options) for line in lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("abc", 3),
        ("漢字", 4),
        ("ｗ", 2),
        ("é", 1),
        ("e\u0301", 1),
        ("a" + "\u0301" * 4, 1),
        ("ก\u0e31", 1),
        ("😀", 2),
        ("✓️", 1),
        ("\u1112\u1161\u11ab", 2),
    ],
)
def test_how_many_columns_a_text_takes(text: str, expected: int):
    assert cells(text) == expected


@pytest.mark.parametrize(
    ("text", "room", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("two words", 5, "two…"),
        ("漢字漢字", 5, "漢字…"),
        ("漢字漢字", 4, "漢…"),
        ("ae\u0301iou", 3, "ae\u0301…"),
        ("anything", None, "anything"),
    ],
)
def test_a_text_is_cut_between_whole_characters(text: str, room: int | None, expected: str):
    assert fitted(text, room) == expected


@given(WORDS, st.integers(1, 40))
def test_a_cut_text_fits_and_a_text_that_fits_is_not_cut(text: str, room: int):
    cut = fitted(text, room)
    assert cells(cut) <= room
    assert cut == text or (cells(text) > room and cut.endswith("…"))


@given(WORDS, st.integers(1, 40))
def test_padding_adds_only_blanks(text: str, room: int):
    assert padded(text, room).removeprefix(text).strip() == ""
    assert cells(padded(text, room)) == max(room, cells(text))


@given(WORDS, st.integers(10, 40))
def test_wrapping_loses_no_word_and_keeps_lines_within_the_width(text: str, room: int):
    lines = wrapped(text, room)
    assert " ".join(lines).split() == text.split()
    longest = max(map(cells, text.split()), default=0)
    assert all(cells(line) <= max(room, longest + len(text) - len(text.lstrip(" "))) for line in lines)


def test_later_lines_begin_where_the_first_does():
    assert wrapped("    code that is long", 14) == ["    code that", "    is long"]


ROWS = [
    TableRow("one", "reads", "Reads one."),
    TableRow("漢字", "", "Two wide signs."),
    TableRow("three", "writes", ""),
]


def test_columns_are_aligned_also_after_wide_characters():
    assert shown(ROWS, 80) == [
        "  one    reads   Reads one.",
        "  漢字           Two wide signs.",
        "  three  writes",
    ]


def test_descriptions_are_cut_on_a_terminal_and_complete_elsewhere():
    rows = [TableRow("name", about="words " * 30)]
    (line,) = shown(rows, 60)
    assert cells(line) <= 60
    assert re.fullmatch("  name  (words )+w?o?r?d?s?…", line)
    assert shown(rows, None)[0].count("words") == 30


def test_complete_descriptions_are_wrapped_beside_the_name():
    assert shown([TableRow("name", "int", "one two three four five six")], 35, full=True) == [
        "  name  int  one two three four",
        "             five six",
    ]


def test_a_long_name_is_never_cut_and_its_description_is_below():
    rows = [
        *(TableRow(f"name{number}", about="short") for number in range(4)),
        TableRow("x" * 70, "fact", "about it"),
    ]
    *_, name, about = shown(rows, 60)
    assert name == "  " + "x" * 70
    assert about == "    fact · about it"
    assert shown(rows, 60)[0] == "  name0        short"


def test_with_many_long_names_each_row_has_two_lines():
    rows = [TableRow("short", about="one"), TableRow("x" * 50, about="two")]
    assert shown(rows, 60) == ["  short", "    one", "  " + "x" * 50, "    two"]


def test_a_row_with_only_a_name_has_no_trailing_blanks():
    assert shown([TableRow("name"), TableRow("longer")], 60) == ["  name", "  longer"]
    assert shown([], 60) == []


ANY_ROWS = st.lists(st.tuples(WORDS, WORDS, WORDS, st.sampled_from(["", "●"])), max_size=6)


@given(ANY_ROWS, st.integers(40, 120))
def test_every_name_is_complete_in_the_table(rows: list[tuple[str, str, str, str]], columns: int):
    text = "\n".join(shown([TableRow(*row) for row in rows], columns))
    assert all(typed.rstrip() in text for typed, *_ in rows)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", [""]),
        ("one two", ["one two"]),
        ("one two three", ["one two ", "three"]),
        ("a verylongword", ["a verylong", "word"]),
        ("x" * 25, ["x" * 10, "x" * 10, "x" * 5]),
        (" " * 12, [" " * 10, "  "]),
        ("\u5b57" * 6, ["\u5b57" * 5, "\u5b57"]),
        ("\u0301" * 12, ["\u0301" * 10, "\u0301" * 2]),
        ("a" + "\u0e31" * 12, ["a" + "\u0e31" * 9, "\u0e31" * 3]),
    ],
)
def test_every_character_is_kept_and_lines_are_broken_after_blanks(text: str, pieces: list[str]):
    assert broken_lines(text, 10) == pieces


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.integers(2, 40))
def test_no_piece_exceeds_the_width_and_nothing_is_lost(text: str, room: int):
    pieces = broken_lines(text, room)
    assert "".join(pieces) == text
    assert all(cells(piece) <= room for piece in pieces)


def test_sentences_are_broken_between_words_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "21")
    echo_wrapped("the file cannot be read\nline two", label="  ! ", colour="yellow", err=True)
    assert capsys.readouterr().err == "  ! the file cannot be read\n  line two\n"

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    echo_wrapped("the file cannot be read\nline two", label="  ! ", err=True)
    assert unstyle(capsys.readouterr().err) == "  ! the file cannot\n  be read\n  line two\n"

"""The shape of JSON in one line, and the words about what was spilled."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.content import spill as module
from dragoman.content.budget import ResultLimits
from dragoman.content.saving import Saver
from dragoman.content.shape import LENGTH_LIMIT, shape_of
from dragoman.content.spill import note_of, spill

pytestmark = pytest.mark.requirement("CAL-7")

ITEMS = {"items": [{"id": n, "na me": "x", "tags": ["a"]} for n in range(70)], "next": None, "total": 1.5}


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([], "[]"),
        ({}, "{}"),
        ([1, 2], "[2 × integer]"),
        (
            ITEMS,
            "{items: [70 × {id: integer, 'na me': string, tags: [1 × string]}], next: null, total: number}",
        ),
        ({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, "{a: {b: {c: {d: {e: {…}}}}}}"),
        ([True, "x"], "[2 × boolean]"),
    ],
    ids=str,
)
def test_keys_types_lengths_and_nesting_are_described(value: Any, shape: str):
    for indent in (None, 2):
        assert shape_of(memoryview(json.dumps(value, indent=indent).encode())) == shape


def test_truncated_or_very_long_json_is_described_as_far_as_it_was_read():
    cut = json.dumps(ITEMS).encode()[:1000]
    assert shape_of(memoryview(cut)).startswith("{items: [at least ")
    wide = json.dumps({f"key{n}" * 20: n for n in range(500)}).encode()
    assert len(shape_of(memoryview(wide))) < LENGTH_LIMIT + 50
    deep = b"[" * 500_000
    assert shape_of(memoryview(deep)).startswith("[at least 1 ×")


@pytest.fixture
def saver(tmp_path: Path) -> Saver:
    return Saver(tmp_path / "saved")


def spilled(saver: Saver, text: str, **options: Any) -> module.Spilled:
    data = text.encode()
    pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    return spill(pieces, len(data), saver, ResultLimits(**options), kind="text")


def test_a_saved_text_is_complete_in_its_file_and_shown_with_its_ends(saver: Saver):
    text = "".join(f"line {number} é\n" for number in range(1, 5001))
    found = spilled(saver, text)
    note = note_of(found)

    assert found.saved.path.read_text() == text
    assert (found.saved.kind, found.line_count, found.characters) == ("text", 5000, len(text))
    assert text.startswith(found.head)
    assert text.endswith(found.tail)
    next_line = found.head.count("\n") + 2
    assert f'read_result(handle="{found.saved.handle}", lines="{next_line}-{next_line + 199}")' in note
    assert str(found.saved.path) in note
    assert f"{len(text) - len(found.head) - len(found.tail)} characters are left out" in note


def test_json_is_shown_with_its_shape_and_how_to_continue_reading(saver: Saver):
    found = spilled(saver, json.dumps(ITEMS), head_characters=100, tail_characters=100)

    assert found.saved.path.suffix == ".json"
    assert found.saved.kind == "json"
    assert "Its shape: {items: [70 × {id: integer" in note_of(found)
    assert f'To read on: read_result(handle="{found.saved.handle}", grep="some words") or' in note_of(found)


BEGINNINGS = ["[2026-01-01] began [x]", "{not json}", "[INFO] x [WARN]"]


@pytest.mark.parametrize(
    ("text", "sample_bytes"),
    [
        *((text, 13) for text in BEGINNINGS),
        *((text, 1000) for text in BEGINNINGS),
        ('{"a": 1} {"b": 2}', 1000),
    ],
)
def test_a_text_that_only_begins_like_json_is_text(
    saver: Saver, text: str, sample_bytes: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "SAMPLE_BYTES", sample_bytes)
    assert spilled(saver, text).saved.kind == "text"


def test_json_longer_than_the_sample_is_recognized_by_its_first_value(
    saver: Saver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "SAMPLE_BYTES", 500)

    assert "at least" in spilled(saver, json.dumps(ITEMS)).shape


def test_the_tail_never_repeats_the_head(saver: Saver):
    found = spilled(saver, "abcdefghij", head_characters=8, tail_characters=8)

    assert (found.head, found.tail) == ("abcdefgh", "ij")

"""Markdown as styled text."""

import time

import pytest

from dragoman.tui.markdown_text import PIECE_CHARACTERS, markdown_text, pieces, split_point


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("plain words", "plain words"),
        ("one\n\ntwo", "one\n\ntwo"),
        ("one\ntwo", "one\ntwo"),
        ("# Title\ntext", "Title\n\ntext"),
        ("**bold** *it* `code` ~~gone~~", "bold it code gone"),
        ("- a\n- b\n  - c\n\nend", "• a\n• b\n  • c\n\nend"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("- a\n\n  more", "• a\n  more"),
        ("> quoted", "▌ quoted"),
        ("```python\nx = 1\n```", "```python\nx = 1\n```"),
        ("    indented code", "indented code"),
        ("| a | b |\n|---|---|\n| long one | 2 |", "a         b\n────────  ─\nlong one  2"),
        ("[docs](https://example.com)", "docs (https://example.com)"),
        ("<https://example.com>", "https://example.com"),
        ("![alt](x.png)", "[image: alt]"),
        ("a\n\n---\n\nb", "a\n\n───\n\nb"),
        ("<b>html</b>", "<b>html</b>"),
        ("", ""),
        ("[bold red]no markup[/]", "[bold red]no markup[/]"),
    ],
)
def test_markdown_is_shown_as_text(source: str, shown: str):
    assert [line.rstrip() for line in markdown_text(source).plain.split("\n")] == shown.split("\n")


def test_escape_sequences_are_made_visible():
    assert "\x1b" not in markdown_text("red \x1b[31m text").plain


def test_a_long_text_is_split_into_pieces_without_loss():
    text = "".join(f"## Part {number}\n\n{'words ' * 100}\n\n" for number in range(50))
    found = list(pieces(text))
    assert "".join(found) == text
    assert len(found) > 5
    assert max(map(len, found)) <= PIECE_CHARACTERS
    assert list(pieces("x" * 50_000)) == ["x" * 50_000]


def test_a_text_that_is_slow_to_parse_is_shown_as_plain_text():
    hostile = "![" * 50_000
    start = time.perf_counter()
    assert markdown_text(hostile).plain == hostile
    assert time.perf_counter() - start < 5


def test_emphasis_is_a_style_and_not_only_a_colour():
    spans = markdown_text("# Title\n\n**bold**").spans
    assert {str(span.style) for span in spans} >= {"bold underline", "bold"}


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("one\n\ntwo", "two"),
        ("one\n\ntwo\n\nthree", "three"),
        ("one\ntwo", None),
        ("```\na\n\nb", None),
        ("```\na\n\nb\n```\n\nend", "end"),
        ("- a\n\n- b", None),
        ("one\n\n  continued", None),
    ],
)
def test_a_growing_text_is_split_only_where_the_parts_render_the_same(text: str, rest: str | None):
    place = split_point(text)
    assert (text[place:] if place else None) == rest

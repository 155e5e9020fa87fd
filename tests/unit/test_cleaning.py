"""Text from servers: what is harmful becomes visible, what is readable stays."""

import time
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cleaning import (
    CUT_NOTE_LENGTH,
    LAST_LINES,
    cut,
    for_model,
    is_safe,
    last_lines,
    one_line,
    visible,
)
from tests.cpu_time import CpuTimer, shortest


@pytest.mark.parametrize(
    ("attack", "shown"),
    [
        pytest.param("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m", id="ANSI colour"),
        pytest.param("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H", id="ANSI clears the screen"),
        pytest.param("\x1b]0;title\x07", r"\x1b]0;title\x07", id="OSC sets the title"),
        pytest.param(
            "\x1b]52;c;ZXZpbA==\x1b\\", "\\x1b]52;c;ZXZpbA==\\x1b\\", id="OSC 52 writes the clipboard"
        ),
        pytest.param("\x1b]8;;http://evil\x1b\\x", "\\x1b]8;;http://evil\\x1b\\x", id="OSC 8 hides a link"),
        pytest.param("\x1bP...\x1b\\", "\\x1bP...\\x1b\\", id="DCS"),
        pytest.param("\x9b31m", r"\x9b31m", id="CSI as a C1 character"),
        pytest.param("\x9d0;t\x9c", r"\x9d0;t\x9c", id="OSC as a C1 character"),
        pytest.param("\x85", r"\x85", id="C1 next line"),
        pytest.param("ok\rrm -rf", r"ok\x0drm -rf", id="a carriage return overwrites the line"),
        pytest.param("rm -rf\x08\x08", r"rm -rf\x08\x08", id="backspace"),
        pytest.param("\x00\x07\x0b\x0c\x7f", r"\x00\x07\x0b\x0c\x7f", id="other control characters"),
        pytest.param("\u202etxt.exe", r"\u202etxt.exe", id="bidi override"),
        pytest.param("\u202a\u202b\u202c\u202d", r"\u202a\u202b\u202c\u202d", id="bidi embeddings"),
        pytest.param("\u2066\u2067\u2068\u2069", r"\u2066\u2067\u2068\u2069", id="bidi isolates"),
        pytest.param("\u200e\u200f\u061c", r"\u200e\u200f\u061c", id="bidi marks"),
        pytest.param("pay\u200bpal", r"pay\u200bpal", id="zero-width space"),
        pytest.param("\u200c\u200d\u2060\ufeff", r"\u200c\u200d\u2060\ufeff", id="joiners and BOM"),
        pytest.param("\xad", r"\xad", id="soft hyphen"),
        pytest.param("\u2028\u2029", r"\u2028\u2029", id="line and paragraph separators"),
        pytest.param("\u3164\u115f\u1160\uffa0", r"\u3164\u115f\u1160\uffa0", id="Hangul fillers"),
        pytest.param("\u2800", r"\u2800", id="blank braille"),
        pytest.param("\U000e0041\U000e007f", r"\U000e0041\U000e007f", id="tag characters"),
        pytest.param("\U000e0100", r"\U000e0100", id="variation selectors that smuggle bytes"),
        pytest.param("\ufe00", r"\ufe00", id="the first variation selectors too"),
        pytest.param("\ufff9\ufffb", r"\ufff9\ufffb", id="interlinear annotation"),
        pytest.param("\ud800", r"\ud800", id="half a surrogate pair"),
    ],
)
def test_an_attack_becomes_visible(attack: str, shown: str):
    assert visible(attack) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain ASCII ~!@#$%^&*()",
        "two\nlines\tand a tab",
        "Grüße, Ærøskøbing, naïve, e\u0301",
        "你好世界 こんにちは 안녕하세요",
        "🙂🚀👍🏽🇩🇪❤\ufe0f1\ufe0f\u20e3",
        "שלום مرحبا",
        "नमस्ते ไทย",
        "∑ ≤ √ — … “quotes” ½ €",
        "a no-break\xa0space and an ideographic\u3000one",
        r"a backslash \x1b as text",
        "",
    ],
)
def test_printable_text_is_unchanged(text: str):
    assert visible(text) == text


@given(st.text(st.characters()))
def test_no_control_character_except_line_feed_and_tab_remains(text: str):
    shown = visible(text)

    assert all(
        character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs") for character in shown
    )


# Default_Ignorable_Code_Point of Unicode 16: drawn as nothing at all. U+FE0F, which makes an emoji of a
# character, is the one that ordinary text needs.
INVISIBLE = [
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0E),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
    (0x13430, 0x1345F),
    (0x16FE4, 0x16FE4),
    (0x1D159, 0x1D159),
    (0xFDD0, 0xFDEF),
    *((plane * 0x10000 + 0xFFFE, plane * 0x10000 + 0xFFFF) for plane in range(17)),
    (0xE000, 0xF8FF),
    (0xF0000, 0xFFFFD),
    (0x100000, 0x10FFFD),
]


@pytest.mark.parametrize(("first", "last"), INVISIBLE, ids=lambda code: f"U+{code:04X}")
def test_no_invisible_character_remains(first: int, last: int):
    left = [f"U+{code:04X}" for code in range(first, last + 1) if visible(chr(code)) == chr(code)]

    assert left == []


@pytest.mark.parametrize("base", ["a", "ä", " ", "\n", "字", "", "\u0301", "-", "\ufe0f", "1", "#"])
def test_an_emoji_selector_is_kept_only_after_a_symbol(base: str):
    """Behind letters it is invisible, and each one would carry a bit."""
    assert for_model(f"{base}\ufe0fb") == base.replace("\ufe0f", "") + "b"
    assert visible(f"{base}\ufe0fb") == base.replace("\ufe0f", r"\ufe0f") + r"\ufe0fb"


@pytest.mark.parametrize(
    "text", ["❤\ufe0f", "1\ufe0f\u20e3", "#\ufe0f\u20e3", "↔\ufe0f", "🏳\ufe0f", "©\ufe0f", "‼\ufe0f"]
)
def test_an_emoji_keeps_its_selector(text: str):
    assert for_model(text) == visible(text) == text


@given(st.text())
def test_cleaning_is_idempotent(text: str):
    assert visible(visible(text)) == visible(text)


@given(st.text(st.characters(exclude_categories=["Mn", "Me", "Cf", "Sk", "Cs"])), st.integers(0, 20))
def test_a_cut_states_how_much_is_missing(text: str, limit: int):
    shown = visible(text, limit)

    if len(text) <= limit:
        assert shown == visible(text)
    else:
        assert shown == f"{visible(text[:limit])}… [{len(text) - limit} more characters]"


@given(st.text())
def test_one_line_is_one_line(text: str):
    shown = one_line(text)

    assert len(shown.splitlines()) <= 1
    assert "\t" not in shown


def test_one_line_shows_its_line_breaks():
    assert one_line("a\nb\tc\r\x1b") == r"a\nb\tc\x0d\x1b"


def test_very_many_escapes_are_cleaned_quickly():
    started = CpuTimer()
    visible("\x1b" * 200_000)

    assert started.seconds() < 2


# --- for models ---


@pytest.mark.requirement("CAT-2")
@pytest.mark.parametrize(
    ("said", "read"),
    [
        pytest.param("\x1b[31mred\x1b[0m", "red", id="ANSI colour"),
        pytest.param("\x1b[38;5;1mred\x1b[K", "red", id="ANSI colour with parameters"),
        pytest.param("\x9b31mred", "red", id="CSI as a C1 character"),
        pytest.param("\x1b]0;title\x07text", "text", id="OSC"),
        pytest.param("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link", id="a hidden link"),
        pytest.param("\x1b]never ended", "]never ended", id="a sequence without an end loses its escape"),
        pytest.param("\x1bP1$r\x1b\\x", "x", id="DCS"),
        pytest.param("\x1b(0x", "x", id="a character set"),
        pytest.param("one\r\ntwo\rthree\u2028four", "one\ntwo\nthree\nfour", id="line ends"),
        pytest.param("pay\u200bpal\u202e", "paypal", id="zero width and bidi"),
        pytest.param("hi\U000e0069\U000e0067", "hi", id="tags"),
        pytest.param("a\tb\nc", "a\tb\nc", id="tab and newline stay"),
        pytest.param("e" + "\u0301" * 50, "e" + "\u0301" * 4, id="a tower of marks"),
        pytest.param("Grüße 你好 🙂❤\ufe0f", "Grüße 你好 🙂❤\ufe0f", id="what is printable stays"),
    ],
)
def test_unsafe_characters_are_removed_from_texts_for_models(said: str, read: str):
    assert for_model(said) == read


@pytest.mark.requirement("CAT-2")
@given(st.text(st.characters()) | st.text("ab\x1b[]0;m\x07\x9b\x9d\\\u0301\u200b"))
def test_texts_for_models_are_safe_and_cleaning_is_idempotent(text: str):
    read = for_model(text)

    assert is_safe(read)
    assert for_model(read) == read
    assert is_safe(text) or read != text


@pytest.mark.requirement("CAT-3")
@given(st.text(st.characters() | st.sampled_from("e\u0301👩\u200d👧🏽"), max_size=200), st.integers(40, 120))
def test_a_cut_states_how_much_is_missing_and_is_between_characters(text: str, limit: int):
    shown = cut(text, limit)
    kept, ellipsis, words = shown.partition("… [")
    if len(text) <= limit:
        assert shown == text
        return
    assert ellipsis
    missing = int(words.split()[0])
    assert len(kept) + missing == len(text)
    assert text.startswith(kept)
    assert limit - 8 <= len(kept) <= limit
    assert len(for_model(text, limit)) <= limit
    following = text[len(kept)]
    assert len(kept) == limit - 8 or not unicodedata.combining(following) or following not in "\u0301"


@pytest.mark.requirement("CAT-2")
@pytest.mark.parametrize(
    "hostile",
    ["\x1b[", "\x1b]", "\x9d", "a\x9d", "\x1b[0", "\u0301", "\x1bP\x1b", "\u202e", "\r", "\u200d"],
    ids=ascii,
)
@pytest.mark.parametrize("clean", [for_model, visible])
def test_cleaning_takes_linear_time(hostile: str, clean: Any):
    def seconds(count: int) -> float:
        text = hostile * count
        began = time.process_time()
        clean(text)
        return time.process_time() - began

    bound = 100 * max(shortest(lambda: seconds(4_000)), 0.0001)
    assert shortest(lambda: seconds(40_000), below=bound) < bound


def test_the_note_about_a_cut_fits_the_limit():
    assert len(cut("x" * 10**6, 0) + "000") <= CUT_NOTE_LENGTH


@pytest.mark.requirement("CAT-2")
@pytest.mark.parametrize(
    "mark",
    "\u0301\u0489\u05b0\u0610\u0730\u0941\u0e49\u0ebc\u0f71\u1cd0\u20dd\u302a\u3099\ua8e0\U0001d165\U0001e8d0",
    ids=ascii,
)
def test_stacked_combining_characters_are_limited(mark: str):
    tower = "a" + mark * 10_000 + "b"

    assert not is_safe(tower)
    assert for_model(tower) == "a" + mark * 4 + "b"
    assert visible(tower) == "a" + mark * 4 + "[9996 more marks]b"


# --- a program's last words ---

NPM_404 = """npm warn deprecated inflight@1.0.6: do not use
npm error code E404
npm error 404 Not Found - GET https://registry.example/@x%2fserver - Not found
npm error 404
npm error 404  '@x/server@*' is not in this registry.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git folder.
npm error A complete log of this run can be found in: /home/x/.npm/_logs/debug-0.log
"""
NODE = """/srv/index.js:3
throw new Error("API_KEY is not set");
^

Error: API_KEY is not set
    at Object.<anonymous> (/srv/index.js:3:7)
    at Module._compile (node:internal/modules/cjs/loader:1554:14)

Node.js v20.19.0
"""


def test_the_line_of_npm_errors_that_names_the_package_is_kept():
    assert last_lines(NPM_404) == [
        "npm error code E404",
        "npm error 404 Not Found - GET https://registry.example/@x%2fserver - Not found",
        "npm error 404  '@x/server@*' is not in this registry.",
    ]


def test_stack_frames_are_left_out():
    assert last_lines(NODE)[-1] == "Error: API_KEY is not set"


def test_the_last_of_many_lines_are_kept():
    assert last_lines("\n".join(map(str, range(20)))) == [str(n) for n in range(20 - LAST_LINES, 20)]
    assert last_lines("\n\n") == ["", ""]
    assert last_lines("") == []

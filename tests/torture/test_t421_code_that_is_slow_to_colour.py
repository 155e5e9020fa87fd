"""T421: code in an answer whose lexer needs seconds does not block the screen."""

import pytest
from textual.content import Span

from dragoman.tui.markdown_text import COLOURED_CHARACTERS, coloured, markdown_text
from tests.cpu_time import CpuTimer, shortest

pytestmark = pytest.mark.requirement("AGT-1")
LIMIT_SECONDS = 0.4
"""Of processor time; without a bound the quickest of these takes 1.5 s."""


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("csharp", "a\n"),
        ("c", "\t\n"),
        ("java", "a "),
        ("maple", "'"),
        ("html+ng2", "("),
        ("matlab", "\t\n"),
    ],
)
def test_t421_highlighting_takes_a_bounded_time(language: str, code: str):
    text = f"```{language}\n{code * 8000}"[:7990]
    markdown_text(f"```{language}\n")  # loads the lexer

    def measured() -> float:
        timer = CpuTimer()
        markdown_text(text)
        return timer.seconds()

    assert shortest(measured, below=LIMIT_SECONDS) < LIMIT_SECONDS


def test_t421_long_code_is_shown_in_full_with_its_beginning_highlighted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.tui.markdown_text.COLOURED_SECONDS", 60.0)
    code = "x = 1\n" * 1000
    shown = coloured(code, "python")
    assert shown.plain == code.rstrip("\n")
    ends = [span.end for span in shown.spans if span.style != "$text"]
    assert COLOURED_CHARACTERS - 6 < max(ends) <= COLOURED_CHARACTERS


def test_t421_highlighting_is_at_the_right_position_after_a_tab():
    shown = coloured("\tx = 1", "python")
    assert Span(5, 6, "$text-warning") in shown.spans

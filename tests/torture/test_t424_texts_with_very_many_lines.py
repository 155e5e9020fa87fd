"""T424: answers, results and arguments with very many lines: each widget of the screen stays small."""

import pytest

from dragoman.tui.blocks import AnswerBlock, NoteBlock, PromptBlock, ToolBlock
from dragoman.tui.conversation import block_text
from dragoman.tui.markdown_text import LINE_LIMIT, PARSE_LIMIT, pieces
from dragoman.tui.tool_card import OPEN_ARGUMENTS, OPEN_LINES, card_text

pytestmark = pytest.mark.requirement("AGT-1")
MANY = 50_000


def lines_of(block: ToolBlock) -> list[str]:
    return card_text(block).plain.split("\n")


@pytest.mark.parametrize("text", ["\n" * MANY, "- a\n" * MANY, "```c\n" + "a;\n" * MANY])
def test_t424_a_long_answer_is_split_into_parts_that_are_parsed_quickly(text: str):
    parts = list(pieces(text))
    assert max(map(len, parts)) <= PARSE_LIMIT
    assert len(parts) <= 2 * len(text) / PARSE_LIMIT + 2


def test_t424_no_line_of_long_code_is_lost_and_every_part_is_shown_as_code():
    code = [f"line_{number};" for number in range(5000)]
    parts = list(pieces("\n".join(["```c", *code, "```"])))
    assert all(part.startswith("```c\n") for part in parts)
    assert [line for part in parts for line in part.split("\n") if line.startswith("line_")] == code


@pytest.mark.parametrize("make", [PromptBlock, NoteBlock, AnswerBlock])
def test_t424_a_widget_has_a_bounded_number_of_lines(make: type[PromptBlock | NoteBlock | AnswerBlock]):
    lines = block_text(make("a\n" * MANY)).plain.split("\n")
    assert len(lines) == LINE_LIMIT + 1
    assert lines[-1] == f"… {MANY + 1 - LINE_LIMIT} more lines"


def test_t424_an_open_card_has_a_bounded_number_of_lines():
    card = ToolBlock("c", "mcp__desk__lines", {}, state="done", result="a\n" * (MANY - 1), is_open=True)
    lines = lines_of(card)
    assert len(lines) == OPEN_LINES + 2
    assert lines[-1] == f"    … {MANY} lines, 100.0 kB: the first {OPEN_LINES} are shown; Enter closes it"


@pytest.mark.parametrize("value", ["a", "a\n" * MANY])
def test_t424_the_arguments_of_an_open_card_are_bounded(value: str):
    arguments = {f"name {number}": value for number in range(MANY // 10)}
    lines = lines_of(ToolBlock("c", "mcp__desk__lines", arguments, is_open=True))
    assert len(lines) <= 2 + OPEN_LINES + 2 * OPEN_ARGUMENTS
    assert lines[-1] == f"  … {MANY // 10 - OPEN_ARGUMENTS} more arguments"

"""T619: a title or folder of invisible characters, each shown as a long escape, does not move the arguments
of a call and the possible answers out of view."""

import pytest
from msgspec import structs

from dragoman.cleaning import CUT_NOTE_LENGTH, one_line
from dragoman.interaction import PermissionQuestion
from tests.torture.test_t500_long_messages_before_a_question import screen_of
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]
pytestmark = [pytest.mark.slow, pytest.mark.requirement("PRM-5")]

QUESTION = PermissionQuestion(
    server="box",
    tool="mcp__box__put",
    title="Put",
    arguments={"path": "/etc/passwd"},
    rule="mcp__box__put@00",
    server_rule="mcp__box",
)
TAG, BLANK = "\U000e0041", "\u200b"
QUESTIONS = {
    "title": {"title": TAG * 100},
    "marks": {"title": "a" + "\u0301" * 99},
    "folder": {"folder": "/" + BLANK * 250},
    "both": {"title": BLANK * 100, "folder": "/" + BLANK * 150},
    "server": {"server": BLANK * 80, "server_rule": f"mcp__{BLANK * 80}"},
}


@pytest.mark.parametrize("fields", QUESTIONS.values(), ids=QUESTIONS.keys())
async def test_t619_the_call_and_the_possible_answers_are_visible_on_the_screen(
    desk: Desk, fields: dict[str, str]
):
    shown = await screen_of(desk, (80, 24), "allow", structs.replace(QUESTION, **fields))
    assert 'path: "/etc/passwd"' in shown
    assert "y  Yes, this once" in shown
    assert "n  No" in shown


@pytest.mark.parametrize("character", ["\n", "\x1b", BLANK, TAG, "\u0301"])
def test_t619_the_escapes_of_a_text_are_not_longer_than_its_limit(character: str):
    for count in (50, 100, 1000):
        assert len(one_line(character * count, 100)) <= 100 + CUT_NOTE_LENGTH


def test_t619_the_number_of_characters_left_out_is_shown():
    assert one_line(TAG * 50, 30) == "\\U000e0041\\U000e0041\\U000e0041… [47 more characters]"
    assert one_line("a\nb" * 40, 30) == "a\\nb" * 10 + "… [90 more characters]", "hardly longer"
    assert one_line("a" * 31, 30) == "a" * 30 + "… [1 more characters]"
    assert one_line("a\nb", 3) == "a\\nb"

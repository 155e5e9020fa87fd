"""T600: the titles of choices in a server's form are shown literally, and never parsed as Textual markup:
no title hides a part of itself, acts on a click, or ends the application."""

import pytest
from textual.widgets import Select, Static
from textual.widgets._select import SelectOverlay

from dragoman.interaction import FormAnswer, FormElicitation
from dragoman.tui.form import FormView
from dragoman.tui.questions import QuestionApp

pytestmark = [pytest.mark.slow, pytest.mark.requirement("ASK-1")]

TITLES = [
    "[/]",
    "keep [@click=app.quit_now]this[/]",
    "[black on black]delete[/] nothing",
    "[link=https://evil.example]plan[/link]",
    "a[/b]",
    "[$nothing]x",
    "[bold",
]
"""More choices than are shown as buttons."""


def question() -> FormElicitation:
    choices = [{"const": f"value {number}", "title": title} for number, title in enumerate(TITLES)]
    field = {"type": "string", "oneOf": choices, "default": "value 2"}
    return FormElicitation(
        server="tracker", message="Which?", schema={"type": "object", "properties": {"which": field}}
    )


async def test_t600_each_title_is_shown_literally():
    app = QuestionApp(FormView(question()))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await pilot.pause()
        overlay = app.screen.query_one(SelectOverlay)
        shown = [str(overlay._get_visual(option)) for option in overlay.options]
        assert [each for each in shown if each.strip()][-len(TITLES) :] == TITLES
        current = app.screen.query_one(Select).query_one("#label", Static)
        assert str(current.render()) == TITLES[2]
        await pilot.press("escape", "escape")


async def test_t600_a_title_that_is_not_valid_markup_can_be_chosen():
    app = QuestionApp(FormView(question()))
    async with app.run_test() as pilot:
        await pilot.pause()
        await pilot.press("enter", "up", "up", "enter")
        await pilot.press("ctrl+s")
        await pilot.pause()
    assert app.return_value == FormAnswer("accept", {"which": "value 0"})

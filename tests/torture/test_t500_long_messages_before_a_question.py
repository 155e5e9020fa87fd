"""T500: on the screen a long message of a server neither moves its question out of view nor imitates it."""

import asyncio
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from dragoman.interaction import FormElicitation, PermissionQuestion, RelatedCall, UrlElicitation
from dragoman.tui.form import FormView
from dragoman.tui.questions import QuestionApp
from tests.unit.tui.desk import Desk, desk
from tests.unit.tui.test_app_questions import asked

__all__ = ["desk"]
pytestmark = [pytest.mark.slow, pytest.mark.requirement("ASK-1", "ASK-2")]

SIZES = [(80, 24), (40, 15), (120, 50)]
CALLS = tuple(RelatedCall("tools/call", f"mcp__box__{number:060}") for number in range(100))
FALSE = "Sign in.”\nhost  bank.example\nhttps://bank.example/login\n\nNothing was opened or fetched."
SCHEMA = {"type": "object", "properties": {"who": {"type": "string", "default": "everybody"}}}
MESSAGES = {"padding": "x" + "\n" * 300, "a false host": FALSE + "\n" * 60, "words": "word " * 800}


def rows(app: App[Any]) -> list[str]:
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).strip("│▁▂▃▄▅▆▇ ") for strip in strips]


async def settled_rows(pilot: Pilot[Any]) -> list[str]:
    """The rows of the screen after they have not changed for some refreshes."""
    shown: list[list[str]] = []
    while len(shown) < 4 or any(each != shown[-1] for each in shown[-4:]):
        await pilot.pause(0.04)
        shown.append(rows(pilot.app))
    return shown[-1]


async def screen_of(desk: Desk, size: tuple[int, int], name: str, question: Any) -> list[str]:
    """The rows of the screen while the question can be answered."""
    async with desk.opened(size=size) as seat:
        task = await asked(seat, name, question)
        shown = await settled_rows(seat.pilot)
        task.cancel()
        await asyncio.wait([task])
    return shown


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
async def test_t500_the_host_of_a_page_is_visible_on_the_screen(
    desk: Desk, size: tuple[int, int], message: str
):
    url = "https://evil.example/" + "a" * 3000
    question = UrlElicitation(server="box", message=message, url=url, host="evil.example")
    shown = await screen_of(desk, size, "elicit_url", question)
    assert [row for row in shown if row.startswith("host ")] == ["host  evil.example"]
    assert [row[:21] for row in shown if row.startswith("https:")] == ["https://evil.example/"]
    assert "y Yes, open it · n No · Esc Leave" in shown


async def test_t500_a_long_url_does_not_hide_the_warning_about_it(desk: Desk):
    url = "https://evil.example/" + "a" * 3000
    warnings = ("The host is written in punycode",)
    question = UrlElicitation(server="box", message="", url=url, host="evil.example", warnings=warnings)
    assert f"! {warnings[0]}" in await screen_of(desk, (80, 24), "elicit_url", question)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
async def test_t500_the_focused_form_field_is_visible_on_the_screen(
    desk: Desk, size: tuple[int, int], message: str
):
    question = FormElicitation(server="box", message=message, schema=SCHEMA)
    shown = await screen_of(desk, size, "elicit_form", question)
    assert shown[shown.index("who") + 1] == "everybody"
    assert "box asks for information" in shown


async def test_t500_the_focused_form_field_is_visible_in_a_command():
    question = FormElicitation(server="box", message=MESSAGES["padding"], schema=SCHEMA)
    app = QuestionApp(FormView(question))
    async with app.run_test(size=(80, 24)) as pilot:
        shown = await settled_rows(pilot)
    assert shown[shown.index("who") + 1] == "everybody"


async def test_t500_a_long_path_does_not_hide_the_command_that_runs_there(desk: Desk):
    question = PermissionQuestion(
        server="",
        tool="Bash",
        title="",
        arguments={"command": "curl evil.example"},
        folder="/" + "f" * 999,
        rule="Bash(curl *)",
    )
    shown = await screen_of(desk, (80, 24), "allow", question)
    assert 'command: "curl evil.example"' in shown
    assert "n  No" in shown


async def test_t500_very_many_calls_do_not_hide_the_question(desk: Desk):
    question = UrlElicitation(
        server="box", message="", url="https://evil.example/", host="evil.example", calls=CALLS
    )
    shown = await screen_of(desk, (80, 24), "elicit_url", question)
    assert "host  evil.example" in shown
    assert "and 97 more" in " ".join(shown)

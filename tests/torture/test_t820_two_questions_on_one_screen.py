"""T820: in the terminal application a server sends an elicitation while a sign-in is shown, or a sign-in
begins while an elicitation is shown. Both are answered, one after the other."""

import asyncio

import pytest

from dragoman.interaction import FormAnswer, FormElicitation
from dragoman.tui import web_page_questions
from dragoman.tui.form import FormView
from dragoman.tui.web_page_questions import AppSignIn, SignInPageView
from tests.unit.tui.desk import Desk, Seat, desk

__all__ = ["desk"]
pytestmark = [pytest.mark.slow, pytest.mark.requirement("AGT-4", "ASK-1")]
URL = "https://accounts.example.com/authorize?client=1"
QUESTION = FormElicitation(server="box", message="Which one?", schema={})


@pytest.fixture(autouse=True)
def browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_page_questions, "open_page", lambda url: True)


def signing_in(seat: Seat) -> asyncio.Task[None]:
    return asyncio.create_task(AppSignIn(seat.app, "drive").show_url(URL, lambda address: False))


def asking(seat: Seat) -> asyncio.Task[FormAnswer]:
    return asyncio.create_task(seat.app._interaction.elicit_form(QUESTION))


async def test_t820_an_elicitation_waits_for_the_end_of_a_sign_in(desk: Desk):
    async with desk.opened() as seat:
        page = signing_in(seat)
        await seat.until(lambda: seat.app.query(SignInPageView))
        question = asking(seat)
        await seat.pilot.pause()
        page.cancel()  # the browser was redirected back
        await seat.until(lambda: "Esc" in seat.shown("#question .keys") and seat.app.query(FormView))
        await seat.pilot.press("escape")
        assert await asyncio.wait_for(question, 10) == FormAnswer("cancel")


async def test_t820_a_sign_in_waits_for_the_answer_to_an_elicitation(desk: Desk):
    async with desk.opened() as seat:
        question = asking(seat)
        await seat.until(lambda: "Esc" in seat.shown("#question .keys"))
        page = signing_in(seat)
        await seat.pilot.pause()
        await seat.pilot.press("escape")
        assert await asyncio.wait_for(question, 10) == FormAnswer("cancel")
        await seat.until(lambda: seat.app.query(SignInPageView) and not seat.app.query(FormView))
        page.cancel()
        await seat.until(lambda: not seat.app.query(SignInPageView))

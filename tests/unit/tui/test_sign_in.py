"""A sign-in inside the application."""

import asyncio

import pytest

from dragoman.tui import web_page_questions
from dragoman.tui.web_page_questions import AppSignIn
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]

pytestmark = pytest.mark.requirement("AGT-4")
URL = "https://accounts.example.com/authorize?client=1"
BACK = "http://127.0.0.1:4711/callback?code=1"


@pytest.fixture(autouse=True)
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []
    monkeypatch.setattr(web_page_questions, "open_page", lambda url: opened.append(url) or True)
    return opened


async def test_the_page_is_shown_until_the_browser_has_returned(desk: Desk, browser: list[str]):
    async with desk.opened() as seat:
        task = asyncio.create_task(AppSignIn(seat.app, "drive").show_url(URL, lambda address: False))
        await seat.until(lambda: URL in seat.shown("SignInPageView Static"))
        assert browser == [URL]
        task.cancel()
        await seat.until(lambda: not seat.app.query("SignInPageView"))


@pytest.mark.slow
async def test_the_redirect_url_of_another_browser_can_be_pasted(desk: Desk):
    async with desk.opened() as seat:
        task = asyncio.create_task(
            AppSignIn(seat.app, "drive").show_url(URL, lambda address: address == BACK)
        )
        await seat.until(lambda: "Esc Stop" in seat.shown("#question .keys"))
        await seat.type("x")
        await seat.pilot.press("enter")
        await seat.until(lambda: "does not belong" in seat.shown(".problem"))
        await seat.pilot.press("backspace")
        await seat.type(BACK)
        await seat.pilot.press("enter")
        await task


@pytest.mark.parametrize(("key", "answer"), [("y", True), ("n", False)])
async def test_the_issuer_of_a_secret_is_confirmed(desk: Desk, key: str, answer: bool):
    async with desk.opened() as seat:
        asking = AppSignIn(seat.app, "drive").confirm_issuer("drive", "https://issuer.example.com")
        task = asyncio.create_task(asking)
        await seat.until(lambda: "y Yes" in seat.shown("#question .keys"))
        assert "issuer.example.com" in seat.shown("ConfirmView Static")
        await seat.pilot.press(key)
        assert await task is answer


async def test_a_server_without_sign_in_is_reported(desk: Desk):
    async with desk.opened() as seat:
        seat.app.control.sign_in("desk")
        await seat.idle()
        assert "! " in seat.text
        assert "desk" in seat.text

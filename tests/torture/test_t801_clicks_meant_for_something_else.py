"""T801: a click that was aimed at something that a question has displaced does not answer the question."""

import asyncio

import pytest

from dragoman.interaction import PermissionAnswer
from dragoman.tui import question_view
from dragoman.tui.permission_question import PermissionView
from tests.unit.tui.desk import Desk, Seat, desk
from tests.unit.tui.test_app_questions import QUESTION

__all__ = ["desk"]
pytestmark = pytest.mark.requirement("PRM-5")


async def click_at_once(seat: Seat) -> asyncio.Task[PermissionAnswer]:
    """Asks the person, and clicks on the first answer as soon as it is on the screen."""
    task = asyncio.create_task(seat.app._interaction.allow(QUESTION))
    await seat.until(lambda: seat.app.query(PermissionView))
    await seat.pilot.pause()
    assert await seat.pilot.click("PermissionView OptionList", offset=(4, 0))
    await seat.pilot.pause()
    return task


async def test_t801_a_click_when_the_question_appears_is_ignored(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(question_view, "QUIET_SECONDS", 30.0)
    async with desk.opened() as seat:
        task = await click_at_once(seat)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])


async def test_t801_a_click_after_a_moment_answers_the_question(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(question_view, "QUIET_SECONDS", 0.0)
    async with desk.opened() as seat:
        assert await (await click_at_once(seat)) == PermissionAnswer(True)

"""T406: a question that arrived while another screen was shown is not answered by a key that was typed
during the return."""

import asyncio

import pytest

from dragoman.interaction import PermissionAnswer
from dragoman.tui import question_view
from dragoman.tui.permission_question import PermissionView
from dragoman.tui.screens import TextScreen, help_screen
from tests.unit.tui.desk import Desk, desk
from tests.unit.tui.test_app_questions import QUESTION

__all__ = ["desk"]
pytestmark = pytest.mark.requirement("PRM-5")


async def test_t406_keys_are_accepted_only_after_the_question_was_visible(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(question_view, "QUIET_SECONDS", 0.0)
    async with desk.opened() as seat:
        await seat.app.push_screen(help_screen())
        task = asyncio.create_task(seat.app._interaction.allow(QUESTION))
        await seat.until(lambda: seat.app._questions.query(PermissionView))
        await seat.pilot.press("ctrl+g")
        await seat.pilot.pause()
        monkeypatch.setattr(question_view, "QUIET_SECONDS", 30.0)
        await seat.pilot.press("escape", "y", "s")
        assert not isinstance(seat.app.screen, TextScreen)
        assert not task.done()
        assert seat.app.prompt.text == "ys"
        task.cancel()
        await asyncio.wait([task])


async def test_t406_the_question_can_be_answered_after_a_moment(desk: Desk):
    async with desk.opened() as seat:
        await seat.app.push_screen(help_screen())
        task = asyncio.create_task(seat.app._interaction.allow(QUESTION))
        await seat.until(lambda: seat.app._questions.query(PermissionView))
        await seat.pilot.press("escape")
        await seat.until(lambda: seat.shown("#question .keys") not in ("", "…"))
        await seat.pilot.press("y")
        assert await task == PermissionAnswer(True)

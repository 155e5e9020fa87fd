"""T200: in the application, a key that is held down or pressed twice answers one question only."""

import asyncio

import pytest

from dragoman.interaction import PermissionAnswer
from dragoman.tui import question_view
from dragoman.tui.permission_question import PermissionView
from tests.unit.tui.desk import Desk, desk
from tests.unit.tui.test_app_questions import QUESTION, asked

__all__ = ["desk"]
pytestmark = pytest.mark.requirement("PRM-5")


async def test_t200_the_key_that_answered_a_question_does_not_answer_the_next_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    async with desk.opened() as seat:
        first = await asked(seat, "allow", QUESTION)
        monkeypatch.setattr(question_view, "QUIET_SECONDS", 30.0)
        await seat.pilot.press("y")
        assert await first == PermissionAnswer(True)
        second = asyncio.create_task(seat.app._interaction.allow(QUESTION))
        await seat.until(lambda: seat.app.query(PermissionView))
        await seat.pilot.press("y", "y")
        assert not second.done()
        assert seat.shown("#question .keys") == "…"
        second.cancel()
        await asyncio.wait([second])

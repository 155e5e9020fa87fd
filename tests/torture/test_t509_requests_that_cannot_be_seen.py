"""T509: a long system prompt does not hide the message of a sampling request: all of it can be displayed
with the keyboard before it is sent."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot

from dragoman.interaction import SamplingMessage, SamplingRequest, SamplingReview
from dragoman.tui.questions import QuestionApp
from dragoman.tui.sampling_review import SamplingView
from tests.unit.tui.desk import Desk, desk
from tests.unit.tui.test_app_questions import asked

__all__ = ["desk"]
pytestmark = [pytest.mark.slow, pytest.mark.requirement("ASK-4")]

WORDS = [
    "first of the system prompt",
    "last of the system prompt",
    "first of the message",
    "last of the message",
]


def padded(first: str, last: str) -> str:
    return first + "\n" * 50 + last


def review() -> SamplingReview:
    message = SamplingMessage("user", ({"type": "text", "text": padded(*WORDS[2:])},))
    system_prompt = padded(*WORDS[:2])
    return SamplingReview(
        SamplingRequest(server="box", messages=(message,), system_prompt=system_prompt, max_tokens=10)
    )


def rows(app: App[Any]) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def seen(pilot: Pilot[Any], key: str, shows: Callable[[], str]) -> set[str]:
    """The text that was visible while this key was pressed several times."""
    found = {word for word in WORDS if word in shows()}
    for _ in range(12):
        await pilot.press(key)
        await pilot.pause(0.02)
        found |= {word for word in WORDS if word in shows()}
    return found


async def test_t509_the_complete_request_can_be_displayed_in_the_application(desk: Desk):
    async with desk.opened(size=(80, 24)) as seat:
        task = await asked(seat, "review_sampling", review())
        await seat.pilot.pause(0.1)
        assert "PgUp and PgDn scroll" in rows(seat.app)
        assert await seen(seat.pilot, "pagedown", lambda: rows(seat.app)) == set(WORDS)
        assert await seen(seat.pilot, "pageup", lambda: rows(seat.app)) == set(WORDS)
        await seat.pilot.press("ctrl+s")
        assert await task == review()


async def test_t509_the_complete_request_can_be_displayed_in_a_command():
    app = QuestionApp(SamplingView(review()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        down = await seen(pilot, "pagedown", lambda: rows(app))
        assert down | await seen(pilot, "pageup", lambda: rows(app)) == set(WORDS)


async def test_t509_typed_text_is_visible(desk: Desk):
    async with desk.opened(size=(80, 24)) as seat:
        task = await asked(seat, "review_sampling", review())
        await seat.pilot.press("x")
        await seat.pilot.pause(0.1)
        assert f"x{WORDS[2]}" in rows(seat.app)
        task.cancel()
        await asyncio.wait([task])

"""T444: a person who reviews a sampling request on the screen can read all of it."""

import pytest

from dragoman.interaction import SamplingMessage, SamplingRequest, SamplingReview
from dragoman.tui.sampling_review import SamplingView
from tests.unit.tui.test_questions import shown, typed

pytestmark = [pytest.mark.slow, pytest.mark.requirement("ASK-4")]


def sampling_message(text: str) -> SamplingMessage:
    return SamplingMessage("user", ({"type": "text", "text": f"{'word ' * 30_000}{text}"},))


REVIEW = SamplingReview(
    SamplingRequest(
        server="notes",
        system_prompt=f"{'word ' * 30_000}end of the system prompt",
        messages=(sampling_message("end of the first message"), sampling_message("end of the last message")),
        max_tokens=200,
    )
)
SHORT = SamplingReview(
    SamplingRequest(
        server="notes",
        messages=(SamplingMessage("user", ({"type": "text", "text": "Sum up"},)),),
        max_tokens=200,
    )
)


async def test_t444_a_long_request_can_be_shown_in_full():
    view = SamplingView(REVIEW)
    assert view.keys() == "Ctrl+S Send · Esc Refuse · PgUp and PgDn scroll · Ctrl+O Show all of it"
    text, _ = await shown(view)
    assert "end of the last message" in text
    assert "end of the system prompt" not in text
    view = SamplingView(REVIEW)
    text, _ = await shown(view, "ctrl+o")
    for end in ("end of the system prompt", "end of the first message", "end of the last message"):
        assert end in text
    assert view.keys() == "Ctrl+S Send · Esc Refuse · PgUp and PgDn scroll"


async def test_t444_a_short_request_is_shown_in_full_at_once():
    assert SamplingView(SHORT).keys() == "Ctrl+S Send · Esc Refuse · PgUp and PgDn scroll"
    assert await typed(SamplingView(SHORT), "ctrl+o", "ctrl+s") == SHORT


async def test_t444_the_request_is_sent_unchanged():
    assert await typed(SamplingView(REVIEW), "ctrl+o", "ctrl+s") == REVIEW

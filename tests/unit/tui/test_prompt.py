"""The field in which the person writes."""

from textual.events import Paste

from dragoman.tui.prompt import PromptHistory
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]


def test_the_history_moves_in_both_directions_and_keeps_the_draft():
    history = PromptHistory()
    for text in ("one", "two", "two"):
        history.add(text)
    assert history.earlier("draft") == "two"
    assert history.earlier("") == "one"
    assert history.earlier("") is None
    assert [history.later(), history.later(), history.later()] == ["two", "draft", None]


async def test_enter_sends_and_ctrl_j_begins_a_new_line(desk: Desk):
    async with desk.opened("ok") as seat:
        await seat.type("one")
        await seat.pilot.press("ctrl+j")
        await seat.type("two")
        assert seat.app.prompt.text == "one\ntwo"
        await seat.pilot.press("enter")
        await seat.idle()
        assert "> one\ntwo" in seat.text
        assert seat.app.prompt.text == ""


async def test_pasted_text_keeps_all_lines_and_is_not_sent(desk: Desk):
    async with desk.opened() as seat:
        seat.app.prompt.post_message(Paste("one\r\ntwo\rthree\n"))
        await seat.pilot.pause()
        assert seat.app.prompt.text == "one\ntwo\nthree\n"
        assert seat.model.requests == []


async def test_arrow_keys_show_sent_messages(desk: Desk):
    async with desk.opened("a", "b") as seat:
        await seat.say("first")
        await seat.say("second")
        await seat.type("draft")
        await seat.pilot.press("up", "up")
        assert seat.app.prompt.text == "first"
        await seat.pilot.press("down", "down")
        assert seat.app.prompt.text == "draft"


async def test_a_message_written_before_the_model_is_loaded_is_sent_afterwards(desk: Desk):
    async with desk.opened("early answer") as seat:
        session, seat.app.control.session = seat.app.control.session, None
        await seat.send("early")
        assert "queued: early" in seat.shown("#queued")
        assert session is not None
        seat.app.control._opened(session)
        await seat.idle()
        assert "early answer" in seat.text

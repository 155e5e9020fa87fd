"""Completions: what is completed, and with what."""

from pathlib import Path

import pytest

from dragoman.tui.completion import CompletionItem, CompletionRequest, completion_at, files_at, fitting
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AGT-4")]


@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ("", None),
        ("hello", None),
        ("/", CompletionRequest("command", "")),
        ("/mc", CompletionRequest("command", "mc")),
        ("/mcp re", CompletionRequest("argument", "re", "mcp")),
        ("/desk:report topic=", CompletionRequest("argument", "topic=", "desk:report")),
        ("see @", CompletionRequest("mention", "")),
        ("see @src/a", CompletionRequest("mention", "src/a")),
        ("line\nsee @src", CompletionRequest("mention", "src")),
        ("line\n/mc", None),
        ("me@example", None),
        ("@a and then", None),
    ],
)
def test_the_kind_of_completion_follows_from_the_text(before: str, wanted: CompletionRequest | None):
    assert completion_at(before) == wanted


def test_names_that_begin_with_the_word_come_first_and_unsafe_names_are_left_out():
    choices = [
        CompletionItem("recompact"),
        CompletionItem("compact"),
        CompletionItem("com\x1b[31mx"),
        CompletionItem("other"),
    ]
    assert [each.text for each in fitting("COM", choices)] == ["compact", "recompact"]


def test_files_are_completed_folder_by_folder():
    (Path("src") / "deep").mkdir(parents=True)
    Path("src/app.py").touch()
    Path("setup.cfg").touch()
    Path(".hidden").touch()
    here = Path.cwd()
    assert files_at(here, "s") == [CompletionItem("setup.cfg"), CompletionItem("src/", is_whole=False)]
    assert files_at(here, "src/") == [
        CompletionItem("src/app.py"),
        CompletionItem("src/deep/", is_whole=False),
    ]
    assert files_at(here, ".h") == [CompletionItem(".hidden")]
    assert files_at(here, "missing/") == []


async def test_a_command_is_completed_with_tab_and_selected_with_enter(desk: Desk):
    async with desk.opened() as seat:
        await seat.type("/hel")
        await seat.until(lambda: seat.app.prompt.is_completing)
        await seat.pilot.press("enter")
        await seat.pilot.pause()
        assert seat.app.prompt.text == "/help "
        await seat.until(lambda: not seat.app.prompt.is_completing)
        await seat.pilot.press("enter")
        await seat.until(lambda: len(seat.app.screen_stack) == 2)


async def test_files_resources_and_prompts_are_offered(desk: Desk):
    Path("notes.txt").write_text("remember the milk")
    desk.server.contents.add_resource("note://today", "buy bread")
    topic = {"name": "topic", "required": True}
    desk.server.contents.add_prompt(
        "report", lambda values: f"Report on {values['topic']}", [topic], {"topic": ["cats", "dogs"]}
    )
    async with desk.opened("ok", "ok") as seat:
        await seat.type("@no")
        await seat.until(lambda: seat.app.prompt.is_completing)
        assert [each.text for each in seat.app._completions._choices] == ["notes.txt", "desk:note://today"]
        await seat.pilot.press("tab")
        assert seat.app.prompt.text == "@notes.txt "
        await seat.type("@desk:note://today")
        await seat.pilot.press("enter")
        await seat.idle()
        sent = str(seat.model.requests[-1])
        assert "remember the milk" in sent
        assert "buy bread" in sent
        await seat.type("/re")
        await seat.until(lambda: seat.app.prompt.is_completing)
        assert "desk:report" in [each.text for each in seat.app._completions._choices]
        seat.app.prompt.text = ""
        await seat.type("/desk:report topic=d")
        await seat.until(lambda: seat.app.prompt.is_completing)
        assert [each.text for each in seat.app._completions._choices] == ["topic=dogs"]
        seat.app.prompt.text = ""
        await seat.send("/desk:report topic=cats")
        await seat.until(lambda: len(seat.model.requests) == 2)
        await seat.idle()
        assert "Report on cats" in str(seat.model.requests[-1])
        assert "> /desk:report topic=cats" in seat.text

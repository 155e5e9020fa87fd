"""The terminal application, with a person who types and a scripted model."""

from pathlib import Path

import pytest
from pydantic_ai.messages import ModelRequest, ToolReturnPart

from dragoman.events import ServerFailed
from dragoman.testing.model import Calls, Says
from dragoman.tui.server_notes import ServerNotes
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AGT-1")]


async def test_an_answer_is_shown_as_markdown(desk: Desk):
    async with desk.opened(Says(("# Result\n\nIt is **fo", "ur**, see `x`"))) as seat:
        await seat.say("what is 2+2?")
        assert "> what is 2+2?" in seat.text
        assert "Result\n\nIt is four, see x" in seat.text


async def test_a_tool_call_is_shown_with_arguments_and_result(desk: Desk):
    async with desk.opened(Calls("mcp__desk__add", {"a": 1, "b": 2}), "3") as seat:
        await seat.say("add")
        assert "✓ add · desk\n  a: 1\n  b: 2\n  └ 3" in seat.text


async def test_escape_stops_a_call_and_its_result_is_an_interruption(desk: Desk):
    async with desk.opened(Calls("mcp__desk__hang"), "go on", "again") as seat:
        await seat.send("hang")
        await seat.until(desk.entered.is_set)
        await seat.pilot.press("escape")
        await seat.idle()
        assert "■ hang · desk  interrupted" in seat.text
        assert seat.app.host.servers["desk"].status == "connected"
        await seat.say("next")
        results = [
            part
            for message in seat.model.requests[-1]
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ]
        assert [part.outcome for part in results] == ["interrupted"]
        assert "interrupted" in str(results[0].content)


async def test_a_message_while_the_model_works_is_queued_shown_and_sent_with_the_next_step(desk: Desk):
    async with desk.opened(Calls("mcp__desk__hang"), "done") as seat:
        await seat.send("hang")
        await seat.until(desk.entered.is_set)
        await seat.send("and hurry")
        assert "queued: and hurry" in seat.shown("#queued")
        desk.release.set()
        await seat.idle()
        assert "> and hurry" in seat.text
        assert "queued" not in seat.shown("#queued")


async def test_mentioned_content_is_added_when_the_message_is_sent_also_from_the_queue(
    desk: Desk, home: Path
):
    (home / "work" / "plan.txt").write_text("first the roof")
    async with desk.opened(Calls("mcp__desk__hang"), "done", folder=home / "work") as seat:
        await seat.send("read @plan.txt please")
        await seat.until(desk.entered.is_set)
        await seat.send("and @plan.txt, and @desk:gone please")
        assert "queued: and @plan.txt, and @desk:gone please" in seat.shown("#queued")
        desk.release.set()
        await seat.idle()
        marked = '<file name="plan.txt">\nfirst the roof\n</file>'
        first, queued = (request[-1].parts[-1].content for request in seat.model.requests)
        assert first == f"read @plan.txt please\n\n{marked}"
        assert queued == f"and @plan.txt, and @desk:gone please\n\n{marked}"
        assert "> and @plan.txt, and @desk:gone please\n" in seat.text
        assert "@desk:gone was not added" in seat.text


async def test_a_queued_message_can_be_withdrawn(desk: Desk):
    async with desk.opened(Calls("mcp__desk__hang"), "done") as seat:
        await seat.send("hang")
        await seat.until(desk.entered.is_set)
        await seat.send("and hurry")
        await seat.pilot.press("up")
        await seat.pilot.pause()
        assert seat.app.prompt.text == "and hurry"
        assert seat.app.control.session is not None
        assert seat.app.control.session.conversation.queued == []
        desk.release.set()
        await seat.idle()


async def test_messages_queued_for_an_interrupted_turn_are_returned_to_the_prompt(desk: Desk):
    async with desk.opened(Calls("mcp__desk__hang")) as seat:
        await seat.send("hang")
        await seat.until(desk.entered.is_set)
        await seat.send("and hurry")
        await seat.pilot.press("escape")
        await seat.idle()
        assert seat.app.prompt.text == "and hurry"


async def test_a_permission_question_is_asked_in_the_conversation(desk: Desk):
    async with desk.opened(Calls("mcp__desk__add", {"a": 1, "b": 2}), "3", mode="default") as seat:
        await seat.send("add")
        await seat.until(lambda: seat.app.query("PermissionView"))
        assert "? desk: mcp__desk__add" in seat.shown("PermissionView Static")
        await seat.pilot.press("enter")
        await seat.pilot.pause()
        assert seat.app.query("PermissionView"), "Enter alone is no answer"
        await seat.pilot.press("y")
        await seat.idle()
        assert "mcp__desk__add: allowed once" in seat.text
        assert "└ 3" in seat.text
        assert not seat.app.query("PermissionView")


async def test_the_reason_of_a_refusal_is_sent_to_the_model(desk: Desk):
    async with desk.opened(Calls("mcp__desk__add", {"a": 1, "b": 2}), "ok", mode="default") as seat:
        await seat.send("add")
        await seat.until(lambda: seat.app.query("PermissionView"))
        await seat.pilot.press("t")
        await seat.type("use 3")
        await seat.pilot.press("enter")
        await seat.idle()
        assert "⊘ add · desk  refused" in seat.text
        assert "use 3" in str(seat.model.requests[-1])


async def test_the_exact_difference_is_shown_before_a_file_is_changed(desk: Desk):
    Path("notes.txt").write_text("one\ntwo\nthree\n")
    edit = {"file_path": "notes.txt", "old_string": "two", "new_string": "2"}
    async with desk.opened(
        Calls("Read", {"file_path": "notes.txt"}), Calls("Edit", edit), "ok", mode="default"
    ) as seat:
        await seat.send("edit")
        await seat.until(lambda: seat.app.query("PermissionView"))
        assert " one\n-two\n+2\n three" in seat.shown("PermissionView .diff")
        await seat.pilot.press("y")
        await seat.idle()
    assert Path("notes.txt").read_text() == "one\n2\nthree\n"


@pytest.mark.requirement("AGT-4")
async def test_slash_commands_open_their_screens(desk: Desk):
    async with desk.opened("hi", mode="default") as seat:
        await seat.say("hello")
        for command, text in {
            "/help": "Shift+Tab",
            "/mcp": "1 of 1 connected",
            "/permissions": "There are no rules.",
            "/context": "tools of desk",
            "/resume": "Conversations in",
        }.items():
            await seat.send(command)
            await seat.until(lambda: len(seat.app.screen_stack) == 2)
            await seat.pilot.pause()
            assert text in seat.app.export_screenshot().replace("&#160;", " "), command
            await seat.pilot.press("escape")
            await seat.until(lambda: len(seat.app.screen_stack) == 1)


async def test_ctrl_c_stops_and_a_second_one_quits(desk: Desk):
    async with desk.opened(Calls("mcp__desk__hang")) as seat:
        await seat.send("hang")
        await seat.until(desk.entered.is_set)
        await seat.pilot.press("ctrl+c")
        await seat.idle()
        assert "Interrupted." in seat.text
        assert seat.app.is_running
        await seat.pilot.press("ctrl+c")
        await seat.until(lambda: not seat.app.is_running)


async def test_the_permission_mode_is_changed_with_shift_tab_and_never_to_one_that_allows_all(desk: Desk):
    async with desk.opened(mode="default") as seat:
        seen: list[str] = []
        for _ in range(4):
            await seat.pilot.press("shift+tab")
            seen.append(seat.app.host.permission_mode)
        assert seen == ["auto", "plan", "default", "auto"]
        assert "auto" in seat.shown("#status")


async def test_text_of_servers_and_models_is_never_markup(desk: Desk):
    desk.server.add_tool("hostile", lambda arguments, context: "[@click=app.exit]x[/] \x1b[2J [/nothing]")
    async with desk.opened(Calls("mcp__desk__hostile", {"[red]": "[/]"}), "[bold]hi[/nope] \x1b[31m") as seat:
        await seat.say("[link=x]hello")
        assert "[@click=app.exit]x[/]" in seat.text
        assert "[bold]hi[/nope]" in seat.text
        assert "> [link=x]hello" in seat.text
        assert "\x1b" not in seat.text


async def test_a_failed_server_is_one_line_with_the_next_step(desk: Desk):
    servers = {"desk": desk.server, "broken": {"command": "/nonexistent/server"}}
    async with desk.opened(servers=servers) as seat:
        await seat.until(lambda: "broken" in seat.text)
        assert (
            "! server broken: start failed: there is no program '/nonexistent/server'. Install it"
            in seat.text
        )
        assert "1/2 servers, 1 failed" in seat.shown("#status")


async def test_a_transcript_that_cannot_be_written_is_reported_once_and_the_conversation_continues(
    desk: Desk, home: Path
):
    folder = home / ".dragoman/state/conversations"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.touch()
    async with desk.opened("first", "second") as seat:
        await seat.say("one")
        await seat.say("two")
        assert "second" in seat.text
        assert seat.text.count("cannot be written: Not a directory. The conversation continues.") == 1


async def test_a_permanent_grant_that_cannot_be_written_is_reported_and_applies_once(desk: Desk, home: Path):
    locks = home / ".dragoman/state/locks"
    locks.parent.mkdir(parents=True, exist_ok=True)
    locks.touch()
    script = [Calls("mcp__desk__add", {"a": 1, "b": 2}), "3"]
    async with desk.opened(*script, mode="default", is_configured=True) as seat:
        await seat.send("add")
        await seat.until(lambda: seat.app.query("PermissionView"))
        await seat.pilot.press("a")
        await seat.idle()
        assert "└ 3" in seat.text
        assert "! the rule could not be saved: " in seat.text


async def test_a_failure_of_the_provider_is_shown_and_the_conversation_continues(desk: Desk):
    async with desk.opened(ValueError("odd"), "fine") as seat:
        await seat.say("one")
        assert "(ValueError)" in seat.text
        await seat.say("two")
        assert "fine" in seat.text


async def test_a_tool_call_is_opened_with_the_keyboard_and_closed_again(desk: Desk):
    async with desk.opened(Calls("mcp__desk__lines", {"n": 40}), "ok") as seat:
        await seat.say("lines")
        assert "line 39" not in seat.text
        await seat.pilot.press("ctrl+o")
        assert "line 39" in seat.text
        await seat.pilot.press("ctrl+o", "tab", "enter")
        assert "line 39" in seat.text
        await seat.pilot.press("escape")
        assert seat.app.focused is seat.app.prompt
        await seat.pilot.press("tab", "h", "i")
        assert seat.app.focused is seat.app.prompt
        assert seat.app.prompt.text == "hi"


async def test_a_server_of_the_project_that_needs_approval_is_named_with_the_command(desk: Desk):
    Path(".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "theirs"}}}')
    async with desk.opened(is_configured=True) as seat:
        await seat.until(lambda: "theirs" in seat.text)
        assert "dragoman mcp approve theirs" in seat.text


async def test_the_person_is_warned_before_the_conversation_is_summarized(desk: Desk):
    async with desk.opened("word " * 1450, settings={"DRAGOMAN_CONTEXT_TOKENS": 2000}) as seat:
        await seat.say("go on and on")
        assert "The context is nearly full" in seat.text
        assert "nearly full" in seat.shown("#status")


async def test_a_server_that_fails_repeatedly_is_reported_a_few_times_only(desk: Desk):
    async with desk.opened() as seat:
        notes = ServerNotes(seat.app, seat.app.host)
        for number in range(20):
            notes._show(ServerFailed(server="box", reason="box: the same", hint="Mend it."))
            notes._show(ServerFailed(server="bad", reason=f"another reason {number}", hint=None))
        await seat.pilot.pause()
        assert seat.text.count("! server box: the same. Mend it.") == 1
        assert seat.text.count("! server bad:") == 5

"""Slash commands."""

from typing import Any

import pytest

from dragoman.testing import InMemoryServer
from dragoman.testing.model import Says
from dragoman.tui.commands import CommandLine, parse
from dragoman.tui.screens import parts_of, read_rule
from dragoman.tui.servers_screen import server_row, server_text
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AGT-4")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/help", CommandLine("help", "")),
        ("/mcp enable all", CommandLine("mcp", "enable all")),
        ("/desk:report topic=x", CommandLine("desk:report", "topic=x")),
        ("/usr/bin/env is missing", None),
        ("hello /help", None),
        ("/", None),
    ],
)
def test_a_command_is_distinguished_from_a_message_that_begins_with_a_path(
    text: str, line: CommandLine | None
):
    assert parse(text) == line


async def test_an_unknown_command_is_named(desk: Desk):
    async with desk.opened() as seat:
        await seat.send("/nonsense")
        await seat.until(lambda: "There is no command /nonsense" in seat.text)
        assert seat.model.requests == []


async def test_servers_are_disabled_enabled_and_reconnected_by_name(desk: Desk):
    async with desk.opened() as seat:
        for command, status in (
            ("/mcp disable desk", "disabled"),
            ("/mcp enable all", "connected"),
            ("/mcp reconnect desk", "connected"),
        ):
            await seat.send(command)
            await seat.until(lambda status=status: f"server desk is {status}" in seat.text)
            assert seat.app.host.servers["desk"].status == status
            seat.app.conversation.show_all([])
        await seat.send("/mcp reconnect nothing")
        await seat.until(lambda: "! " in seat.text)
        assert "nothing" in seat.text


async def test_the_server_screen_disables_and_enables_a_server(desk: Desk):
    async with desk.opened() as seat:
        await seat.send("/mcp")
        await seat.until(lambda: len(seat.app.screen_stack) == 2)
        assert "4 tools" in seat.shown("#about")
        assert "add " in seat.shown("#about")
        assert "● not read-only" in seat.shown("#about")
        await seat.pilot.press("e")
        await seat.until(lambda: seat.app.host.servers["desk"].status == "disabled")
        await seat.until(lambda: "e enables it" in seat.shown("#about"))
        await seat.pilot.press("e")
        await seat.until(lambda: seat.app.host.servers["desk"].status == "connected")


@pytest.mark.requirement("AGT-5")
async def test_a_conversation_is_cleared_and_resumed(desk: Desk):
    async with desk.opened("blue, noted", "other", "it was blue") as seat:
        await seat.say("my colour is blue")
        first = seat.app.control.transcript_id
        await seat.send("/clear")
        await seat.until(lambda: "blue" not in seat.text and seat.app.control.session is not None)
        await seat.say("something else")
        assert "my colour" not in str(seat.model.requests[-1])
        await seat.send("/resume")
        await seat.until(lambda: len(seat.app.screen_stack) == 2)
        options = seat.app.screen.query_one("OptionList")
        prompts = [str(option.prompt) for option in options.options]  # type: ignore[attr-defined]
        assert any("my colour is blue" in each for each in prompts)
        seat.app.screen.dismiss(first)
        await seat.until(lambda: "> my colour is blue" in seat.text)
        await seat.say("which colour?")
        assert "my colour is blue" in str(seat.model.requests[-1])


async def test_the_conversation_is_summarized_on_request(desk: Desk):
    async with desk.opened("answer", "a summary") as seat:
        await seat.say("hello")
        await seat.send("/compact keep the names")
        await seat.until(lambda: "The conversation was summarized" in seat.text)
        assert "keep the names" in str(seat.model.requests[-1])


async def test_rules_of_the_session_are_added_and_removed(desk: Desk):
    async with desk.opened(mode="default", rules={"deny": ["mcp__desk__fail"]}) as seat:
        await seat.send("/permissions")
        await seat.until(lambda: len(seat.app.screen_stack) == 2)
        await seat.pilot.press("a")
        await seat.type("allow mcp__desk(")
        await seat.pilot.press("enter")
        await seat.pilot.pause()
        assert seat.shown(".problem")
        await seat.pilot.press("home", "shift+end")
        await seat.type("allow mcp__desk__add")
        await seat.pilot.press("enter")
        await seat.pilot.pause()
        assert [rule.text for rule in seat.app.host.rules] == ["mcp__desk__fail", "mcp__desk__add"]
        assert (await seat.app.host.call("mcp__desk__add", {"a": 1, "b": 1})).text == "2"
        await seat.pilot.press("end", "d")
        await seat.pilot.pause()
        assert [rule.text for rule in seat.app.host.rules] == ["mcp__desk__fail"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("allow mcp__a", ("allow", "mcp__a")),
        (" deny  Bash(rm *) ", ("deny", "Bash(rm *)")),
        ("mcp__a", None),
        ("ask", None),
    ],
)
def test_a_rule_is_typed_with_its_kind(text: str, rule: Any):
    assert read_rule(text) == rule


async def test_a_failed_command_is_one_line_and_the_conversation_continues(desk: Desk):
    async with desk.opened("still here") as seat:
        await seat.send("/model nonsense")
        await seat.until(lambda: "is not a model" in seat.text)
        await seat.say("hello")
        assert "still here" in seat.text


ANSWER = (
    "A **long** answer that is wrapped in a terminal of 80 columns, because it has more words than fit."
    "\n\n- one"
)


async def test_the_last_answer_is_copied_as_the_model_wrote_it(desk: Desk):
    async with desk.opened(Says(ANSWER)) as seat:
        await seat.send("hello")
        await seat.until(lambda: "• one" in seat.text)
        await seat.send("/copy")
        await seat.until(lambda: seat.app.clipboard == ANSWER)


async def test_selected_text_is_copied_without_padding_and_line_ends_of_the_screen(desk: Desk):
    words = "alpha " * 40
    async with desk.opened(Says(words)) as seat:
        await seat.send("hello")
        await seat.until(lambda: "alpha alpha" in seat.text and not seat.app.control.is_working)
        seat.app.screen.text_select_all()
        await seat.pilot.press("ctrl+c")
        await seat.until(lambda: words.strip() in seat.app.clipboard)


async def test_one_tool_is_counted_in_the_singular(desk: Desk):
    single = InMemoryServer("single")
    single.add_tool("only", lambda arguments, context: "")
    async with desk.opened(servers={"single": single}) as seat:
        await seat.until(lambda: seat.app.host.servers["single"].status == "connected")
        status = seat.app.host.servers["single"]
        tools = [tool for tool in seat.app.host.tools() if tool.server == "single"]
        assert server_row(status).plain.endswith(" 1 tool")
        assert "\n1 tool, about " in server_text(status, tools).plain
        assert seat.app.control.session is not None
        details = {part.name: part.detail for part in parts_of(seat.app.control.session)}
        assert details["tools of single"] == "1 tool"

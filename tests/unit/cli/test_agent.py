"""The conversation line by line, and the options of `dragoman` without a command."""

from typing import get_args

import click
import pytest

from dragoman.agent.events import SubagentEvent, ToolCallStarted
from dragoman.cli.agent.options import MODES
from dragoman.cli.agent.plain import EventPrinter
from dragoman.cli.terminal_interaction import show
from dragoman.interaction import PermissionQuestion
from dragoman.permissions.modes import PermissionMode
from dragoman.tui.permission_question import question_text

HOSTILE = "paint\x1b[2J\nred"


def test_the_name_of_a_tool_that_a_model_writes_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
):
    started, shown = ToolCallStarted(call_id="1", tool=HOSTILE, arguments={}), EventPrinter()
    shown.event(started)
    shown.event(SubagentEvent(call_id="2", agent="ada", agent_id="ada-1", event=started))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "\x1b" not in "".join(lines)


def test_the_permission_modes_of_the_option_are_those_that_exist():
    assert set(MODES) == set(get_args(PermissionMode))


def test_a_question_of_an_agent_names_it_in_the_terminal_and_in_the_application(
    capsys: pytest.CaptureFixture[str],
):
    question = PermissionQuestion(
        server="desk", tool="mcp__desk__add", title="", arguments={}, agent="helper-1"
    )
    first = "? desk: mcp__desk__add, called by the agent helper-1"
    show(question)
    assert click.unstyle(capsys.readouterr().err).splitlines()[1] == first
    assert question_text(question).plain.splitlines()[0] == first

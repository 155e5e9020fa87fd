"""The conversation line by line, and the options of `dragoman` without a command."""

from typing import get_args

import pytest

from dragoman.agent.events import SubagentEvent, ToolCallStarted
from dragoman.cli.agent.options import MODES
from dragoman.cli.agent.plain import EventPrinter
from dragoman.permissions.modes import PermissionMode

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

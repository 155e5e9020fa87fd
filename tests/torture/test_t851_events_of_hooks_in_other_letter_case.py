"""T851: the administrator's hook stands below `PRETOOLUSE`. It was reported as an unknown event, and had no
effect: only spellings with nearly the same letters, case included, were recognised."""

from pathlib import Path

import pytest

from dragoman.config.all_files import read_parts
from dragoman.config.scopes import Sources
from dragoman.hooks.configured import from_parts
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-5")
SPELLINGS = {
    "PRETOOLUSE": "PreToolUse",
    "PRE_TOOL_USE": "PreToolUse",
    "pre-tool-use": "PreToolUse",
    "PRETOOL": "PreToolUse",
    "PERMISSION REQUEST": "PermissionRequest",
    "ELICITATION": "Elicitation",
    "USERPROMPTSUBMIT": "UserPromptSubmit",
}


@pytest.mark.parametrize("written", SPELLINGS)
def test_t851_the_event_that_is_meant_is_blocked(home: Path, written: str):
    hook = {"hooks": [{"type": "command", "command": "exit 2"}]}
    projects.write(home / "managed/managed-mcp.json", {"hooks": {written: [hook]}})
    found = from_parts(read_parts(Sources.here()).parts)
    assert [(each.event, each.blocks_on_error) for each in found.hooks] == [(SPELLINGS[written], True)]
